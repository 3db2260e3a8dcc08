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
import functools
import inspect
import types

import testtools

from nova_accel import exceptions
from nova_accel.virt import guest_partition

INSTANCE = types.SimpleNamespace(uuid='i1')

#: The hooks, with what Nova gives to them before the rest.
HOOKS = {
    'spawn': ('context', INSTANCE, 'image'),
    'destroy': ('context', INSTANCE, 'network'),
    'power_off': (INSTANCE, 60, 10),
    '_soft_reboot': (INSTANCE,),
    '_hard_reboot': ('context', INSTANCE, 'network'),
    'suspend': ('context', INSTANCE),
    'resume': ('context', INSTANCE, 'network'),
    'snapshot': ('context', INSTANCE, 'image'),
    'rescue': ('context', INSTANCE, 'network'),
    'unrescue': ('context', INSTANCE),
    'migrate_disk_and_power_off': ('context', INSTANCE, 'host2'),
    'finish_migration': ('context', 'migration', INSTANCE, 'disk'),
    'finish_revert_migration': ('context', INSTANCE, 'network'),
}


class Nova:
    """Nova's driver: it notes its calls, or fails."""

    fails = False

    def __init__(self):
        self.answers = {
            '_soft_reboot': True,
            'migrate_disk_and_power_off': 'disk',
        }

    def note(self, name, *args, **kwargs):
        self.calls.append((name, args, kwargs))
        if self.fails:
            raise ValueError
        return self.answers.get(name)


for _name in HOOKS:
    setattr(Nova, _name, functools.partialmethod(Nova.note, _name))


class Driver(guest_partition.GuestPartitionMixin, Nova):
    pass


class TestGuestPartition(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.driver = Driver()
        self.driver.calls = self.calls = []
        self.driver._accelerators = types.SimpleNamespace(
            fabric=self,
            sysfs=None,
            attachments=types.SimpleNamespace(held=self),
        )
        self.driver._host = types.SimpleNamespace(get_guest=self.get_guest)
        self.has_partition = False
        self.fault = None
        self.journal_fault = None
        self.left = ()

    def has(self, instance_uuid):
        return self.has_partition

    def arqs_of(self, instance_uuid):
        if self.journal_fault:
            raise self.journal_fault
        return ()

    def left_by(self, instance_uuid):
        return self.left

    def confirm(self, instance_uuid):
        self.calls.append(('confirms', instance_uuid))
        if self.fault is not None:
            raise self.fault

    def get_guest(self, instance):
        return types.SimpleNamespace(
            pause=lambda: self.calls.append('pause'),
            resume=lambda: self.calls.append('resume'),
        )

    def reboot(self):
        """The answer to a soft reboot, and what was done after it."""
        self.calls.clear()
        done = self.driver._soft_reboot(INSTANCE)
        self.assertEqual(('ends', 'i1'), self.calls[-1])
        return done, self.calls[2:-1]

    @contextlib.contextmanager
    def during(self, instance_uuid):
        self.calls.append(('begins', instance_uuid))
        try:
            yield
        finally:
            self.calls.append(('ends', instance_uuid))

    def test_each_hook(self):
        for fails in (False, True):
            self.driver.fails = fails
            for name, args in HOOKS.items():
                self.calls.clear()
                kwargs = {'power_on': True} if len(args) > 2 else {}
                call = getattr(self.driver, name)
                if fails:
                    self.assertRaises(ValueError, call, *args, **kwargs)
                else:
                    call(*args, **kwargs)
                self.assertEqual(
                    [
                        ('begins', 'i1'),
                        (name, args, kwargs),
                        ('ends', 'i1'),
                    ],
                    self.calls,
                )

    def test_an_instance_that_nova_names(self):
        self.driver.finish_migration('context', 'm', instance=INSTANCE)
        self.assertEqual(
            [
                ('begins', 'i1'),
                ('finish_migration', ('context', 'm'), {'instance': INSTANCE}),
                ('ends', 'i1'),
            ],
            self.calls,
        )

    def test_answers(self):
        for name in ('_soft_reboot', 'migrate_disk_and_power_off'):
            self.assertEqual(
                self.driver.answers[name],
                getattr(self.driver, name)(*HOOKS[name]),
            )

    def test_a_soft_reboot_is_looked_at_again(self):
        self.has_partition = True
        looked = ['pause', ('confirms', 'i1')]
        self.assertEqual((True, [*looked, 'resume']), self.reboot())
        self.fault = exceptions.FabricError('it is lost')
        self.assertEqual((False, looked), self.reboot())

    def test_a_soft_reboot_that_has_failed(self):
        self.has_partition = True
        self.driver.answers['_soft_reboot'] = False
        self.assertEqual((False, []), self.reboot())

    def test_a_guest_that_is_not_to_have_a_device_any_more(self):
        """The hard reboot that follows gives it none."""
        self.left = ('its ARQ',)
        self.calls.clear()
        self.assertFalse(self.driver._soft_reboot(INSTANCE))
        self.assertEqual(
            [], [call for call in self.calls if call[0] == '_soft_reboot']
        )

    def test_a_soft_reboot_whose_devices_are_not_known(self):
        self.journal_fault = exceptions.DeviceError('it is damaged')
        self.assertEqual((False, []), self.reboot())

    def test_all_are_here(self):
        self.assertEqual(
            {*HOOKS, '_stays_joined'},
            {
                name
                for name, _method in inspect.getmembers(
                    guest_partition.GuestPartitionMixin, inspect.isfunction
                )
                if name in vars(guest_partition.GuestPartitionMixin)
            },
        )
