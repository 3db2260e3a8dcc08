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


import oslo_messaging
import testtools

from nova_accel import exceptions
from nova_accel.client import servers
from nova_accel.model import nova_server
from nova_accel.model.fpga import programming_record
from nova_accel.model.providers import counted
from rig.stubs import nova_records

HERE, THERE = 'here', 'there'


class TestUseOf(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.nova = self.useFixture(nova_records.NovaRecords())

    def test_only_one_that_is_stopped_without_a_task_is_stopped(self):
        for vm_state, task_state, expected in (
            ('stopped', None, True),
            ('stopped', 'powering-on', False),
            ('stopped', 'deleting', False),
            ('active', None, False),
            ('suspended', None, False),
            ('paused', None, False),
            ('rescued', None, False),
            ('resized', None, False),
            ('error', None, False),
        ):
            instance = self.nova.add_instance(
                HERE, vm_state=vm_state, task_state=task_state
            )
            self.assertEqual(
                programming_record.Holder('project', expected),
                servers.holder(instance.uuid),
                (vm_state, task_state),
            )

    def test_one_that_is_gone(self):
        self.assertRaises(exceptions.Conflict, servers.holder, 'gone')

    def test_nova_is_away(self):
        instance = self.nova.add_instance(HERE, vm_state='stopped')
        self.nova.fault = oslo_messaging.MessagingTimeout()
        self.assertRaises(
            exceptions.ServiceUnavailable, servers.holder, instance.uuid
        )


class TestNetworkInfos(testtools.TestCase):
    def test_existing_instances(self):
        nova = self.useFixture(nova_records.NovaRecords())
        ports = [{'id': 'port'}]
        here = nova.add_instance(HERE, get_network_info=lambda: ports)
        nova.add_instance(HERE)
        self.assertEqual(
            {here.uuid: ports}, servers.network_infos([here.uuid, 'gone'])
        )
        self.assertEqual(['InstanceList.get_by_filters'], nova.calls)


class TestOfHost(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.nova = self.useFixture(nova_records.NovaRecords())

    def found(self, *instances):
        uuids = [instance.uuid for instance in instances]
        found = servers.of_host(HERE, uuids)
        return [found.get(uuid) for uuid in uuids]

    def test_wherever_they_are(self):
        here = self.nova.add_instance(HERE, task_state='spawning')
        there = self.nova.add_instance(THERE, old_flavor=object())
        nowhere = self.nova.add_instance(None, vm_state='building')
        gone = self.nova.add_instance(HERE)
        del self.nova.instances[gone.uuid]
        self.assertEqual(
            [
                nova_server.Server(HERE, 'active', 'spawning'),
                nova_server.Server(THERE, 'active', is_resized=True),
                nova_server.Server(None, 'building'),
                None,
            ],
            self.found(here, there, nowhere, gone),
        )

    def test_only_those_that_are_asked_for(self):
        self.nova.add_instance(HERE)
        self.assertEqual({}, servers.of_host(HERE, []))
        self.assertEqual(3, len(self.nova.calls))

    def test_migrations_of_the_host(self):
        for status in (
            'migrating',
            'finished',
            'running',
            'preparing',
            'post-migrating',
            'accepted',
        ):
            instance = self.nova.add_instance(THERE)
            for source, destination in ((HERE, THERE), (THERE, HERE)):
                self.nova.migrations.clear()
                self.nova.add_migration(instance, status, source, destination)
                self.assertEqual(
                    [nova_server.Server(THERE, 'active', is_migrating=True)],
                    self.found(instance),
                )

    def test_a_live_migration_that_has_no_destination_yet(self):
        instance = self.nova.add_instance(THERE)
        self.nova.add_migration(
            instance, 'accepted', THERE, None, 'live-migration'
        )
        self.assertEqual(
            [nova_server.Server(THERE, 'active', is_migrating=True)],
            self.found(instance),
        )

    def test_migrations_that_are_over_or_others(self):
        instance = self.nova.add_instance(HERE)
        for status in (
            'confirmed',
            'reverted',
            'error',
            'failed',
            'completed',
            'cancelled',
            'done',
        ):
            self.nova.add_migration(instance, status, HERE, THERE)
        self.nova.add_migration(instance, 'migrating', 'x', 'y')
        self.assertEqual(
            [nova_server.Server(HERE, 'active')], self.found(instance)
        )

    def test_one_that_moves_between_cells(self):
        """Its record in this one may be hidden."""
        instance = self.nova.add_instance(THERE)
        self.nova.add_migration(instance, 'finished', HERE, THERE)
        del self.nova.instances[instance.uuid]
        self.assertEqual(
            [nova_server.Server(None, is_migrating=True)], self.found(instance)
        )

    def test_migrations_are_asked_for_first(self):
        self.found(self.nova.add_instance(THERE))
        self.assertEqual(
            [
                *['MigrationList.get_by_filters'] * 2,
                'InstanceList.get_by_host',
                'InstanceList.get_by_filters',
            ],
            self.nova.calls,
        )

    def test_nova_does_not_answer(self):
        self.nova.fault = oslo_messaging.MessagingTimeout()
        self.assertRaises(
            oslo_messaging.MessagingTimeout, servers.of_host, HERE, []
        )


class TestOfMigrations(testtools.TestCase):
    def test_which_consumers_are_migrations(self):
        nova = self.useFixture(nova_records.NovaRecords())
        instance = nova.add_instance(HERE)
        for status in ('finished', 'error', 'migrating', 'migrating'):
            nova.add_migration(instance, status, HERE, HERE)
        *asked, deleted, _not_asked = nova.migrations
        # Nova deletes them with their server.
        deleted.deleted = True
        self.assertEqual(
            {
                migration.uuid: counted.Migration(instance.uuid, is_unfinished)
                for migration, is_unfinished in zip(
                    [*asked, deleted], (True, False, False), strict=True
                )
            },
            servers.of_migrations(
                {
                    instance.uuid,
                    deleted.uuid,
                    *(migration.uuid for migration in asked),
                }
            ),
        )

    def test_nobody_is_asked_of_nothing(self):
        nova = self.useFixture(nova_records.NovaRecords())
        self.assertEqual({}, servers.of_migrations(set()))
        self.assertEqual(frozenset(), servers.deleted(()))
        self.assertEqual([], nova.calls)


class TestOwners(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.nova = self.useFixture(nova_records.NovaRecords())
        self.kept = self.nova.add_instance(HERE)
        self.gone = self.nova.add_instance(HERE, deleted=True)

    def test_which_are_deleted(self):
        self.assertEqual(
            {self.gone.uuid},
            servers.deleted({self.kept.uuid, self.gone.uuid, 'unknown'}),
        )

    def test_whose_it_is(self):
        self.assertEqual(
            servers.Owner('project', 'user', {'VCPU': 1}),
            servers.owner(self.kept.uuid),
        )
        self.assertRaises(exceptions.Conflict, servers.owner, self.gone.uuid)
