# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""All options of the package, also for oslo.config's sample generator."""

from oslo_config import cfg

from nova_accel.conf import api
from nova_accel.conf import bitstreams
from nova_accel.conf import client
from nova_accel.conf import compute
from nova_accel.conf import database
from nova_accel.conf import fabric
from nova_accel.conf import metrics
from nova_accel.conf import scheduler

MODULES = (
    api,
    bitstreams,
    client,
    compute,
    database,
    fabric,
    metrics,
    scheduler,
)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """:returns: a pair of group name and options for each group"""
    groups: dict[str, list[cfg.Opt]] = {}
    for module in MODULES:
        for group, opts in module.list_opts().items():
            groups.setdefault(group, []).extend(opts)
    return list(groups.items())
