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

import types

from nova import exception
from nova import objects

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.virt import live_migration
from unit.virt import mixin_case

NODE, PROVIDER = mixin_case.NODE, mixin_case.PROVIDER
ACTIVE, INCOMING = arq_types.Role.ACTIVE, arq_types.Role.INCOMING


def an_instance(profile='gpu'):
    return types.SimpleNamespace(
        uuid='5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01',
        node='there',
        flavor=types.SimpleNamespace(
            memory_mb=64,
            extra_specs=(
                {'nova_accel:device_profile': profile} if profile else {}
            ),
        ),
    )


def an_arq(name, mdev_type='nvidia-11'):
    return arq_types.Arq(
        f'arq-{name}',
        arq_types.State.BOUND,
        'gpu',
        0,
        {},
        PROVIDER,
        attach_handle.AttachHandle(
            name, pci_address.PciAddress(0, 0x81, 0, 0), mdev_type
        ),
    )


class Attachments:
    """Of one instance: role -> what it holds."""

    def __init__(self):
        self.roles = {}
        self.held = self
        self.facts = {}
        self.stuck = False

    def check_migratable(self, instance_uuid):
        if self.stuck:
            raise exceptions.DeviceError('it cannot be migrated live')

    def migration_facts(self, instance_uuid, role=ACTIVE):
        return self.facts.get(role, {})

    def arqs_of(self, instance_uuid, role=ACTIVE):
        return self.roles.get(role, ())

    def move(self, instance_uuid, source, target):
        if self.stuck:
            raise exceptions.DeviceError('stuck')
        if source in self.roles:
            self.roles[target] = self.roles.pop(source)

    def release(self, instance_uuid, role=ACTIVE):
        self.roles.pop(role, None)


class Accelerators:
    """What the mixin uses of the parts of a host and of ``OsAcc``.

    The source has ``leaving``; the destination gets ``arriving``.
    """

    def __init__(self):
        self.api = self
        self.attachments = Attachments()
        self.leaving = self.arriving = ()
        self.fault = None
        self.plugged = []

    def held_on(self, nodename, instance_uuid, role):
        assert (nodename, role) == ('there', ACTIVE)
        return self.leaving

    def acquire(self, instance, profile, allocations, role):
        if self.fault is not None:
            raise self.fault
        (allocation,) = allocations
        assert (profile, allocation.rp_uuid, role) == (
            'gpu',
            PROVIDER,
            INCOMING,
        )
        self.attachments.roles[role] = self.arriving

    def ready(self, instance, role):
        if self.fault is not None:
            raise self.fault
        self.plugged.append(role)


class NovasDriver:
    """What the mixin is mixed into; remembers what is held in a method."""

    fails = False

    def _called(self, *_args, **_kwargs):
        self.seen = dict(self._accelerators.attachments.roles)
        if self.fails:
            raise exception.InternalError('it fails')

    def check_can_live_migrate_source(self, *_args):
        self._called()
        return objects.LibvirtLiveMigrateData()

    pre_live_migration = _called
    post_live_migration_at_source = _called
    post_live_migration_at_destination = _called
    rollback_live_migration_at_destination = _called

    def check_source_migrate_data_at_dest(
        self, ctxt, instance, migrate_data, migration, limits, allocs
    ):
        """Nova maps its own, and refuses what it does not know."""
        self._called()
        self.types = (
            migrate_data.source_mdev_types
            if 'source_mdev_types' in migrate_data
            else {}
        )
        if set(self.types) - {'novas'}:
            raise exception.MigrationPreCheckError(reason='unknown')
        if self.types:
            migrate_data.target_mdevs = {'novas': 'novas-target'}
        return migrate_data


class Driver(live_migration.LiveMigrationMixin, NovasDriver):
    pass


class LiveMigrationMixinTestCase(mixin_case.MixinTestCase):
    driver_class = Driver
    accelerators_class = Accelerators

    def call(self, method, instance=None):
        return getattr(self.driver, method)(None, instance or an_instance())

    def assert_held(self, **held):
        self.assertEqual(
            {arq_types.Role(role): devices for role, devices in held.items()},
            self.attachments.roles,
        )


