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

from osc_lib import exceptions

from nova_accel.db import device
from nova_accel.osc import device_drain
from nova_accel.testing import reports
from unit.osc import fleet


class TestDrain(fleet.FleetTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.first, self.second = (host.device_uuid() for host in self.hosts)

    def statuses(self) -> dict[str, str]:
        return {each['uuid']: each['status'] for each in device.get_all()}

    def assert_refused(self, *arguments: str) -> str:
        """Nothing is changed; the words of the fault."""
        error = self.assertRaises(
            exceptions.CommandError,
            self.listed,
            device_drain.Drain,
            *arguments,
        )
        self.assertEqual({'enabled'}, {*self.statuses().values()})
        return str(error)

    def test_by_its_uuid(self) -> None:
        """Servers that keep what they have are named."""
        columns, rows = self.listed(device_drain.Drain, self.first)
        self.assertEqual(device_drain.COLUMNS, columns)
        self.assertEqual(
            [
                (
                    self.first,
                    'compute-1',
                    '0000:00:00.0',
                    'PAC',
                    'disabled',
                    False,
                )
            ],
            rows,
        )
        self.assertEqual(
            {self.first: 'maintaining', self.second: 'enabled'},
            self.statuses(),
        )
        self.assertIn('servers keep what they have', self.said)
        self.assertIn(fleet.SERVER, self.said)
        self.assertIn('compute-1 has not reported yet', self.said)

    def test_by_host_and_address(self) -> None:
        reports.SimulatedHost('compute-1', (2, 1)).report()
        for names, amount in (
            (('0000:01:00.0',), 1),
            (('0000:00:00', '0000:01:00'), 2),
            ((self.first, '0000:00:00.0'), 1),
        ):
            for command in (device_drain.Drain, device_drain.Undrain):
                _columns, rows = self.listed(
                    command, '--host', 'compute-1', *names
                )
                self.assertEqual(amount, len(rows))
            self.assertEqual({'enabled'}, {*self.statuses().values()})

    def test_all_functions_of_a_card(self) -> None:
        """An operator names the card, and not its functions."""
        reports.SimulatedHost('compute-3', (), functions=3).report()
        there = {each['address'] for each in device.get_all(type_='QAT')}
        self.assertEqual(3, len(there))
        slots = {address.rpartition('.')[0] for address in there}
        _columns, rows = self.listed(
            device_drain.Drain, '--host', 'compute-3', *slots
        )
        self.assertEqual(there, {row[2] for row in rows})

    def test_several_hosts_at_once(self) -> None:
        self.listed(device_drain.Drain, self.first, self.second)
        self.assertEqual({'maintaining'}, {*self.statuses().values()})
        for name in ('compute-1', 'compute-2'):
            self.assertIn(f'{name} has not reported yet', self.said)
        self.listed(device_drain.Undrain, self.first, self.second)
        self.assertEqual({'enabled'}, {*self.statuses().values()})

    def test_one_of_several_is_unknown(self) -> None:
        words = self.assert_refused(self.first, fleet.SERVER)
        self.assertIn(f'no device {fleet.SERVER}', words)
        self.assertIn('device list', words)

    def test_no_uuid(self) -> None:
        for name in ('nonsense', 'a/b', '0000:00:00.0'):
            words = self.assert_refused(self.first, name)
            self.assertIn(name, words)
            self.assertIn('--host', words)

    def test_no_such_address(self) -> None:
        words = self.assert_refused('--host', 'compute-1', '0000:09:00.0')
        self.assertIn('compute-1 has no device 0000:09:00.0', words)
        self.assertIn('0000:00:00.0', words)

    def test_no_such_host(self) -> None:
        self.assertIn(
            'compute-9',
            self.assert_refused('--host', 'compute-9', '0000:00:00.0'),
        )

    def test_the_exit_status(self) -> None:
        status, printed = self.run_command(device_drain.Drain, self.first)
        self.assertEqual(0, status)
        self.assertIn(self.first, printed)


class TestReader(fleet.FleetTestCase):
    roles = ('reader',)

    def test_one_who_may_not(self) -> None:
        self.assertRaises(
            exceptions.CommandError,
            self.listed,
            device_drain.Drain,
            self.hosts[0].device_uuid(),
        )
