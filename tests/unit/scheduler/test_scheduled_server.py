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


import contextlib

import fixtures
from nova import context as nova_context
from nova import exception
from nova import objects
import testtools

from nova_accel.scheduler import scheduled_server
from nova_accel.testing import scheduling


class TestFind(testtools.TestCase):
    """Nova's databases are imitated."""

    def setUp(self):
        super().setUp()
        self.spec = scheduling.request_spec()
        self.mapping = self.use(
            'nova.objects.InstanceMapping.get_by_instance_uuid'
        )
        self.mapping.return_value = objects.InstanceMapping(
            cell_mapping=objects.CellMapping()
        )
        self.instance = self.use('nova.objects.Instance.get_by_uuid')
        self.use('nova.context.target_cell').side_effect = (
            lambda _context, cell: contextlib.nullcontext(cell)
        )

    def use(self, name):
        return self.useFixture(fixtures.MockPatch(name)).mock

    def find(self):
        return scheduled_server.find(
            nova_context.get_admin_context(), self.spec
        )

    def test_in_a_cell(self):
        self.instance.side_effect = lambda cell, uuid, expected_attrs: (
            cell,
            uuid,
            *expected_attrs,
        )
        self.assertEqual(
            (
                self.mapping.return_value.cell_mapping,
                self.spec.instance_uuid,
                'flavor',
            ),
            self.find(),
        )

    def test_in_no_cell_yet(self):
        self.mapping.return_value = objects.InstanceMapping(cell_mapping=None)
        self.assertIsNone(self.find())

    def test_unknown(self):
        for mock, fault in (
            (
                self.instance,
                exception.InstanceNotFound(instance_id='i'),
            ),
            (self.mapping, exception.InstanceMappingNotFound(uuid='i')),
        ):
            mock.side_effect = fault
            self.assertIsNone(self.find())
