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

"""The section of the API in a guru meditation report."""

from importlib import metadata
from typing import Any

from nova_accel import conf
from nova_accel.api.http import microversion
from nova_accel.db.migrations import schema_version
from nova_accel.model import host_contract

CONF = conf.CONF


def facts() -> dict[str, Any]:
    """The release, and how it is set up; nothing of the database's URL."""
    return {
        'version': metadata.version('nova-accel'),
        'newest microversion': str(microversion.VERSIONS[-1]),
        'contract with hosts': host_contract.NEWEST,
        'schema of the database': schema_version.NEWEST,
        'deadline of a call in seconds': CONF.nova_accel_database.deadline_s,
        'metrics': (
            'on' if CONF.nova_accel.metrics_allowed_networks else 'off'
        ),
    }
