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
import dataclasses

import testtools

from nova_accel.model import host_orders
from nova_accel.model.providers import host_view
from nova_accel.model.providers import provider_layout
from nova_accel.testing import reports

HOST = reports.SimulatedHost('compute-1', (1, 1, 1), faults=((0, 'on fire'),))


class TestView(testtools.TestCase):
    def setUp(self):
        super().setUp()
        devices = tuple(HOST.devices())
        self.view = host_view.View(
            HOST.node_uuid,
            devices,
            provider_layout.layout('compute-1', HOST.node_uuid, devices),
        )
        self.handles = [
            each.uuid for found in devices for each in found.handles
        ]

    def test_how_many_units_there_are(self):
        """One that is broken is there, too."""
        self.assertEqual({'FPGA': 3}, self.view.units)
        self.assertEqual({}, host_view.View().units)

    def test_what_leads_to_the_same(self):
        one, two, other = self.view.devices
        view = host_view.View(
            devices=(
                dataclasses.replace(one, subsystem='S1'),
                dataclasses.replace(two, subsystem='S1'),
                dataclasses.replace(other, subsystem='S2'),
            )
        )
        first, second, third = self.handles
        self.assertEqual({second}, view.beside(first).keys())
        self.assertEqual({}, view.beside(third))
        # That nothing is known of two is nothing that they share.
        self.assertEqual({}, self.view.beside(first))

    def test_what_nobody_must_be_given(self):
        broken, disabled, _fine = self.handles
        self.assertEqual({broken}, self.view.unusable(None))
        ordered = host_orders.Orders(
            1, frozenset({HOST.device_uuid(1)}), frozenset({'elsewhere'})
        )
        self.assertEqual(
            {broken, disabled, 'elsewhere'}, self.view.unusable(ordered)
        )

    def test_a_part_that_is_broken_is_for_nobody(self):
        _broken, one, other = HOST.devices()
        (deployable,) = one.deployables
        devices = (
            dataclasses.replace(
                one,
                deployables=(
                    dataclasses.replace(deployable, fault='CRC error'),
                ),
            ),
            other,
        )
        self.assertEqual(
            {handle.uuid for handle in one.handles},
            host_view.View(HOST.node_uuid, devices).unusable(None),
        )

    def test_who_has_what(self):
        self.assertEqual(
            dict.fromkeys(self.handles, 'fake'), self.view.drivers
        )
        self.assertEqual(set(self.handles), self.view.handles.keys())
        self.assertEqual(
            {
                str(address)
                for handle in self.view.handles.values()
                for address in handle.functions
            },
            self.view.functions,
        )
        self.assertEqual(frozenset(), self.view.cleaned)
        self.assertEqual({}, host_view.View().handles)

    def test_for_which_units_others_leave_no_room(self):
        host = reports.SimulatedHost(cards=2)
        cards = [each for each in host.devices() if each.is_shared]
        view = host_view.View(host.node_uuid, tuple(host.devices()))
        (whole,), halves, _eighths = (
            [handle.uuid for handle in deployable.handles]
            for deployable in cards[0].deployables
        )
        others = {handle.uuid for handle in cards[1].handles}
        self.assertEqual(frozenset(), view.excluded(frozenset()))
        self.assertEqual(
            {handle.uuid for handle in cards[0].handles} - {whole},
            view.excluded({whole, 'elsewhere'}),
        )
        found = view.excluded(frozenset(halves))
        self.assertIn(whole, found)
        self.assertEqual(set(), found & {*halves, *others})
