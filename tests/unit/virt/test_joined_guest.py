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

import testtools

from nova_accel import exceptions
from nova_accel.virt import joined_guest
from nova_accel.virt.fabric import no_fabric


class Domain:
    """libvirt's, which notes its calls."""

    def __init__(self, calls):
        self.calls = calls

    def suspend(self):
        self.calls.append('suspend')

    def resume(self):
        self.calls.append('resume')

    def destroy(self):
        self.calls.append('destroy')


class Fabric(no_fabric.NoFabric):
    def __init__(self, calls, fault=None):
        self.calls, self.fault = calls, fault

    def has(self, instance_uuid):
        return instance_uuid == 'i1'

    def confirm(self, instance_uuid):
        self.calls.append(f'confirm {instance_uuid}')
        if self.fault:
            raise exceptions.FabricError(self.fault)


class GuestTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.calls = []
        self.guest = joined_guest.libvirt_guest.Guest(Domain(self.calls))


class TestJoinedGuest(GuestTestCase):
    def joined(self, fabric):
        return joined_guest.JoinedGuest(
            self.guest, lambda: fabric.confirm('i1')
        )

    def test_it_runs_when_its_partition_is_confirmed(self):
        self.joined(Fabric(self.calls)).resume()
        self.assertEqual(['confirm i1', 'resume'], self.calls)

    def test_it_never_runs_without(self):
        error = self.assertRaises(
            exceptions.FabricError,
            self.joined(Fabric(self.calls, 'it is lost')).resume,
        )
        self.assertEqual('it is lost', str(error))
        self.assertEqual(['confirm i1', 'destroy'], self.calls)


class TestWaiting(GuestTestCase):
    def wait(self, fabric, instance_uuid='i1'):
        with joined_guest.waiting(fabric, self.guest, instance_uuid):
            self.calls.append('attach')

    def test_it_gets_its_devices_while_it_is_paused(self):
        self.wait(Fabric(self.calls))
        self.assertEqual(
            ['suspend', 'attach', 'confirm i1', 'resume'], self.calls
        )

    def test_it_runs_again_after_a_fault(self):
        """Else it would not let go of its devices."""
        self.assertRaises(
            exceptions.FabricError, self.wait, Fabric(self.calls, 'lost')
        )
        self.assertEqual('resume', self.calls[-1])
        self.calls.clear()
        self.guest._domain = types.SimpleNamespace(
            suspend=lambda: None, resume=lambda: self.calls.append('resume')
        )

        def fail():
            with joined_guest.waiting(Fabric(self.calls), self.guest, 'i1'):
                raise ValueError

        self.assertRaises(ValueError, fail)
        self.assertEqual(['resume'], self.calls)

    def test_others_are_not_paused(self):
        for fabric, uuid in (
            (no_fabric.NoFabric(), 'i1'),
            (Fabric(self.calls), 'i2'),
        ):
            self.calls.clear()
            self.wait(fabric, uuid)
            self.assertEqual(['attach'], self.calls)