class TestChecks(LiveMigrationMixinTestCase):
    def setUp(self):
        super().setUp()
        self.accelerators.leaving = (an_arq('a'), an_arq('b'))
        self.accelerators.arriving = (an_arq('c'), an_arq('d'))
        self.data = objects.LibvirtLiveMigrateData(
            source_mdev_types={'a': 'nvidia-11', 'b': 'nvidia-11'},
            pci_dev_map_src_dst={},
        )

    def check(self, instance=None):
        return self.driver.check_source_migrate_data_at_dest(
            None,
            instance or an_instance(),
            self.data,
            None,
            None,
            {
                NODE: {'resources': {'VCPU': 1}},
                PROVIDER: {'resources': {'VGPU': 2}},
            },
        )

    def assert_refused(self, text):
        error = self.assertRaises(exception.MigrationPreCheckError, self.check)
        self.assertIn(text, str(error))
        self.assert_held()

    def test_the_source_refuses(self):
        self.attachments.stuck = True
        error = self.assertRaises(
            exception.MigrationPreCheckError,
            self.call,
            'check_can_live_migrate_source',
        )
        self.assertIn(exceptions.DeviceError.PUBLIC, str(error))

    def test_the_destination_tells_what_is_in_the_place_of_what(self):
        data = self.check()
        self.assertEqual({'a': 'c', 'b': 'd'}, data.target_mdevs)
        self.assertEqual(
            {'a': 'nvidia-11', 'b': 'nvidia-11'}, data.source_mdev_types
        )
        self.assert_held(incoming=self.accelerators.arriving)

    def test_nothing_is_acquired_before_novas_checks(self):
        self.driver.fails = True
        self.assertRaises(exception.InternalError, self.check)
        self.assert_held()
        self.assertEqual({'a', 'b'}, set(self.data.source_mdev_types))

    def test_novas_own_beside_ours(self):
        self.data.source_mdev_types['novas'] = 'nvidia-12'
        self.assertEqual(
            {'a': 'c', 'b': 'd', 'novas': 'novas-target'},
            self.check().target_mdevs,
        )
        self.assertEqual({'novas': 'nvidia-12'}, self.driver.types)

    def test_pci_functions(self):
        self.data = objects.LibvirtLiveMigrateData(
            pci_dev_map_src_dst={'0000:01:00.0': '0000:02:00.0'}
        )
        self.accelerators.leaving = (an_arq('a', None),)
        self.accelerators.arriving = (an_arq('c', None),)
        data = self.check()
        self.assertEqual(
            {'0000:01:00.0': '0000:02:00.0', '0000:81:00.0': '0000:81:00.0'},
            data.pci_dev_map_src_dst,
        )
        # For the sake of a roll-back.
        self.assertEqual({}, data.target_mdevs)

    def facts(self, source, destination):
        """What the source tells Nova, and the destination finds."""
        self.accelerators.leaving = (an_arq('a', None),)
        self.accelerators.arriving = (an_arq('c', None),)
        self.attachments.facts = {
            ACTIVE: {'0000:81:00.0': source},
            INCOMING: {'0000:81:00.0': destination},
        }
        self.data = self.call('check_can_live_migrate_source')
        self.data.source_mdev_types['novas'] = 'nvidia-12'

    def test_facts_that_are_the_same_on_both_hosts(self):
        self.facts({'the ECC mode': 'Enabled'}, {'the ECC mode': 'Enabled'})
        self.check()
        self.assertEqual({'novas': 'nvidia-12'}, self.driver.types)
        self.assert_held(incoming=self.accelerators.arriving)

    def test_facts_that_differ(self):
        self.facts({'the ECC mode': 'Enabled'}, {'the ECC mode': 'Disabled'})
        self.assert_refused('')
        self.facts({'the ECC mode': 'Enabled'}, {})
        self.assert_refused('')

    def test_a_source_that_tells_nothing(self):
        self.facts({'the ECC mode': 'Enabled'}, {'the ECC mode': 'Enabled'})
        self.data = objects.LibvirtLiveMigrateData()
        self.assert_refused('')

    def test_another_type(self):
        self.accelerators.arriving = (an_arq('c'), an_arq('d', 'nvidia-12'))
        self.assert_refused('nvidia-12')

    def test_none_is_free(self):
        self.accelerators.fault = exceptions.AcceleratorsBusy('none is free')
        self.assert_refused(exceptions.AcceleratorsBusy.PUBLIC)

    def test_a_plain_server_is_novas_alone(self):
        self.data = objects.LibvirtLiveMigrateData()
        self.assertIs(self.data, self.check(an_instance(profile=None)))
        self.assertNotIn('target_mdevs', self.data)
        self.assert_held()


class TestMove(LiveMigrationMixinTestCase):
    def test_devices_are_made_before_the_guest_arrives(self):
        self.call('pre_live_migration')
        self.assertEqual([INCOMING], self.accelerators.plugged)

    def test_a_device_is_stuck(self):
        self.accelerators.fault = exceptions.DeviceError('stuck')
        error = self.assertRaises(
            exception.MigrationPreCheckError, self.call, 'pre_live_migration'
        )
        self.assertIn(exceptions.DeviceError.PUBLIC, str(error))

    def test_the_source_releases_at_the_end_even_of_a_failure(self):
        for fails in (False, True):
            self.driver.fails = fails
            self.attachments.roles = {ACTIVE: 'a'}
            if fails:
                self.assertRaises(
                    exception.InternalError,
                    self.call,
                    'post_live_migration_at_source',
                )
            else:
                self.call('post_live_migration_at_source')
            self.assertEqual({ACTIVE: 'a'}, self.driver.seen)
            self.assert_held()

    def test_what_came_in_is_active(self):
        self.attachments.roles = {INCOMING: 'c'}
        self.call('post_live_migration_at_destination')
        self.assert_held(active='c')

    def test_what_cannot_be_active_yet_fails_no_server(self):
        self.attachments.roles = {INCOMING: 'c'}
        self.attachments.stuck = True
        self.call('post_live_migration_at_destination')
        self.assert_held(incoming='c')

    def test_rolled_back(self):
        for fails in (False, True):
            self.driver.fails = fails
            self.attachments.roles = {INCOMING: 'c'}
            if fails:
                self.assertRaises(
                    exception.InternalError,
                    self.call,
                    'rollback_live_migration_at_destination',
                )
            else:
                self.call('rollback_live_migration_at_destination')
            self.assertEqual({INCOMING: 'c'}, self.driver.seen)
            self.assert_held()
