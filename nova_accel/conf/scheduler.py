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

"""``[nova_accel]`` of nova-scheduler: how hosts are weighed."""

from oslo_config import cfg

GROUP = 'nova_accel'

OPTS: list[cfg.Opt] = [
    cfg.FloatOpt(
        'accelerator_weight_multiplier', default=1.0,
        help="""
How strongly the number of free accelerators rules the choice of a host. A
server that asks for accelerators goes to the host with the most of them, any
other server to the host with the fewest. 0 turns this off, a negative value
turns it around. Can be overridden for the hosts of an aggregate by its
metadata key ``accelerator_weight_multiplier``.
"""),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> dict[str, list[cfg.Opt]]:
    return {GROUP: OPTS}
