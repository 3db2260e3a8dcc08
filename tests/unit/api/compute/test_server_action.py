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

import fixtures
from nova import exception
from oslo_utils import uuidutils
import testtools

from nova_accel.api.compute import server_action
from unit.api.compute import test_bound_event


class TestAdd(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.nova = self.useFixture(test_bound_event.Nova())

    def test_each_in_its_cell(self):
        uuids = [self.nova.add('host', cell) for cell in range(2)]
        server_action.add('act', uuids)
        self.assertEqual(
            [(uuid, cell, 'act') for cell, uuid in enumerate(uuids)],
            self.nova.actions,
        )
        self.assertEqual('', self.log.output)

    def test_several_of_one_server(self):
        uuid = self.nova.add('host')
        for name in ('one', 'another', 'one'):
            server_action.add(name, [uuid])
        self.assertEqual(
            [(uuid, 0, name) for name in ('one', 'another', 'one')],
            self.nova.actions,
        )

    def test_servers_that_are_gone(self):
        uuid, nowhere = self.nova.add('host'), self.nova.add('host', None)
        gone = uuidutils.generate_uuid()
        server_action.add('act', [gone, uuid, nowhere])
        self.assertEqual([(uuid, 0, 'act')], self.nova.actions)
        told = ', '.join(sorted((gone, nowhere)))
        self.assertEqual(
            f'The action act is not noted of servers {told}: Nova does not '
            'have them\n',
            self.log.output,
        )

    def test_nova_is_away(self):
        """One line says so, whatever it is."""
        uuids = {self.nova.add('host') for _server in range(2)}
        for broken in (
            'InstanceMappingList.get_by_instance_uuids',
            'InstanceList.get_by_filters',
            'InstanceAction.action_start',
            'InstanceAction.action_finish',
        ):
            for fault in (
                exception.CellTimeout(),
                OSError('no\nroute'),
                KeyError(),
            ):

                def fail(*_args, fault=fault, **_kwargs):
                    raise fault

                with fixtures.MonkeyPatch(f'nova.objects.{broken}', fail):
                    server_action.add('act', uuids)
        self.assertEqual(12, self.log.output.count('\n'))
        for part in (*uuids, 'no\\nroute', ': KeyError'):
            self.assertIn(part, self.log.output)
