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

"""PCI functions that their host reports under other uuids than before."""

import dataclasses
from typing import Any

import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import device
from nova_accel.db import host
from nova_accel.db import host_arqs
from nova_accel.db.sql import schema
from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.devices import hardware
from nova_accel.model.profiles import device_profile
from nova_accel.testing import database
from nova_accel.testing import reports
from rig import capacity

load_tests = testscenarios.load_tests_apply_scenarios

_HOST = reports.SimulatedHost(regions=(1, 1))


class _Renamed(reports.SimulatedHost):
    """A host whose compute node has another uuid now."""

    @property
    def node_uuid(self) -> str:
        return naming.derived_uuid(
            'f3b1cfb9-3a3d-4b42-9d0e-3f3e6d1c7a10', self.hostname
        )


class _OneFunction(reports.SimulatedHost):
    """A host on whose cards all units have the same function."""

    def _slice(self, *facts: Any) -> attach_handle.AttachHandle:
        return dataclasses.replace(
            super()._slice(*facts),
            address=pci_address.PciAddress(2, 0, 1, 0),
        )


class _RenamedOneFunction(_Renamed, _OneFunction):
    pass


def _renamed(**facts: Any) -> _Renamed:
    return _Renamed(**{'regions': (1, 1), **facts})


class TestRenamedHandles(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.make_profile()

    def hold(self) -> host_arqs.AcquireRequest:
        """Let an instance have the second FPGA of the host."""
        request = self.request(_HOST.allocated(bus=1))
        host_arqs.acquire(request)
        return request

    def arq(self, request: host_arqs.AcquireRequest) -> dict[str, Any]:
        [arq] = host_arqs.get(*request.key)
        return dict(arq)

    def uuids(self) -> set[str]:
        return {row['uuid'] for row in self.rows(schema.ATTACH_HANDLES)}

    def uuids_in(self, host_: reports.SimulatedHost) -> set[str]:
        return {
            handle['uuid']
            for device in host_.reported()
            for deployable in device['deployables']
            for handle in deployable['attach_handles']
        }

    def test_the_arq_goes_with_the_function(self) -> None:
        _HOST.report()
        request = self.hold()
        before = self.arq(request)
        _renamed().report()
        after = self.arq(request)
        self.assertEqual(before['uuid'], after['uuid'])
        self.assertEqual('Bound', after['state'])
        self.assertEqual(_renamed().rp_uuid(1), after['device_rp_uuid'])
        self.assertEqual(
            before['attach_handle_info'], after['attach_handle_info']
        )
        self.assertEqual(self.uuids_in(_renamed()), self.uuids())
        self.assertEqual(2, len(self.rows(schema.DEVICES)))

    def test_nobody_else_gets_the_function(self) -> None:
        _HOST.report()
        request = self.hold()
        _renamed().report()
        self.assertEqual({'compute-1': 1}, capacity.free_by_host())
        self.assertRaises(
            exceptions.AcceleratorsBusy,
            host_arqs.acquire,
            self.request(_renamed().allocated(bus=1)),
        )
        host_arqs.release(*request.key, attempt=1)
        self.assertEqual({'compute-1': 2}, capacity.free_by_host())

    def test_it_is_cleaned_after_the_guest_and_not_before(self) -> None:
        cleaned = dataclasses.replace(_HOST, cleaned=True)
        cleaned.clean()
        request = self.hold()
        renamed = _renamed(cleaned=True)
        orders = renamed.report()
        assert orders is not None
        [other] = renamed.reported()[0]['deployables'][0]['attach_handles']
        self.assertEqual([other['uuid']], list(orders.uncleaned))
        renamed.clean()
        host_arqs.release(*request.key, attempt=1)
        self.assertEqual({'compute-1': 1}, capacity.free_by_host())
        renamed.clean()
        self.assertEqual({'compute-1': 2}, capacity.free_by_host())

    def test_a_report_in_parts(self) -> None:
        """The function is never free, and there is never one of it twice."""
        _HOST.report()
        request = self.hold()
        first, second = _renamed().reported()
        self.part([second], 0)
        self.assertEqual(
            _renamed().rp_uuid(1), self.arq(request)['device_rp_uuid']
        )
        self.assertEqual({'compute-1': 1}, capacity.free_by_host())
        self.part([first], 1, [second['uuid']])
        self.assertEqual(
            _renamed().rp_uuid(1), self.arq(request)['device_rp_uuid']
        )
        self.assertEqual({'compute-1': 1}, capacity.free_by_host())
        self.assertEqual(self.uuids_in(_renamed()), self.uuids())

    def test_parts_with_the_function_last(self) -> None:
        _HOST.report()
        request = self.hold()
        first, second = _renamed().reported()
        self.part([first], 0)
        self.assertEqual(_HOST.rp_uuid(1), self.arq(request)['device_rp_uuid'])
        self.assertEqual({'compute-1': 1}, capacity.free_by_host())
        self.part([second], 1, [first['uuid']])
        self.assertEqual(
            _renamed().rp_uuid(1), self.arq(request)['device_rp_uuid']
        )
        self.assertEqual({'compute-1': 1}, capacity.free_by_host())
        self.assertEqual(self.uuids_in(_renamed()), self.uuids())

    def test_a_disabled_device_stays_so_in_parts(self) -> None:
        """Its heir is in one part, and it is gone with another."""
        _HOST.report()
        device.set_status(
            _HOST.reported()[1]['uuid'], hardware.Status.MAINTAINING
        )
        first, second = _renamed().reported()
        self.part([second], 0)
        self.part([first], 1, [second['uuid']])
        self.assertEqual(
            {first['uuid']: 'enabled', second['uuid']: 'maintaining'},
            {row['uuid']: row['status'] for row in self.rows(schema.DEVICES)},
        )

    def part(
        self,
        devices: list[dict[str, Any]],
        number: int,
        others: list[str] | None = None,
    ) -> None:
        host.report(
            'compute-1',
            _renamed().node_uuid,
            'compute-1.service',
            devices,
            'parts',
            part=number,
            others=others,
        )

    def test_another_device_is_in_its_place(self) -> None:
        dataclasses.replace(_HOST, serials=((1, 'serial-a'),)).report()
        request = self.hold()
        before = self.arq(request)
        _renamed(serials=((1, 'serial-b'),)).report()
        self.assertEqual(before, self.arq(request))

    def test_the_same_device_says_who_it_is(self) -> None:
        serials = ((1, 'serial-a'),)
        dataclasses.replace(_HOST, serials=serials).report()
        request = self.hold()
        _renamed(serials=serials).report()
        self.assertEqual(
            _renamed().rp_uuid(1), self.arq(request)['device_rp_uuid']
        )

    def test_another_arq_has_the_reported_handle(self) -> None:
        _HOST.report()
        request = self.hold()
        before = self.arq(request)
        _renamed().report()
        other = self.request(_renamed().allocated(bus=0))
        host_arqs.acquire(other)
        with self.database.engine.begin() as connection:
            # As it was before reports told renamed functions.
            self.give_back_to_former_row(connection, before, other)
        _renamed(faults=((0, 'hot'),)).report()
        self.assertEqual(
            before['attach_handle_uuid'],
            self.arq(request)['attach_handle_uuid'],
        )
        self.assertEqual(
            _renamed().rp_uuid(1), self.arq(other)['device_rp_uuid']
        )

    def give_back_to_former_row(
        self,
        connection: sa.Connection,
        former: dict[str, Any],
        other: host_arqs.AcquireRequest,
    ) -> None:
        """Let the first ARQ have a row of its own, and the other its row."""
        handles = schema.ATTACH_HANDLES
        mine = handles.c.arq_uuid == former['uuid']
        present = dict(
            connection.execute(sa.select(handles).where(mine)).mappings().one()
        )
        connection.execute(
            sa.update(handles)
            .where(handles.c.arq_uuid == self.arq(other)['uuid'])
            .values(arq_uuid=None)
        )
        connection.execute(
            sa.update(handles)
            .where(mine)
            .values(arq_uuid=self.arq(other)['uuid'])
        )
        connection.execute(
            sa.update(schema.ARQS)
            .where(schema.ARQS.c.uuid == self.arq(other)['uuid'])
            .values(device_rp_uuid=_renamed().rp_uuid(1))
        )
        del present['id']
        connection.execute(
            sa.insert(handles).values(
                **{
                    **present,
                    'uuid': former['attach_handle_uuid'],
                    'present': False,
                }
            )
        )

    def test_units_of_other_slices_of_a_card_may_have_its_function(
        self,
    ) -> None:
        """The guest keeps its half, and gets no other shape."""
        self.host = before = _OneFunction(regions=(), cards=1)
        before.report()
        self.make_profile(
            *device_profile.checked_groups([{'accel:shape': reports.HALF}]),
            name='half',
        )
        request = self.request(
            before.allocated_shapes(reports.HALF), device_profile_name='half'
        )
        host_arqs.acquire(request)
        held = self.arq(request)['attach_handle_info']
        after = _RenamedOneFunction(regions=(), cards=1)
        after.report()
        arq = self.arq(request)
        self.assertEqual(held, arq['attach_handle_info'])
        self.assertEqual(after.card(), arq['device_rp_uuid'])
        [(info, present)] = [
            (row['info'], row['present'])
            for row in self.rows(schema.ATTACH_HANDLES)
            if row['arq_uuid'] is not None
        ]
        self.assertEqual((held['slice'], True), (info['slice'], present))
        self.assertEqual(self.uuids_in(after), self.uuids())

    def test_a_mediated_device_is_its_uuid(self) -> None:
        """Those of one parent have one address."""
        _HOST.report()
        request = self.hold()
        before = self.arq(request)
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.update(schema.ATTACH_HANDLES).values(type='MDEV')
            )
        _renamed().report()
        self.assertEqual(
            before['device_rp_uuid'], self.arq(request)['device_rp_uuid']
        )

    def test_the_number_of_statements_is_constant(self) -> None:
        numbers = []
        for amount in (1, 6):
            name = f'of-{amount}'
            self.host = before = reports.SimulatedHost(
                name, regions=(1,) * amount
            )
            before.report()
            for bus in range(amount):
                host_arqs.acquire(self.request(before.allocated(bus=bus)))
            after = _renamed(hostname=name, regions=(1,) * amount)
            numbers.append(len(self.statements(after.report)))
        self.assertEqual(*numbers)
