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

"""The third part of the quickstart: one card, in the shape that is asked for.

A third host has a card that is whole for one server, or GPU instances for
others. As in the other steps, all expectations come from the simulated
hardware.
"""

import json

from nova_accel.model import naming
from nova_accel.model.cards import card_slice
from nova_accel.testing import devices
from nova_accel.testing import divided_cards
from nova_accel.testing import nvidia_cards
from rig.loopback import cloud as cloud_module
from rig.quickstart import report as quickstart_report
from rig.quickstart import server as quickstart_server

HOST = 'shapes1'

_CARD = '0000:81:00.0'
_FUNCTIONS = 8
_HALF, _WHOLE = 'mig:3g.40gb', 'whole'

# Shape -> how many the card makes of it.
_SHAPES = {_HALF: 2, _WHOLE: 1}


class Shapes:
    """The host, and two servers, of which the second needs all of the card."""

    _card: nvidia_cards.Card

    def __init__(
        self, cloud: cloud_module.Cloud, report: quickstart_report.Report
    ) -> None:
        self._cloud = cloud
        self._report = report

    def run(self) -> None:
        """Take all steps; differences are in the report.

        :raises Exception: a step could not be taken at all.
        """
        self._show_provider()
        half = self._server('half-card', _HALF)
        whole = self._server('whole-card', _WHOLE)
        self._report.step('The card is carved for a server')
        half.boot(self._flavor('half-card', _HALF))
        self._show_card('after the boot', [3], _FUNCTIONS)
        self._report.step('It is not whole as long as the server has a part')
        flavor = self._flavor('whole-card', _WHOLE)
        fault = whole.fail(flavor)
        self._report.check(
            'the fault names the shape and the reason',
            [],
            [
                name
                for name in (
                    naming.shape_class(_WHOLE),
                    f'on cards that are {card_slice.MIG}',
                )
                if name not in fault
            ],
        )
        whole.delete()
        self._report.step('It is whole for the next server')
        half.delete()
        self._show_card('without servers', [], _FUNCTIONS)
        whole.boot(flavor)
        self._show_card('as a whole in the guest', [], 0)
        whole.delete()
        self._show_card('after its server', [], _FUNCTIONS)
        self._report.check(
            'ARQs, attach handles, mediated devices, journal entries and '
            'usages that are left',
            [],
            self._cloud.leftovers(),
        )

    def _show_provider(self) -> None:
        self._report.step(
            f'Host {HOST}: a card that takes the shape that a server asks for'
        )
        info = devices.pci_info(gpus=0, fpgas=0, qats=0)
        cards = divided_cards.DividedCards(
            self._cloud.sysfs, {_CARD: info}, _FUNCTIONS
        )
        self._card = self._cloud.useFixture(cards).cards[_CARD]
        line = {
            'address': _CARD,
            'driver': 'nvidia_vfio',
            'shapes': list(_SHAPES),
        }
        self._cloud.flags(host=HOST)
        self._cloud.start_accelerated_compute(HOST, info, [json.dumps(line)])
        [provider] = self._cloud.accelerator_providers(HOST)
        self._report.rows(
            'resource provider',
            ('class', 'units'),
            sorted(provider['inventory'].items()),
        )
        self._report.check(
            'its inventory',
            {
                naming.CARD_SHARE: card_slice.WHOLE_CARD,
                **{
                    naming.shape_class(shape): units
                    for shape, units in _SHAPES.items()
                },
            },
            provider['inventory'],
        )

    def _server(self, name: str, shape: str) -> quickstart_server.Server:
        self._cloud.create_profile(name, [{'accel:shape': shape}])
        return quickstart_server.Server(
            self._cloud, self._report, quickstart_server.Wish(name, ())
        )

    def _flavor(self, profile: str, shape: str) -> str:
        self._report.rows(
            'device profiles',
            ('name', 'group', 'asks for'),
            [(profile, 0, [f'accel:shape={shape}'])],
        )
        return self._cloud.create_accel_flavor(
            profile, name=profile, disk=1, ephemeral=0, memory_mb=512, vcpu=1
        )

    def _show_card(
        self, when: str, instances: list[int], functions: int
    ) -> None:
        """Check what the card itself has.

        :param instances: the compute slices of its GPU instances
        :param functions: how many virtual functions it has
        """
        self._report.check(
            f'GPU instances and virtual functions of the card, {when}',
            (instances, functions),
            (
                [
                    each.profile.compute
                    for each in self._card.instances.values()
                ],
                len(self._card.functions) * self._card.are_functions,
            ),
        )
