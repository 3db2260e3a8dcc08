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

from nova_accel.model import finding
from nova_accel.model.fleet import finding_places
from nova_accel.testing import simulated_fleet


class TestPlace(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.simulated = simulated_fleet.SimulatedFleet(400)
        self.unit = next(
            unit for unit in self.simulated.units if unit.arq is not None
        )
        self.device = self.simulated.devices[self.unit.device_uuid]

    def find(
        self,
        instance_uuid: str | None = None,
        device: str | None = None,
        hostname: str | None = None,
        kind: finding.Kind = finding.Kind.MDEV,
        is_repaired: bool = False,
    ) -> finding.Finding:
        self.simulated.find()
        since = self.simulated.findings[0].since
        self.simulated.findings = [
            finding.Finding(
                kind,
                'x',
                is_repaired,
                instance_uuid,
                device,
                hostname or self.device.hostname,
                since,
            )
        ]
        (found,) = finding_places.place(self.simulated.ours)
        self.assertEqual(
            self.simulated.findings[0],
            dataclasses.replace(found, devices=()),
        )
        return found

    def test_the_device_by_each_of_its_names(self) -> None:
        assert self.unit.arq is not None
        server = self.unit.arq.instance_uuid
        for names in (
            {'device': self.device.address},
            {'device': self.unit.address},
            {'device': self.unit.uuid},
            {'instance_uuid': 'other', 'device': self.unit.uuid},
        ):
            found = self.find(**names)
            self.assertEqual((self.device.uuid,), found.devices)
        self.assertIn(self.device.uuid, self.find(server).devices)

    def test_what_the_database_does_not_know(self) -> None:
        """Or has on another host."""
        for found in (
            self.find(),
            self.find(device='0000:ff:1f.7'),
            self.find(device=self.unit.uuid, hostname='elsewhere'),
        ):
            self.assertEqual((), found.devices)

    def test_whose_it_is(self) -> None:
        self.assertEqual('server', self.find('server', 'card').whose)
        self.assertEqual('card', self.find(None, 'card').whose)
        self.assertEqual('', self.find().whose)

    def test_the_outcome(self) -> None:
        for kind, is_repaired, outcome in (
            (finding.Kind.MDEV, True, 'the host has repaired it'),
            (finding.Kind.MDEV, False, 'the host has not repaired it'),
            (finding.Kind.GUEST_GONE, False, 'the host leaves it alone'),
        ):
            self.assertEqual(
                outcome, self.find(kind=kind, is_repaired=is_repaired).outcome
            )

    def test_nothing_is_found(self) -> None:
        self.assertEqual([], list(finding_places.place(self.simulated.ours)))
