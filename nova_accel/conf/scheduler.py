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

"""``[nova_accel]`` of nova-scheduler: Cyborg's flavors, and choices."""

from oslo_config import cfg
from oslo_config import types

from nova_accel.model.units import unit_choice

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
        default=100.0,
        help="""
How strongly the devices of a host influence the choice of a host for a server
that asks for accelerators. Hosts are ranked by how well their devices fit the
server, see ``unit_policies``. The weights of two hosts with adjacent ranks
differ by this number. With the default the rank decides, unless the multiplier
of another weigher is large, too. The other weighers choose between hosts of
one rank. With 0 the rank has no influence, and with a negative value it is
reversed: the host that fits worst comes first. The metadata key
``accelerator_weight_multiplier`` of an aggregate overrides it for the
aggregate's hosts. ``AcceleratorFilter`` ranks the hosts and must be enabled.
""",
    ),
    cfg.FloatOpt(
        'plain_server_weight_multiplier',
        default=10.0,
        help="""
How strongly servers that ask for no accelerators keep off hosts that have
some. Such a host loses half of this number with one unit, nearly all of it
with many, and nothing without. With 0 accelerators have no influence on such
servers, and with a negative value they go to hosts with accelerators first.
The metadata key ``plain_server_weight_multiplier`` of an aggregate overrides
it for the aggregate's hosts.
""",
    ),
    cfg.Opt(
        'unit_policies',
        type=types.Dict(types.String(choices=[*unit_choice.UnitPolicy])),
        default={},
        help="""
Whether servers fill one place after the other or all alike, by resource class:
``PGPU:spread,FPGA:pack``. A class that is not named is packed. ``pack`` breaks
no larger set of free devices than it needs, and chooses the fullest host and
device, so that large sets stay free for servers that need them. ``spread``
chooses the emptiest ones. The metadata key ``unit_policy:<resource class>`` of
an aggregate overrides it for the aggregate's hosts.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> dict[str, list[cfg.Opt]]:
    return {GROUP: OPTS}
