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
import types

from nova import exception
from nova.compute import task_states
import testtools

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.virt import cold_migration
from nova_accel.virt import server_request
from unit.virt import mixin_case

INSTANCE = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
NODE, PROVIDER = mixin_case.NODE, mixin_case.PROVIDER
ACTIVE, OLD = arq_types.Role.ACTIVE, arq_types.Role.OLD


def an_instance(profile='gpu', task_state=None, host='here'):
    return types.SimpleNamespace(
        uuid=INSTANCE,
        host=host,
        task_state=task_state,
        old_flavor=None,
        flavor=types.SimpleNamespace(
            extra_specs=(
                {'nova_accel:device_profile': profile} if profile else {}
            )
        ),
    )


class Attachments:
    """Of one instance: role -> what it holds."""

    def __init__(self, **held):
        self.roles = {
            arq_types.Role(role): what for role, what in held.items()
        }
        self.held = self
        self.stuck = False

    def has(self, instance_uuid, role=ACTIVE):
        return role in self.roles

    def move(self, instance_uuid, source, target):
        if self.stuck:
            raise exceptions.DeviceError('the device is stuck')
        if source in self.roles:
            self.roles[target] = self.roles.pop(source)

    def release(self, instance_uuid, role=ACTIVE):
        self.roles.pop(role, None)


class Accelerators:
    """What the mixin uses of the parts of a host and of ``OsAcc``."""

    node = types.SimpleNamespace(service_host='here')
    busy = False

    def __init__(self):
        self.attachments = Attachments()

    @contextlib.contextmanager
    def acquired(self, context, instance, allocations, keeps):
        if self.busy:
            raise exceptions.AcceleratorsBusy('none is free')
        if server_request.profile(instance.flavor) is not None:
            self.attachments.roles[ACTIVE] = [
                (allocation.rp_uuid, allocation.resources)
                for allocation in allocations
            ]
        try:
            yield
        except BaseException:
            if not keeps():
                self.attachments.release(instance.uuid)
            raise


class OtherMixin:
    """What the mixin is mixed into; each method tells what is held in it."""

    fails = False
    kept = False

    def _called(self, *_args, **_kwargs):
        self.seen = dict(self._accelerators.attachments.roles)
        if self.fails:
            raise exception.InternalError('it fails')

    migrate_disk_and_power_off = _called
    finish_migration = _called
    confirm_migration = _called
    finish_revert_migration = _called
    _hard_reboot = _called

    def cleanup(self, context, instance, *args, **kwargs):
        if not self._keeps_accelerators(instance):
            self._accelerators.attachments.release(instance.uuid)

    def _keeps_accelerators(self, instance):
        return self.kept


class Driver(cold_migration.MigrationMixin, OtherMixin):
    pass


