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

"""``[nova_accel]`` of nova-scheduler: Cyborg's flavors, and weights."""

from oslo_config import cfg

GROUP = 'nova_accel'

OPTS: list[cfg.Opt] = [
    cfg.BoolOpt(
        'cyborg_compatible',
        default=False,
        help="""
Whether nova_accel takes Cyborg's place. Servers whose flavor names a device
profile by Cyborg's extra spec ``accel:device_profile`` then get accelerators
of nova_accel only. The service of type ``accelerator`` in the catalogue must
be the accelerator API of nova_accel. The option is off by default, because in
a cloud with a real Cyborg such requests are Cyborg's.
""",
    ),
    cfg.FloatOpt(
        'accelerator_weight_multiplier',
        default=1.0,
        help="""
How strongly the number of free accelerators influences the choice of a host. A
server that asks for accelerators goes to the host with the most of them, any
other server to the host with the fewest. 0 turns this off, and a negative
value reverses it. The metadata key ``accelerator_weight_multiplier`` of an
aggregate overrides it for the aggregate's hosts.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> dict[str, list[cfg.Opt]]:
    return {GROUP: OPTS}
