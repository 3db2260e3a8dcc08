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

from nova_accel.osc import device_holder
from nova_accel.testing import reports
from unit.osc import fleet


class TestList(fleet.FleetTestCase):
    def list(self, *arguments: str) -> list[dict[str, object]]:
        names, rows = self.listed(device_holder.List, *arguments)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def test_who_holds_units(self) -> None:
        (row,) = self.list()
        self.assertEqual(
            {
                'Host': 'compute-1',
                'Device': '0000:00:00.0',
                'Part': 'region0',
                'State': 'used',
                'Server': fleet.SERVER,
                'Server name': f'name of {fleet.SERVER}',
                'Project': fleet.PROJECT,
                'Flavor': 'accel.1',
                'Role': 'active',
            },
            row,
        )

    def test_of_one_device(self) -> None:
        for host, amount in zip(self.hosts, (1, 0), strict=True):
            uuid = host.device_uuid()
            self.assertEqual(amount, len(self.list(uuid)))
            for row in self.list(uuid, '--long'):
                self.assertEqual(uuid, row['Device uuid'])
                self.assertEqual(self.arq['uuid'], row['ARQ'])

    def test_of_one_host(self) -> None:
        for host, amount in zip(self.hosts, (1, 0), strict=True):
            for device in ((), (self.hosts[0].device_uuid(),)):
                found = self.list(*device, '--host', host.hostname)
                self.assertEqual(amount, len(found), (host, device))
        refused = self.assertRaises(
            exceptions.CommandError, self.list, '--host', 'nowhere'
        )
        self.assertIn('Host nowhere not found', str(refused))

    def test_of_another_device_of_the_host(self) -> None:
        host = reports.SimulatedHost('compute-1', (2, 1))
        host.report()
        self.assertEqual([], self.list(host.device_uuid(1)))

    def test_a_server_that_nova_does_not_know(self) -> None:
        self.nova.servers.clear()
        (row,) = self.list()
        self.assertEqual(
            (fleet.SERVER, '', fleet.PROJECT),
            (row['Server'], row['Server name'], row['Project']),
        )

    def test_no_such_device(self) -> None:
        for name in ('a/b', fleet.SERVER):
            self.assertRaises(exceptions.CommandError, self.list, name)
