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

import dataclasses
import types

import testtools

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.testing import fake_sysfs
from nova_accel.virt.holding import plugging

HANDLE = attach_handle.AttachHandle(
    'handle', pci_address.PciAddress(0, 0x81, 0, 0), identity='S1'
)
ARQ = arq_types.Arq(
    'arq', arq_types.State.BOUND, 'fpga', 0, {}, 'provider', HANDLE
)


class _Driver(types.SimpleNamespace):
    """Its methods are those of a test."""

    __hash__ = object.__hash__


class TestDevices(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.calls = []
        self.driver = _Driver(
            **{
                name: lambda handle, name=name: self.calls.append(
                    (name, handle)
                )
                for name in ('plug', 'check_migratable', 'unplug')
            }
        )
        self.view = types.SimpleNamespace(
            drivers={'handle': 'fake'},
            handles={'handle': HANDLE},
            unusable=lambda _orders: self.faulty,
        )
        self.faulty = frozenset()
        self.sysfs = self.useFixture(fake_sysfs.FakeSysfs())
        self.devices = plugging.Devices(
            'compute-1',
            types.SimpleNamespace(view=self.view),
            {'fake': self.driver},
            lambda uuid: self.calls.append(('let_go', uuid)),
            self.sysfs.sysfs,
        )

    def test_the_driver_of_the_device_does_it(self):
        self.devices.plug(ARQ)
        self.devices.check_migratable(ARQ)
        self.devices.unplug(HANDLE)
        self.assertEqual(
            [
                ('plug', HANDLE),
                ('check_migratable', HANDLE),
                ('let_go', 'handle'),
                ('unplug', HANDLE),
            ],
            self.calls,
        )

    def test_its_line_says_whether_it_migrates(self):
        self.view.handles = {
            'handle': dataclasses.replace(HANDLE, live_migratable=False)
        }
        error = self.assertRaises(
            exceptions.DeviceError, self.devices.check_migratable, ARQ
        )
        self.assertIn('"live_migratable": false', str(error))
        self.assertEqual([], self.calls)
        self.view.handles = {
            'handle': dataclasses.replace(HANDLE, live_migratable=True)
        }
        self.devices.check_migratable(ARQ)
        ((_name, told),) = self.calls
        self.assertIs(True, told.live_migratable)

    def test_its_line_says_how_a_vgpu_behaves(self):
        self.view.handles = {
            'handle': dataclasses.replace(HANDLE, vgpu_params='enable_uvm=1')
        }
        self.devices.plug(ARQ)
        ((_name, told),) = self.calls
        self.assertEqual('enable_uvm=1', told.vgpu_params)

    def test_facts_of_what_a_guest_has_and_of_what_it_is_to_get(self):
        self.view.handles = {
            'handle': dataclasses.replace(HANDLE, vgpu_params='enable_uvm=1')
        }
        self.driver.migration_facts = lambda handles: tuple(
            {'told': handle.vgpu_params} for handle in handles
        )
        for are_plugged, told in ((True, None), (False, 'enable_uvm=1')):
            self.assertEqual(
                {str(HANDLE.address): {'told': told}},
                self.devices.migration_facts([ARQ], are_plugged),
            )

    def test_a_driver_is_asked_once_for_all_facts(self):
        others = [
            dataclasses.replace(
                HANDLE,
                uuid=f'handle{number}',
                address=dataclasses.replace(HANDLE.address, slot=number),
            )
            for number in (1, 2)
        ]
        handles = [HANDLE, *others]
        self.view.drivers = {each.uuid: 'fake' for each in handles}
        self.view.handles = {each.uuid: each for each in handles}
        asked = []

        def migration_facts(some):
            asked.append(some)
            return tuple({'uuid': each.uuid} for each in some)

        self.driver.migration_facts = migration_facts
        self.assertEqual(
            {str(each.address): {'uuid': each.uuid} for each in handles},
            self.devices.migration_facts(
                [dataclasses.replace(ARQ, handle=each) for each in handles],
                True,
            ),
        )
        self.assertEqual([handles], asked)

    def test_a_device_that_is_gone(self):
        self.view.drivers = {}
        for method in (self.devices.plug, self.devices.check_migratable):
            error = self.assertRaises(exceptions.DeviceError, method, ARQ)
            self.assertIn('is gone from compute-1', str(error))
        # Nothing of it is left to be unplugged.
        self.devices.unplug(HANDLE)
        self.assertEqual([('let_go', 'handle')], self.calls)

    def test_the_one_after_one_that_refuses_stays_plugged(self):
        def refuse(handle):
            raise exceptions.DeviceError('stuck')

        self.devices.unplug_all([ARQ, ARQ])
        self.assertEqual(
            [('let_go', 'handle'), ('unplug', HANDLE)] * 2, self.calls
        )
        self.driver.unplug = refuse
        self.assertRaises(
            exceptions.DeviceError, self.devices.unplug_all, [ARQ, ARQ]
        )

    def test_another_device_at_its_address(self):
        self.view.handles = {
            'handle': attach_handle.AttachHandle(
                'handle', HANDLE.address, identity='S2'
            )
        }
        for method in (self.devices.plug, self.devices.check_migratable):
            self.assertRaises(exceptions.DeviceError, method, ARQ)
        self.assertEqual([], self.calls)

    def test_a_device_that_does_not_answer(self):
        self.sysfs.lose(HANDLE.address)
        error = self.assertRaises(
            exceptions.DeviceError, self.devices.plug, ARQ
        )
        self.assertIn('0000:81:00.0 does not answer', str(error))
        self.assertEqual([], self.calls)

    def test_a_further_function_that_does_not_answer(self):
        other = pci_address.PciAddress(0, 0x81, 0, 1)
        self.sysfs.lose(other)
        arq = dataclasses.replace(
            ARQ,
            handle=dataclasses.replace(HANDLE, further_functions=(other,)),
        )
        error = self.assertRaises(
            exceptions.DeviceError, self.devices.check, arq
        )
        self.assertIn('0000:81:00.1 does not answer', str(error))

    def test_a_device_that_is_lost_while_it_is_plugged(self):
        self.driver.plug = lambda handle: self.sysfs.lose(handle.address)
        self.assertRaises(exceptions.DeviceError, self.devices.plug, ARQ)

    def test_a_lost_device_is_given_back_once_it_is_published_as_faulty(self):
        self.sysfs.lose(HANDLE.address)
        self.assertRaises(exceptions.DeviceError, self.devices.unplug, HANDLE)
        self.faulty = frozenset({'handle'})
        self.devices.unplug(HANDLE)
        self.faulty = frozenset()
        self.sysfs.revive(HANDLE.address, '10de')
        self.devices.unplug(HANDLE)
