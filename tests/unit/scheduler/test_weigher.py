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
from nova import objects
from nova.scheduler import host_manager
from nova.scheduler import weights
import sqlalchemy as sa
import testtools

from nova_accel import conf
from nova_accel.model import naming
from nova_accel.scheduler import weigher
from nova_accel.testing import database
from nova_accel.testing import reports
from nova_accel.testing import scheduling

CONF = conf.CONF


class TestAcceleratorWeigher(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.database = self.useFixture(database.Database())
        self.output = self.useFixture(fixtures.FakeLogger())

    def _report(self, **fpgas):
        for hostname, number in fpgas.items():
            reports.SimulatedHost(hostname, (number,)).report()

    def _weights(self, *classes, aggregates=()):
        """The hosts a, b, c as Nova weighs them: name -> weight."""
        spec = scheduling.request_spec(
            groups=[
                objects.RequestGroup(
                    requester_id=f'device_profile_{index}',
                    resources={resource_class: 1},
                    required_traits={naming.OWNERSHIP_TRAIT},
                )
                for index, resource_class in enumerate(classes)
            ]
        )
        hosts = []
        for name in 'abc':
            hosts.append(host_manager.HostState(f'{name}.service', name, None))
            hosts[-1].aggregates = list(aggregates)
        return {
            weighed.obj.nodename: weighed.weight
            for weighed in weights.HostWeightHandler().get_weighed_objects(
                [weigher.AcceleratorWeigher()], hosts, spec
            )
        }

    def test_more_free_ones_for_those_who_ask(self):
        self._report(a=1, b=4)
        self.assertEqual({'b': 1, 'a': 0.25, 'c': 0}, self._weights('FPGA'))

    def test_other_classes_do_not_count(self):
        self._report(a=1, b=4)
        self.assertEqual(
            {'a': 0, 'b': 0, 'c': 0}, self._weights('CUSTOM_QAT', 'VGPU')
        )

    def test_fewer_free_ones_for_all_others(self):
        self._report(a=1, b=4)
        self.assertEqual({'c': 1, 'a': 0.75, 'b': 0}, self._weights())

    def test_multiplier(self):
        self._report(a=1, b=4)
        CONF.set_override('accelerator_weight_multiplier', -2.0, 'nova_accel')
        self.addCleanup(
            CONF.clear_override, 'accelerator_weight_multiplier', 'nova_accel'
        )
        self.assertEqual({'c': 0, 'a': -0.5, 'b': -2}, self._weights('FPGA'))

    def test_multiplier_of_an_aggregate(self):
        self._report(a=1, b=4)
        aggregate = objects.Aggregate(
            metadata={'accelerator_weight_multiplier': '3'}
        )
        self.assertEqual(
            {'b': 3, 'a': 0.75, 'c': 0},
            self._weights('FPGA', aggregates=[aggregate]),
        )

    def test_one_statement_however_many_hosts(self):
        self._report(a=1, b=4, c=2)
        self.assertEqual(1, self._statements('FPGA', 'VGPU'))

    def test_turned_off_costs_nothing(self):
        CONF.set_override('accelerator_weight_multiplier', 0, 'nova_accel')
        self.addCleanup(
            CONF.clear_override, 'accelerator_weight_multiplier', 'nova_accel'
        )
        self.assertEqual(0, self._statements('FPGA'))

    def _statements(self, *classes):
        """How many reach the database; what begins and ends does not count."""
        seen = []

        def note(_connection, _cursor, statement, *_arguments):
            if statement.startswith(('SELECT', 'INSERT', 'UPDATE', 'DELETE')):
                seen.append(statement)

        sa.event.listen(self.database.engine, 'before_cursor_execute', note)
        self.addCleanup(
            sa.event.remove,
            self.database.engine,
            'before_cursor_execute',
            note,
        )
        self._weights(*classes)
        return len(seen)

    def test_one_host_alone(self):
        self._report(a=3)
        host = host_manager.HostState('a.service', 'a', None)
        self.assertEqual(
            -3,
            weigher.AcceleratorWeigher()._weigh_object(
                host, scheduling.request_spec()
            ),
        )

    def test_database_fault(self):
        self.useFixture(database.Database(tables=False))
        self.assertEqual({'a': 0, 'b': 0, 'c': 0}, self._weights())
        self.assertIn('not weighed', self.output.output)

    def test_database_not_configured(self):
        CONF.clear_override('connection', 'nova_accel_database')
        database._forget_engine()
        self.assertEqual({'a': 0, 'b': 0, 'c': 0}, self._weights('FPGA'))
        self.assertIn('[nova_accel_database] connection', self.output.output)
