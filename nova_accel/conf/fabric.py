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

"""``[nova_accel]`` of nova-compute: the partitions of NVSwitches."""

from oslo_config import cfg

from nova_accel import fabric_options

GROUP = fabric_options.GROUP

OPTS = [
    *fabric_options.OPTS,
    cfg.IntOpt(
        'fabric_manager_timeout_s',
        default=30,
        min=1,
        max=600,
        help=(
            'The most seconds that one call of Fabric Manager may take, and '
            'the most that the start of a guest waits for a Fabric Manager '
            'that is starting.'
        ),
    ),
    cfg.IntOpt(
        'fabric_manager_interval_s',
        default=20,
        min=1,
        max=50,
        help=(
            'Seconds between two comparisons of the active partitions with '
            'the running guests. Fabric Manager ends if it is not told within '
            '60 seconds after a restart (``FABRIC_MODE_RESTART=1``) which '
            'partitions are active.'
        ),
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> dict[str, list[cfg.Opt]]:
    return {GROUP: OPTS}
