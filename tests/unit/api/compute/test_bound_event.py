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

import collections

import fixtures
from nova import exception
from nova import objects
from oslo_utils import uuidutils
import testtools

from nova_accel.api.compute import bound_event

objects.register_all()


class Nova(fixtures.Fixture):
    """Instances in cells, and the computes that events go to.

    :ivar events: host -> what it has got: instance uuid, name, status, tag
    :ivar actions: instance uuid, number of its cell and name of each action
        that has begun and ended
    :ivar lookups: how often a database was asked
    """

    def __init__(self):
        super().__init__()
        self._cells = [
            objects.CellMapping(
                uuid=uuidutils.generate_uuid(), name=f'cell{number}'
            )
            for number in range(2)
        ]
        self._instances = {}
        self._begun = {}
        self.actions = []
        self.events = collections.defaultdict(list)
        self.lookups = 0

    def _setUp(self):
        for target, stand_in in (
            (
                'nova.objects.InstanceMappingList.get_by_instance_uuids',
                self._mappings,
            ),
            ('nova.objects.InstanceList.get_by_filters', self._find),
            ('nova.objects.InstanceAction.action_start', self._start),
            ('nova.objects.InstanceAction.action_finish', self._finish),
            ('nova.context.set_target_cell', self._target),
            ('nova.compute.api.API', lambda: self),
            ('nova_accel.api.compute.nova_setup.ensure', lambda: None),
        ):
            self.useFixture(fixtures.MockPatch(target, stand_in))

    def add(self, host, cell=0):
        """An instance, or one that is in no cell yet; its uuid."""
        uuid = uuidutils.generate_uuid()
        self._instances[uuid] = (
            None if cell is None else self._cells[cell],
            host,
        )
        return uuid

    def _mappings(self, context, uuids):
        self.lookups += 1
        return [
            objects.InstanceMapping(
                instance_uuid=uuid, cell_mapping=self._instances[uuid][0]
            )
            for uuid in uuids
            if uuid in self._instances
        ]

    def _target(self, context, cell):
        context.cell_uuid = cell and cell.uuid

    def _find(self, context, filters, expected_attrs):
        self.lookups += 1
        return [
            objects.Instance(
                context, uuid=uuid, host=host, migration_context=None
            )
            for uuid, (cell, host) in self._instances.items()
            if cell is not None
            and cell.uuid == context.cell_uuid
            and uuid in filters['uuid']
        ]

    def _start(self, context, uuid, name, want_result):
        key = uuid, context.request_id
        if key in self._begun:
            raise ValueError('Nova could not tell which of them ends')
        self._begun[key] = name

    def _finish(self, context, uuid, want_result):
        name = self._begun[uuid, context.request_id]
        [cell] = [
            number
            for number, cell in enumerate(self._cells)
            if cell.uuid == context.cell_uuid
        ]
        self.actions.append((uuid, cell, name))

    def external_instance_event(self, context, instances, events):
        """As of Nova's compute API; each instance knows its cell."""
        by_uuid = {instance.uuid: instance for instance in instances}
        for event in events:
            instance = by_uuid[event.instance_uuid]
            self.events[instance._context.cell_uuid, instance.host].append(
                (instance.uuid, event.name, event.status, event.tag)
            )

    def got(self, host, cell=0):
        return sorted(self.events[self._cells[cell].uuid, host])


def arq(instance_uuid, state='Bound'):
    return {
        'uuid': uuidutils.generate_uuid(),
        'instance_uuid': instance_uuid,
        'state': state,
    }


def expected(request, status='completed'):
    return (
        request['instance_uuid'],
        'accelerator-request-bound',
        status,
        request['uuid'],
    )


class TestSend(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.nova = self.useFixture(Nova())

    def test_of_one_host(self):
        arqs = [arq(self.nova.add('host1')) for _arq in range(2)]
        bound_event.send(arqs)
        self.assertEqual(sorted(map(expected, arqs)), self.nova.got('host1'))

    def test_of_those_that_are_not_made_again(self):
        instance = self.nova.add('host1')
        made, failed = arq(instance), arq(instance, 'Provisioning')
        bound_event.send([made, failed])
        self.assertEqual(
            sorted([expected(made), expected(failed, 'failed')]),
            self.nova.got('host1'),
        )

    def test_each_in_its_cell(self):
        arqs = [arq(self.nova.add('host', cell)) for cell in range(2)]
        bound_event.send(arqs)
        for cell in range(2):
            self.assertEqual(
                [expected(arqs[cell])], self.nova.got('host', cell)
            )

    def test_as_many_lookups_for_one_as_for_many(self):
        instance = self.nova.add('host1')
        bound_event.send([arq(instance)])
        before, self.nova.lookups = self.nova.lookups, 0
        bound_event.send([arq(instance) for _arq in range(8)])
        self.assertEqual(before, self.nova.lookups)

    def test_none(self):
        bound_event.send([])
        self.assertEqual((0, {}), (self.nova.lookups, self.nova.events))

    def test_instances_without_a_host(self):
        """Being built, scheduled, or of no cloud that Nova knows."""
        for instance in (
            self.nova.add(None),
            self.nova.add('host1', None),
            uuidutils.generate_uuid(),
        ):
            bound_event.send([arq(instance)])
        self.assertEqual({}, self.nova.events)
        self.assertEqual('', self.log.output)

    def test_nova_is_away(self):
        """It is logged, and that is all."""

        def fail(*_args, **_kwargs):
            raise exception.DBNotAllowed(binary='nova-compute')

        request = arq(self.nova.add('host1'))
        for broken in (
            'nova.objects.InstanceMappingList.get_by_instance_uuids',
            'nova.objects.InstanceList.get_by_filters',
            'nova.compute.api.API',
        ):
            with fixtures.MockPatch(broken, fail):
                bound_event.send([request])
        self.assertEqual(
            3, self.log.output.count(f'binding of ARQs {request["uuid"]}')
        )
