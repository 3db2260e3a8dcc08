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

import testtools

from nova_accel.model import binding_repairs
from nova_accel.model import nova_server
from nova_accel.model.fleet import fleet_sources
from nova_accel.osc import nova_servers
from unit.osc import listed_servers


class TestRead(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.nova = listed_servers.Apis()

    def add(self, uuid: str, host: str | None, **fields: object) -> None:
        self.nova.servers[uuid] = listed_servers.server(uuid, host, **fields)

    def read(self, *uuids: str) -> nova_servers.KnownServers:
        return nova_servers.read(self.nova.compute, ['a', 'b'], {*uuids})

    def test_what_is_told_of_a_server(self) -> None:
        self.add('1', 'a')
        told = self.read('1')
        self.assertEqual(
            {
                '1': fleet_sources.FleetServer(
                    'a',
                    'active',
                    name='name of 1',
                    flavor='accel.1',
                    image='image',
                )
            },
            told.nova.servers,
        )
        self.assertEqual(frozenset(), told.untold)
        self.assertEqual({'compute 2.80'}, self.nova.versions)

    def test_a_server_that_boots_from_a_volume(self) -> None:
        self.add('1', 'a', image='')
        self.assertEqual('', self.read('1').nova.servers['1'].image)

    def test_one_request_for_a_host_or_a_server_elsewhere(self) -> None:
        for number in range(5):
            self.add(f'a{number}', 'a')
        self.add('c', 'c')
        self.add('other', 'b')
        found = self.read('a0', 'a4', 'c', 'none').nova.servers
        self.assertEqual({'a0', 'a4', 'c'}, {*found})
        self.assertEqual('c', found['c'].host)
        self.assertEqual(
            [
                '/servers/c',
                '/servers/detail a',
                '/servers/detail b',
                '/servers/none',
            ],
            sorted(self.nova.asked),
        )

    def test_a_soft_deleted_server_exists(self) -> None:
        self.add('1', 'a', **{'OS-EXT-STS:vm_state': 'soft-delete'})
        self.nova.hidden = {'1'}
        self.assertIn('1', self.read('1').nova.servers)

    def test_unfinished_migrations(self) -> None:
        for uuid in ('1', '2', '3'):
            self.add(uuid, 'a')
        self.nova.migrations = {
            'finished': [('m1', '1')],
            'post-migrating': [('m2', '2')],
            'confirmed': [('m3', '3')],
        }
        found = self.read('1', '2', '3', 'm1').nova
        self.assertEqual(
            {'1': True, '2': True, '3': False},
            {
                uuid: server.is_migrating
                for uuid, server in found.servers.items()
            },
        )
        self.assertEqual({'m1', 'm2'}, {*found.consumers})
        # A migration is no server.
        self.assertNotIn('/servers/m1', self.nova.asked)

    def test_each_unfinished_status_is_asked(self) -> None:
        self.nova.migrations = {
            status: [(status, 'server')] for status in nova_server.UNFINISHED
        }
        self.assertEqual(
            nova_server.UNFINISHED, {*self.read('server').nova.consumers}
        )

    def test_a_cell_that_does_not_answer(self) -> None:
        self.nova.servers['1'] = {'id': '1', 'status': 'UNKNOWN'}
        told = self.read('1')
        self.assertEqual({'1'}, told.untold)
        # No one takes it for a leak.
        self.assertFalse(told.nova.servers['1'].is_settled)
        self.assertIsNone(
            binding_repairs.why_unneeded(None, told.nova.servers['1'], 'a')
        )

    def test_a_host_that_nova_hides(self) -> None:
        self.add('1', None)
        self.assertEqual({'1'}, self.read('1').untold)

    def test_a_server_that_has_no_host(self) -> None:
        for state in ('building', 'error', 'shelved_offloaded'):
            self.add('1', None, **{'OS-EXT-STS:vm_state': state})
            self.assertEqual(frozenset(), self.read('1').untold)
