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
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import client_arqs
from nova_accel.db import device
from nova_accel.db import host_arqs
from nova_accel.db.sql import schema
from nova_accel.model import host_orders
from nova_accel.model.devices import hardware
from nova_accel.testing import database
from nova_accel.testing import reports
from rig import capacity

load_tests = testscenarios.load_tests_apply_scenarios

ENABLED = hardware.Status.ENABLED
MAINTAINING = hardware.Status.MAINTAINING


class DeviceTestCase(base.DatabaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        # The first FPGA is a device of two deployables, each a provider.
        self.host = reports.SimulatedHost(regions=(2, 1), functions=2)
        self.host.report()
        self.make_profile()

    def is_refused(self, bus: int, region: int = 0) -> str | None:
        """Why no instance can have the region, None if one could."""
        request = self.request(self.host.allocated(bus, region))
        try:
            host_arqs.acquire(request)
        except exceptions.AcceleratorsBusy as fault:
            return str(fault)
        host_arqs.release(*request.key, 1)
        return None


class TestGet(DeviceTestCase):
    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.other = reports.SimulatedHost('compute-2', faults=((0, 'hot'),))
        self.other.report()

    def test_filters(self) -> None:
        for filters, amount in (
            ({}, 5),
            ({'type_': 'FPGA'}, 3),
            ({'type_': 'GPU'}, 0),
            ({'vendor': '8086'}, 5),
            ({'vendor': '0x8086'}, 5),
            ({'vendor': '10de'}, 0),
            ({'hostname': 'compute-2'}, 1),
            ({'hostname': 'compute-1', 'type_': 'QAT'}, 2),
        ):
            self.assertEqual(amount, len(device.get_all(**filters)), filters)

    def test_vendor_in_capital_digits(self) -> None:
        with self.database.engine.begin() as connection:
            connection.execute(
                schema.DEVICES.update().values(vendor_id='10de')
            )
        for vendor in ('10de', '10DE', '0x10de', '0x10DE'):
            self.assertEqual(5, len(device.get_all(vendor=vendor)))

    def test_one(self) -> None:
        found = device.get(self.other.device_uuid())
        self.assertEqual(
            ('compute-2', ENABLED, 'hot', {'firmware': '1.2.3'}, []),
            tuple(
                found[name]
                for name in (
                    'hostname',
                    'status',
                    'fault',
                    'attributes',
                    'unclean',
                )
            ),
        )
        self.assertEqual([found], device.get_all(hostname='compute-2'))

    def test_unknown(self) -> None:
        error = self.assertRaises(
            exceptions.NotFound, device.get, uuidutils.generate_uuid()
        )
        self.assertIn('Device not found with uuid=', str(error))

    def test_takes_two_statements(self) -> None:
        self.assertEqual(2, len(self.statements(device.get_all)))


class TestGetResourceClasses(DeviceTestCase):
    scenarios = database.SCENARIOS

    def test_of_a_type(self) -> None:
        for type_, expected in (
            ('FPGA', {'FPGA'}),
            ('QAT', {'CUSTOM_QAT'}),
            ('GPU', set()),
        ):
            self.assertEqual(expected, device.get_resource_classes(type_))


class TestSetStatus(DeviceTestCase):
    """Also item 8 of what Cyborg gets wrong: that it is half a device."""

    scenarios = database.SCENARIOS

    def test_all_of_the_device_and_nothing_of_another(self) -> None:
        device.set_status(self.host.device_uuid(), MAINTAINING)
        for region in range(2):
            self.assertIn(
                '1 disabled by an administrator', self.is_refused(0, region)
            )
        self.assertIsNone(self.is_refused(1))
        self.assertEqual({'compute-1': 3}, capacity.free_by_host())
        self.assertEqual(
            {
                self.host.device_uuid(0): MAINTAINING,
                self.host.device_uuid(1): ENABLED,
            },
            {
                found['uuid']: found['status']
                for found in device.get_all(type_='FPGA')
            },
        )

        device.set_status(self.host.device_uuid(), ENABLED)
        for region in range(2):
            self.assertIsNone(self.is_refused(0, region))
        self.assertEqual({'compute-1': 5}, capacity.free_by_host())

    def test_one_of_pooled_devices(self) -> None:
        self.make_profile(base.QAT, name='qat')
        function, *_ = device.get_all(type_='QAT')
        device.set_status(function['uuid'], MAINTAINING)
        requests = [
            self.request(
                self.host.allocated_functions(1), device_profile_name='qat'
            )
            for _ in range(2)
        ]
        host_arqs.acquire(requests[0])
        error = self.assertRaises(
            exceptions.AcceleratorsBusy, host_arqs.acquire, requests[1]
        )
        self.assertTrue(
            str(error).endswith(
                ' wanted, 0 free (1 disabled by an administrator)'
            ),
            str(error),
        )

    def test_what_is_held_stays(self) -> None:
        request = self.request(self.host.allocated())
        held = host_arqs.acquire(request)
        device.set_status(self.host.device_uuid(), MAINTAINING)
        self.host.report()
        self.assertEqual(held, host_arqs.get(*request.key))
        self.assertEqual(
            held, host_arqs.acquire(dataclasses.replace(request, attempt=2))
        )
        host_arqs.release(*request.key, 2)
        self.assertIsNotNone(self.is_refused(0))

    def test_the_host_is_told_once(self) -> None:
        self.assertIsNone(self.host.report(orders_seen=0))
        device.set_status(self.host.device_uuid(), MAINTAINING)
        told = self.host.report(orders_seen=0)
        self.assertEqual(
            host_orders.Orders(1, frozenset({self.host.device_uuid()})),
            told,
        )
        self.assertIsNone(self.host.report(orders_seen=1))
        device.set_status(self.host.device_uuid(), MAINTAINING)
        self.assertIsNone(self.host.report(orders_seen=1))
        device.set_status(self.host.device_uuid(), ENABLED)
        self.assertEqual(
            host_orders.Orders(2), self.host.report(orders_seen=1)
        )

    def test_whether_placement_has_it(self) -> None:
        """Only the revision that brought it counts, and later ones."""
        first, second = (self.host.device_uuid(bus) for bus in (0, 1))

        def unpublished() -> set[str]:
            return {
                each['uuid']
                for each in device.get_all()
                if not each['is_published']
            }

        self.assertEqual(set(), unpublished())
        self.assertEqual(
            self.host.hostname,
            device.set_status(first, hardware.Status.MAINTAINING),
        )
        self.assertEqual({first}, unpublished())
        told = self.host.report()
        assert told is not None
        device.set_status(second, hardware.Status.MAINTAINING)
        self.assertEqual({first, second}, unpublished())
        self.host.report()
        self.host.tell(orders_published=told.revision)
        self.assertEqual({second}, unpublished())
        # The same again is nothing new.
        device.set_status(first, hardware.Status.MAINTAINING)
        self.assertEqual({second}, unpublished())
        # A revision of a host that was forgotten says nothing.
        self.host.tell(orders_published=told.revision + 99)
        self.assertEqual({second}, unpublished())
        self.host.follow()
        self.assertEqual(set(), unpublished())

    def test_other_hosts_are_told_nothing(self) -> None:
        other = reports.SimulatedHost('compute-2')
        other.report()
        device.set_status(self.host.device_uuid(), MAINTAINING)
        self.assertIsNone(other.report(orders_seen=0))

    def test_nova_gets_bind_failed_and_the_log_the_reason(self) -> None:
        device.set_status(self.host.device_uuid(), MAINTAINING)
        [uuid] = self.make_arqs(1)
        [bound] = client_arqs.bind({uuid: self.place()})
        self.assertEqual('BindFailed', bound['state'])
        self.assertIn('1 disabled by an administrator', self.log.output)

    def test_a_disabled_device_that_goes_and_comes_is_disabled(self) -> None:
        device.set_status(self.host.device_uuid(1), MAINTAINING)
        dataclasses.replace(self.host, regions=(2, None)).report()
        [absent] = [
            found
            for found in device.get_all(type_='FPGA')
            if found['uuid'] == self.host.device_uuid(1)
        ]
        self.assertEqual(MAINTAINING, absent['status'])
        self.host.report()
        self.assertIsNotNone(self.is_refused(1))

    def test_one_that_is_gone_goes_when_it_is_enabled(self) -> None:
        device.set_status(self.host.device_uuid(1), MAINTAINING)
        without = dataclasses.replace(self.host, regions=(2, None))
        told = without.report()
        assert told is not None
        device.set_status(self.host.device_uuid(1), ENABLED)
        without.report(orders_seen=told.revision)
        self.assertRaises(
            exceptions.NotFound, device.get, self.host.device_uuid(1)
        )

    def test_unknown(self) -> None:
        for status in hardware.Status:
            error = self.assertRaises(
                exceptions.NotFound,
                device.set_status,
                uuidutils.generate_uuid(),
                status,
            )
            self.assertIn('Device not found with uuid=', str(error))


class TestRace(DeviceTestCase):
    # SQLite has one writer at a time.
    scenarios = database.SCENARIOS[1:]

    def test_disabled_after_it_was_chosen(self) -> None:
        """The compare-and-set sees it, and then so does the reason."""
        disabled: list[Any] = []

        def disable(statement: str) -> None:
            if statement.startswith('INSERT INTO arqs') and not disabled:
                disabled.append(statement)
                base.race(
                    [
                        lambda: device.set_status(
                            self.host.device_uuid(), MAINTAINING
                        )
                    ]
                )

        with self.before_statement(disable):
            reason = self.is_refused(0)
        self.assertEqual(1, len(disabled))
        self.assertIn('disabled by an administrator', str(reason))


class TestFault(DeviceTestCase):
    scenarios = database.SCENARIOS

    def test_a_sick_device_is_not_handed_out(self) -> None:
        sick = dataclasses.replace(self.host, faults=((0, 'on fire'),))
        request = self.request(self.host.allocated(0, 1))
        held = host_arqs.acquire(request)
        sick.report()
        self.assertIn('1 faulty: on fire', self.is_refused(0))
        self.assertIsNone(self.is_refused(1))
        self.assertEqual(held, host_arqs.get(*request.key))
        self.assertEqual({'compute-1': 3}, capacity.free_by_host())
        self.host.report()
        self.assertIsNone(self.is_refused(0))