class TestMigrationMixin(mixin_case.MixinTestCase):
    driver_class = Driver
    accelerators_class = Accelerators

    def hold(self, **held):
        self.attachments.roles = {
            arq_types.Role(role): devices for role, devices in held.items()
        }

    def assert_held(self, **held):
        self.assertEqual(
            {arq_types.Role(role): devices for role, devices in held.items()},
            self.attachments.roles,
        )

    def migrate(self):
        self.driver.migrate_disk_and_power_off(
            None, an_instance(), 'there', None, None
        )

    def finish(self, instance):
        self.driver.finish_migration(
            None,
            None,
            instance,
            '[]',
            None,
            None,
            False,
            {
                NODE: {'resources': {'VCPU': 1}},
                PROVIDER: {'resources': {'VGPU': 1}},
            },
        )

    def test_the_source_sets_aside_what_there_is(self):
        self.hold(active='a')
        self.migrate()
        self.assert_held(old='a')
        self.assertEqual({OLD: 'a'}, self.driver.seen)

    def test_a_plain_server_has_nothing_to_set_aside(self):
        self.migrate()
        self.assert_held()

    def test_what_an_earlier_move_left_is_released(self):
        self.hold(old='stale')
        self.driver.fails = True
        self.assertRaises(exception.InternalError, self.migrate)
        self.assert_held()

    def test_a_source_that_fails_has_it_active_again(self):
        self.hold(active='a')
        self.driver.fails = True
        self.assertRaises(exception.InternalError, self.migrate)
        self.assert_held(active='a')

    def test_what_cannot_be_set_aside_is_a_refusal(self):
        self.hold(active='a')
        self.attachments.stuck = True
        error = self.assertRaises(
            exception.InstanceFaultRollback, self.migrate
        )
        self.assertIn(
            exceptions.DeviceError.PUBLIC, str(error.inner_exception)
        )
        self.assert_held(active='a')

    def test_the_destination_holds_what_is_allocated_of_ours(self):
        self.hold(old='a')
        self.finish(an_instance())
        self.assert_held(old='a', active=[(PROVIDER, {'VGPU': 1})])
        self.assertEqual(self.attachments.roles, self.driver.seen)

    def test_a_plain_flavor_gets_nothing(self):
        self.hold(old='a')
        self.finish(an_instance(profile=None))
        self.assert_held(old='a')

    def test_a_destination_that_fails_keeps_it_for_a_hard_reboot(self):
        self.driver.fails = True
        self.assertRaises(exception.InternalError, self.finish, an_instance())
        self.assert_held(active=[(PROVIDER, {'VGPU': 1})])

    def test_busy_is_a_fault_that_nova_knows(self):
        self.accelerators.busy = True
        error = self.assertRaises(
            exception.ComputeResourcesUnavailable, self.finish, an_instance()
        )
        self.assertIn(exceptions.AcceleratorsBusy.PUBLIC, str(error))
        self.assert_held()

    def test_confirmed(self):
        self.hold(old='a', active='b')
        self.driver.confirm_migration(None, None, an_instance(), None)
        self.assert_held(active='b')
        self.assertEqual({OLD: 'a', ACTIVE: 'b'}, self.driver.seen)

    def test_confirmed_in_vain(self):
        self.hold(old='a', active='b')
        self.driver.fails = True
        self.assertRaises(
            exception.InternalError,
            self.driver.confirm_migration,
            None,
            None,
            an_instance(),
            None,
        )
        self.assert_held(active='b')

    def test_reverted_on_the_same_host(self):
        self.hold(old='a', active='b')
        instance = an_instance(task_state=task_states.RESIZE_REVERTING)
        self.driver.cleanup(None, instance, None)
        self.assert_held(old='a')
        self.driver.finish_revert_migration(None, instance, None, None)
        self.assert_held(active='a')
        self.assertEqual({ACTIVE: 'a'}, self.driver.seen)

    def test_reverted_although_the_disk_was_full(self):
        """What the destination has got is not released yet."""
        self.hold(old='a', active='b')
        instance = an_instance(task_state=task_states.RESIZE_REVERTING)
        self.driver.finish_revert_migration(None, instance, None, None)
        self.assert_held(active='a')
        self.assertEqual({ACTIVE: 'a'}, self.driver.seen)

    def test_a_crash_before_it_was_set_aside(self):
        self.hold(active='a')
        self.driver.finish_revert_migration(None, an_instance(), None, None)
        self.assert_held(active='a')

    def test_a_revert_that_failed_is_repaired_by_a_hard_reboot(self):
        self.hold(old='a')
        self.driver._hard_reboot(None, an_instance(), None, None)
        self.assertEqual({ACTIVE: 'a'}, self.driver.seen)

    def test_a_hard_reboot_after_a_failed_resize(self):
        self.hold(old='a', active='b')
        instance = an_instance()
        instance.old_flavor = instance.flavor
        self.driver._hard_reboot(None, instance, None, None)
        self.assert_held(old='a', active='b')

    def test_deleted(self):
        self.hold(old='a', active='b')
        self.driver.cleanup(
            None, an_instance(task_state=task_states.DELETING), None
        )
        self.assert_held()

    def test_torn_down_to_be_made_again(self):
        self.hold(old='a', active='b')
        self.driver.kept = True
        self.driver.cleanup(None, an_instance(), None)
        self.assert_held(old='a', active='b')

    def test_the_source_of_a_resize_to_another_cell(self):
        """It destroys its guest, and may have to make it again."""
        self.hold(active='a')
        migrating = task_states.RESIZE_MIGRATING
        self.driver.cleanup(None, an_instance(task_state=migrating), None)
        self.assert_held(active='a')
        # Of an earlier life of the instance on this host.
        self.driver.cleanup(
            None, an_instance(task_state=migrating, host='there'), None
        )
        self.assert_held()


class TestRestore(testtools.TestCase):
    def test_what_was_set_aside_is_active(self):
        attachments = Attachments(old=1)
        cold_migration.restore(attachments, INSTANCE)
        self.assertEqual({ACTIVE: 1}, attachments.roles)

    def test_what_is_active_stays_so(self):
        attachments = Attachments(active=2, old=1)
        cold_migration.restore(attachments, INSTANCE)
        self.assertEqual({ACTIVE: 2, OLD: 1}, attachments.roles)

    def test_what_is_active_after_a_revert_was_not_released(self):
        attachments = Attachments(active=2, old=1)
        cold_migration.restore(attachments, INSTANCE, is_reverted=True)
        self.assertEqual({ACTIVE: 1}, attachments.roles)

    def restored(self, **fields):
        attachments = Attachments(old=1)
        cold_migration.restore_reverted(
            attachments,
            types.SimpleNamespace(
                **{
                    'uuid': INSTANCE,
                    'host': 'here',
                    'old_flavor': None,
                    **fields,
                }
            ),
            'here',
        )
        return ACTIVE in attachments.roles

    def test_only_what_a_revert_brought_back(self):
        self.assertTrue(self.restored())
        self.assertFalse(self.restored(host='there'))
        self.assertFalse(self.restored(old_flavor=object()))
