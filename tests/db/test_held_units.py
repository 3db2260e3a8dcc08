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
from typing import Any

from oslo_utils import uuidutils
import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel.db import client_arqs
from nova_accel.db import device
from nova_accel.db import device_profile as profile_db
from nova_accel.db import draining
from nova_accel.db import free_units
from nova_accel.db import held_units
from nova_accel.db import host_arqs
from nova_accel.db.sql import schema
from nova_accel.model import naming
from nova_accel.model.cards import card_slice
from nova_accel.model.devices import hardware
from nova_accel.model.fleet import room_guest
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import provider_allocation
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

WHOLE, HALF, EIGHTH = reports.WHOLE, reports.HALF, reports.EIGHTH


class HeldTestCase(base.DatabaseTestCase):
    def acquire(
        self,
        *allocations: provider_allocation.ProviderAllocation,
        **fields: Any,
    ) -> str:
        """The uuid of a server that has got units."""
        request = self.request(*allocations, **fields)
        host_arqs.acquire(request)
        return request.instance_uuid

    def held(self, instance_uuid: str) -> list[room_guest.HeldArq]:
        return [
            arq
            for arq in held_units.get_all()
            if arq.instance_uuid == instance_uuid
        ]


class TestFpgas(HeldTestCase):
    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(1, 2))
        self.host.report()
        self.make_profile()

    def deployables(self) -> dict[str, str]:
        """The deployable of each provider."""
        return {
            row['rp_uuid']: row['uuid']
            for row in self.rows(schema.DEPLOYABLES)
        }

    def report(self, **fields: Any) -> None:
        dataclasses.replace(self.host, **fields).report()

    def are_usable(self, *servers: str) -> list[bool]:
        found = {
            arq.instance_uuid: arq.is_usable for arq in held_units.get_all()
        }
        return [found[server] for server in servers]

    def test_no_one_has_any(self) -> None:
        self.assertEqual([], held_units.get_all())

    def test_what_a_server_has(self) -> None:
        server = self.acquire(self.host.allocated(1, 1))
        rp_uuid = self.host.rp_uuid(1, 1)
        self.assertEqual(
            [
                room_guest.HeldArq(
                    instance_uuid=server,
                    hostname=self.host.hostname,
                    role='active',
                    group_id=0,
                    group=base.FPGA,
                    rp_uuid=rp_uuid,
                    deployable_uuid=self.deployables()[rp_uuid],
                    card_slice=None,
                    is_usable=True,
                )
            ],
            held_units.get_all(),
        )

    def test_of_all_hosts(self) -> None:
        servers = {self.acquire(): self.host.hostname}
        self.host = reports.SimulatedHost('compute-2')
        self.host.report()
        servers[self.acquire()] = 'compute-2'
        self.assertEqual(
            servers,
            {arq.instance_uuid: arq.hostname for arq in held_units.get_all()},
        )

    def test_groups(self) -> None:
        self.host = reports.SimulatedHost(functions=3)
        self.host.report()
        groups = [base.FPGA, {'resources:CUSTOM_QAT': '2'}]
        self.make_profile(*groups, name='both')
        server = self.acquire(
            self.host.allocated(),
            self.host.allocated_functions(2),
            device_profile_name='both',
        )
        held = self.held(server)
        self.assertEqual(
            [(number, groups[number]) for number in (0, 1, 1)],
            [(arq.group_id, arq.group) for arq in held],
        )
        self.assertEqual(3, len({arq.deployable_uuid for arq in held}))
        self.assertEqual(2, len({arq.rp_uuid for arq in held}))

    def test_the_group_as_it_was_asked_for(self) -> None:
        server = self.acquire()
        [profile] = self.rows(schema.DEVICE_PROFILES)
        profile_db.update(profile['uuid'], [base.QAT])
        [arq] = self.held(server)
        self.assertEqual(base.FPGA, arq.group)

    def test_roles(self) -> None:
        server = uuidutils.generate_uuid()
        for region, role in enumerate(('old', 'incoming')):
            self.acquire(
                self.host.allocated(1, region),
                role=role,
                instance_uuid=server,
            )
        self.assertEqual(
            {
                ('old', self.host.rp_uuid(1, 0)),
                ('incoming', self.host.rp_uuid(1, 1)),
            },
            {(arq.role, arq.rp_uuid) for arq in self.held(server)},
        )

    def test_what_nova_has_bound_itself(self) -> None:
        """It has no role until the host has taken it over."""
        [arq_uuid] = self.make_arqs(1)
        place = self.place()
        client_arqs.bind({arq_uuid: place})
        [arq] = self.held(place['instance_uuid'])
        self.assertIsNone(arq.role)

    def test_without_an_instance(self) -> None:
        kept, lost = (self.acquire(self.host.allocated(bus)) for bus in (0, 1))
        self.make_arqs(1)
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.update(schema.ARQS)
                .where(schema.ARQS.c.instance_uuid == lost)
                .values(instance_uuid=None)
            )
        self.assertEqual(
            [kept], [arq.instance_uuid for arq in held_units.get_all()]
        )

    def test_given_back(self) -> None:
        request = self.request()
        host_arqs.acquire(request)
        host_arqs.release(*request.key, 1)
        self.assertEqual([], held_units.get_all())

    def test_no_other_server_could_have_them(self) -> None:
        servers = [self.acquire(self.host.allocated(bus)) for bus in (0, 1)]
        self.assertEqual([True, True], self.are_usable(*servers))
        disabled = self.host.device_uuid(0)
        device.set_status(disabled, hardware.Status.MAINTAINING)
        self.assertEqual([False, True], self.are_usable(*servers))
        device.set_status(disabled, hardware.Status.ENABLED)
        self.report(faults=((1, 'hot'),))
        self.assertEqual([True, False], self.are_usable(*servers))
        self.report()
        self.assertEqual([True, True], self.are_usable(*servers))
        self.report(regions=(None, 2))
        self.assertEqual([False, True], self.are_usable(*servers))

    def test_one_region_of_a_device_is_gone(self) -> None:
        servers = [
            self.acquire(self.host.allocated(1, region)) for region in (0, 1)
        ]
        self.report(regions=(1, 1))
        self.assertEqual([True, False], self.are_usable(*servers))

    def test_a_drained_host(self) -> None:
        server = self.acquire()
        draining.begin(self.host.hostname, 'fans', None, 'admin')
        self.assertEqual([False], self.are_usable(server))

    def test_by_one_statement(self) -> None:
        for region in (0, 1):
            self.acquire(self.host.allocated(1, region))
        self.assertEqual(1, len(self.statements(held_units.get_all)))


