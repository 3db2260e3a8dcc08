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

from nova import objects
from nova.tests import fixtures as nova_fixtures
from nova.tests.fixtures import libvirt as fakelibvirt
import testtools

from nova_accel import exceptions
from nova_accel.client import our_allocations
from nova_accel.testing import fake_sysfs
from nova_accel.virt import hot_plug
from nova_accel.virt import profile_setting
from unit.virt import test_replacing

HELD, SPARE = test_replacing.FAILED, test_replacing.SPARE
GPU = dict(HELD.group)
OTHER = {'resources:PGPU': '1', 'accel:numa_affinity': 'preferred'}


class Host(test_replacing.Host):
    def __init__(self):
        super().__init__()
        self.held_arqs = (HELD,)
        self.left = ()
        self.joins = ()
        self.kept = self.committed = None

    def unusable(self, orders):
        return frozenset()

    def excluded(self, taken):
        return frozenset()

    def arqs(self):
        return list(self.held_arqs)

    def arqs_of(self, instance_uuid):
        return self.held_arqs

    def left_by(self, instance_uuid):
        return self.left

    def is_for(self, arqs):
        return any(arq in self.joins for arq in arqs)

    def add(self, instance_uuid, project_id, wanted, claim, kept):
        claim()
        self.done.append('add')
        self.kept = kept
        self.left = (SPARE,)
        return (SPARE,)

    def commit(self, instance_uuid, arqs, is_renamed):
        self.done.append('commit')
        self.committed = [
            (
                arq.handle,
                arq.device_profile_name,
                arq.device_profile_group_id,
            )
            for arq in arqs
        ]
        assert is_renamed
        handles = {arq.handle for arq in arqs}
        self.left = tuple(
            arq for arq in self.held_arqs if arq.handle not in handles
        )


class Driver(profile_setting.ProfileMixin):
    def __init__(self, host, is_running):
        self._accelerators = host
        self._host = test_replacing.Driver(host, is_running)


class TestProfileSetting(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(nova_fixtures.LibvirtFixture())
        self.host = Host()
        self.host.sysfs = self.useFixture(fake_sysfs.FakeSysfs()).sysfs
        self.specs = {'nova_accel:device_profile': 'gpu'}
        self.faults = {}
        self.patch(our_allocations, 'claim', lambda *_args: None)
        for name in ('take_out', 'put_in'):
            self.patch(hot_plug, name, self.hot_plug(name))

    def hot_plug(self, name):
        def call(guest, arqs, *arguments):
            self.host.done.append(
                f'{name} {" ".join(arq.uuid for arq in arqs)}'
            )
            if name in self.faults:
                raise self.faults[name]

        return call

    def set(self, name, *groups, is_running=True):
        instance = types.SimpleNamespace(
            **vars(test_replacing.INSTANCE),
            flavor=objects.Flavor(extra_specs=self.specs),
        )
        Driver(self.host, is_running)._set(instance, name, groups)

    def test_what_is_new_goes_in_before_what_leaves(self):
        self.set('other', OTHER)
        self.assertEqual(
            [
                'add',
                'program',
                'plug',
                'put_in spare',
                'commit',
                'take_out failed',
                'settle',
            ],
            self.host.done,
        )
        self.assertEqual({}, self.host.kept)
        self.assertTrue(self.host.is_doubtful)

    def test_a_stopped_guest_gets_it_at_its_start(self):
        self.set('other', OTHER, is_running=False)
        self.assertEqual(['add', 'commit', 'settle'], self.host.done)

    def test_what_stays_gets_other_names(self):
        self.set('two', OTHER, GPU)
        self.assertEqual(
            [(SPARE.handle, 'gpu', 0), (HELD.handle, 'two', 1)],
            self.host.committed,
        )
        self.assertEqual({HELD.uuid: 1}, self.host.kept)
        self.assertNotIn('take_out failed', self.host.done)

    def test_none(self):
        self.set(None)
        self.assertEqual(
            ['commit', 'take_out failed', 'settle'], self.host.done
        )
        self.assertEqual([], self.host.committed)

    def test_a_plain_server_without_one(self):
        self.host.held_arqs, self.specs = (), {}
        self.set(None)
        self.assertEqual([], self.host.done)

    def test_the_guest_holds_on(self):
        """It is not an error: the server has what it asks for."""
        for fault in (
            exceptions.DeviceError('it holds on'),
            fakelibvirt.libvirtError('no'),
        ):
            self.host.done.clear()
            self.faults['take_out'] = fault
            self.set('other', OTHER)
            self.assertEqual('settle', self.host.done[-1])

    def test_libvirt_does_not_take_it(self):
        """What was half put in is taken out again."""
        self.faults['put_in'] = fakelibvirt.libvirtError('no: 0000:82:00.0')
        self.faults['take_out'] = exceptions.DeviceError('it holds on')
        error = self.assertRaises(
            exceptions.Conflict, self.set, 'other', OTHER
        )
        self.assertIn('stop the server first', error.public)
        self.assertNotIn('0000:', error.public)
        self.assertEqual(
            ['put_in spare', 'take_out spare', 'settle'], self.host.done[-3:]
        )

    def test_nvswitches(self):
        """A set of GPUs changes only while the guest does not run."""

        def refused():
            self.host.done.clear()
            error = self.assertRaises(
                exceptions.Conflict, self.set, 'other', OTHER
            )
            self.assertIn('stop the server first', error.public)
            self.assertEqual(['add', 'settle'], self.host.done)

        self.host.has_partition = True
        refused()
        self.host.has_partition = False
        for arq in (SPARE, HELD):
            self.host.joins = (arq,)
            refused()
        self.host.has_partition = True
        self.set('other', OTHER, is_running=False)

    def test_flavors_that_forbid_it(self):
        for specs, held, words in (
            ({'accel:device_profile': 'gpu'}, (HELD,), 'to-native'),
            ({'nova_accel:device_profile': 'gpu'}, (), 'reboot it hard'),
        ):
            self.specs, self.host.held_arqs = specs, held
            error = self.assertRaises(
                exceptions.Conflict, self.set, 'other', OTHER
            )
            self.assertIn(words, error.public)
            self.assertEqual([], self.host.done)