class TestCards(HeldTestCase):
    """Cards of many shapes."""

    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(), cards=2)
        self.host.report()

    def acquire_shapes(self, *shapes: str, card: int = 0) -> str:
        name = naming.shape_class('_'.join(shapes))
        self.make_profile(
            *device_profile.checked_groups(
                [{'accel:shape': shape} for shape in shapes]
            ),
            name=name,
        )
        return self.acquire(
            self.host.allocated_shapes(*shapes, card=card),
            device_profile_name=name,
        )

    def slices(self, server: str) -> list[tuple[str, str, int]]:
        """The provider, the class and the size of each slice of a server."""
        found = []
        for arq in self.held(server):
            assert arq.card_slice is not None
            found.append(
                (arq.rp_uuid, arq.card_slice.shape, arq.card_slice.size)
            )
        return sorted(found)

    def test_slices(self) -> None:
        both = self.acquire_shapes(HALF, EIGHTH)
        whole = self.acquire_shapes(WHOLE, card=1)
        size = card_slice.WHOLE_CARD
        self.assertEqual(
            sorted(
                [
                    (self.host.card(0), naming.shape_class(HALF), size // 2),
                    (self.host.card(0), naming.shape_class(EIGHTH), size // 8),
                ]
            ),
            self.slices(both),
        )
        self.assertEqual(
            [(self.host.card(1), naming.shape_class(WHOLE), size)],
            self.slices(whole),
        )

    def test_as_the_known_units_have_them(self) -> None:
        """Otherwise none would be freed in a plan."""
        self.acquire_shapes(EIGHTH, HALF, EIGHTH)
        taken = {
            (each.uuid, taken)
            for here in free_units.read(None).of_hosts.values()
            for each in here
            for taken in each.taken
        }
        self.assertEqual(3, len(taken))
        self.assertEqual(
            taken,
            {
                (arq.deployable_uuid, arq.card_slice)
                for arq in held_units.get_all()
            },
        )
