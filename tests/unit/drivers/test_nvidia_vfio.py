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
import fractions
import pathlib

import fixtures

from nova_accel import exceptions
from nova_accel.drivers import nvidia_vfio
from nova_accel.host import sysfs_tree
from nova_accel.host import vfio_vgpu
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from unit.drivers import base

#: How many of a type the card makes alone.
TYPES = {
    '557': ('NVIDIA A40-24Q', 2),
    '558': ('NVIDIA A40-12Q', 4),
    '700': ('NVIDIA A100-1-5C', 7),
}
FUNCTIONS = [base.the_address(number) for number in range(1, 9)]


class TestNvidiaVfio(base.DriverTestCase):
    driver = nvidia_vfio.NvidiaVfioDriver
    spec = {'vendor_id': '10de', 'vgpu_types': {'557': 1, '558': 2}}
    one_size = False

    def functions(self):
        self.asked = []
        for address in FUNCTIONS:
            self.sysfs.set(address, nvidia__current_vgpu_type='0')
        self.sysfs.on_write['nvidia/current_vgpu_type'] = (
            lambda _address, _value: self.say_what_fits()
        )
        self.say_what_fits()
        return base.sriov(self.CARD, '10de', '2235', '2235', 8)

    def current(self, address):
        return vfio_vgpu.VfioVgpu(self.sysfs.sysfs).current(
            pci_address.PciAddress.parse(address)
        )

    def say_what_fits(self):
        """As the card does, for each function as if it were the last."""
        if self.one_size:
            sizes = {self.current(address) for address in FUNCTIONS} - {'0'}
        left = 1 - sum(
            fractions.Fraction(1, TYPES[current][1])
            for current in map(self.current, FUNCTIONS)
            if current != '0'
        )
        fitting = [
            f'{id_:6}: {name}'
            for id_, (name, most) in TYPES.items()
            if left >= fractions.Fraction(1, most)
            and not (self.one_size and sizes - {id_})
        ]
        for address in FUNCTIONS:
            self.sysfs.set(
                address,
                nvidia__creatable_vgpu_types='\n'.join(
                    ['ID    : vGPU Name', *fitting]
                    if self.current(address) == '0'
                    else []
                ),
            )

    def test_each_type_is_a_part(self):
        device = self.discover()
        self.assertEqual(('VGPU', False), (device.type, device.pooled))
        self.assertEqual(
            ['nvidia-557', 'nvidia-558'],
            [each.name for each in device.deployables],
        )
        self.assertEqual(FUNCTIONS[:3], self.addresses(device))
        self.assertEqual(
            ['557', '558', '558'],
            [handle.vgpu_type for handle in self.handles(device)],
        )
        self.assertFalse(
            any(handle.is_managed for handle in self.handles(device))
        )
        for traits, type_id in zip(
            self.traits(device), ('557', '558'), strict=True
        ):
            self.assertEqual(
                {
                    'CUSTOM_VGPU_NVIDIA_A40',
                    f'CUSTOM_NVIDIA_2235_NVIDIA_{type_id}',
                },
                traits,
            )

    def test_mig_backed(self):
        device = self.discover(vgpu_types={'700': 7})
        self.assertEqual(7, len(self.handles(device)))

    def test_what_others_took_is_not_offered(self):
        """The last of what the line has does not fit any more."""
        self.sysfs.set(FUNCTIONS[7], nvidia__current_vgpu_type='557')
        self.sysfs.set(FUNCTIONS[6], nvidia__current_vgpu_type='557')
        self.say_what_fits()
        self.assert_refused('none of')
        self.sysfs.set(FUNCTIONS[6], nvidia__current_vgpu_type='558')
        self.say_what_fits()
        large, small = self.discover().deployables
        self.assertIn('no room', large.fault)
        self.assertIsNone(small.fault)
        self.assertEqual(2, len(small.handles))

    def test_a_function_that_is_of_another_type(self):
        self.sysfs.set(FUNCTIONS[0], nvidia__current_vgpu_type='558')
        self.say_what_fits()
        device = self.discover()
        self.assertEqual(
            [
                ('557', FUNCTIONS[1]),
                ('558', FUNCTIONS[0]),
                ('558', FUNCTIONS[2]),
            ],
            [
                (handle.vgpu_type, str(handle.address))
                for handle in self.handles(device)
            ],
        )

    def test_a_card_without_mixed_mode(self):
        """A type that has no room now keeps its place, and no one gets it."""
        self.one_size = True
        before = self.discover()
        handle = before.deployables[1].handles[1]
        self.a_driver().plug(handle)
        device = self.assert_noted(
            self.CARD, '0 of the 1 units of the type 557'
        )
        self.assertIn('no room', device.deployables[0].fault)
        self.assertEqual(
            [
                (each.name, each.handles, each.traits)
                for each in before.deployables
            ],
            [
                (each.name, each.handles, each.traits)
                for each in device.deployables
            ],
        )
        self.assertEqual(before.operator_traits, device.operator_traits)
        self.a_driver().unplug(handle)
        self.assertEqual(before, self.discover())

    def test_a_function_that_does_not_tell(self):
        """Only that is lost, and another takes its place."""
        for attribute in ('current_vgpu_type', 'creatable_vgpu_types'):
            for fail in (self.unreadable, pathlib.Path.unlink):
                before = self.addresses(self.discover(vgpu_types={'558': 4}))
                path = self.sysfs.root.joinpath(
                    'bus/pci/devices', before[1], 'nvidia', attribute
                )
                contents = path.read_text()
                fail(path)
                device = self.assert_noted(
                    before[1], attribute, vgpu_types={'558': 4}
                )
                self.assertEqual(4, len(self.handles(device)))
                self.assertNotIn(before[1], self.addresses(device))
                with sysfs_tree.noting() as notes:
                    device = self.discover(vgpu_types={'558': 8})
                self.assertEqual(7, len(self.handles(device)))
                self.assertEqual(2, len(notes.texts()))
                if path.is_dir():
                    path.rmdir()
                path.write_text(contents)

    def unreadable(self, path):
        path.unlink()
        path.mkdir()

    def test_without_types(self):
        self.assert_refused('"vgpu_types"', vgpu_types=None)

    def test_more_than_there_are_functions(self):
        self.assert_refused(
            'the line has 9 vGPUs', '8 of its 8', vgpu_types={'557': 9}
        )

    def test_a_card_of_the_other_framework(self):
        for address in FUNCTIONS:
            self.sysfs.remove(address)
        self.assert_refused('0 of its 8')

    def test_a_virtual_function(self):
        self.assert_refused(self.CARD, address=FUNCTIONS[0])

    def test_plug(self):
        first, *_rest = self.handles(self.discover())
        self.a_driver().plug(first)
        self.assertEqual('557', self.current(FUNCTIONS[0]))

    def parameters(self):
        return vfio_vgpu.VfioVgpu(self.sysfs.sysfs).parameters(
            pci_address.PciAddress.parse(FUNCTIONS[0])
        )

    def with_parameters(self):
        self.sysfs.set(FUNCTIONS[0], nvidia__vgpu_params='')
        first, *_rest = self.handles(
            self.discover(vgpu_params='frame_rate_limiter=0, disable_vnc=1')
        )
        return first

    def test_parameters(self):
        first = self.with_parameters()
        driver = self.a_driver()
        written = []
        for name in ('current_vgpu_type', 'vgpu_params'):
            self.sysfs.on_write[f'nvidia/{name}'] = lambda _address, value: (
                written.append(value)
            )
        for _time in range(2):
            driver.plug(first)
        self.assertEqual(
            'frame_rate_limiter=0,disable_vnc=1', self.parameters()
        )
        for _time in range(2):
            driver.unplug(first)
        self.assertEqual('', self.parameters())
        # They are of a vGPU, so they are set after its type.
        self.assertEqual(
            ['557', 'frame_rate_limiter=0,disable_vnc=1', '', '0'], written
        )

    def test_parameters_of_the_operator(self):
        """A line without them leaves them alone while a guest has them."""
        first, *_rest = self.handles(self.discover())
        self.sysfs.set(FUNCTIONS[0], nvidia__vgpu_params='enable_uvm=1')
        self.a_driver().plug(first)
        self.assertEqual('enable_uvm=1', self.parameters())
        self.a_driver().unplug(first)
        self.assertEqual('', self.parameters())

    def test_parameters_of_what_became_another(self):
        first = self.with_parameters()
        self.a_driver().plug(first)
        self.sysfs.set(FUNCTIONS[0], nvidia__current_vgpu_type='558')
        self.a_driver().unplug(first)
        self.assertNotEqual('', self.parameters())

    def test_a_step_that_fails(self):
        """What comes before it is undone, once the function lets it."""
        first = self.with_parameters()
        driver = self.a_driver()

        def refuse(*_arguments):
            raise exceptions.DeviceError('busy')

        for name in ('vgpu_params', 'current_vgpu_type'):
            self.sysfs.on_write[f'nvidia/{name}'] = refuse
            error = self.assertRaises(
                exceptions.DeviceError, driver.plug, first
            )
            self.assertIn('busy', str(error))
            del self.sysfs.on_write[f'nvidia/{name}']
            driver.unplug(first)
            self.assertEqual(
                ('0', ''), (self.current(FUNCTIONS[0]), self.parameters())
            )
            driver.plug(first)
            self.sysfs.on_write[f'nvidia/{name}'] = refuse
            self.assertRaises(exceptions.DeviceError, driver.unplug, first)
            del self.sysfs.on_write[f'nvidia/{name}']
            driver.unplug(first)
            self.assertEqual(
                ('0', ''), (self.current(FUNCTIONS[0]), self.parameters())
            )

    def test_what_became_another_is_left_alone(self):
        first, *_rest = self.handles(self.discover())
        self.sysfs.set(FUNCTIONS[0], nvidia__current_vgpu_type='558')
        self.a_driver().unplug(first)
        self.assertEqual('558', self.current(FUNCTIONS[0]))

    def test_what_both_hosts_must_share(self):
        first, *_rest = self.handles(self.discover())
        driver = self.a_driver()
        driver.check_migratable(first)
        link = self.sysfs.root / 'bus/pci/devices' / FUNCTIONS[0] / 'physfn'
        link.unlink(missing_ok=True)
        self.assertRaises(
            exceptions.DeviceError, driver.migration_facts, [first]
        )
        link.symlink_to(f'../{self.CARD}')
        self.sysfs.set(self.CARD, device='0x2235')
        error = self.assertRaises(
            exceptions.DeviceError, driver.migration_facts, [first]
        )
        self.assertIn('driver/module/version', str(error))
        self.sysfs.set(self.CARD, driver__module__version='570.133.10')
        self.sysfs.set(FUNCTIONS[0], nvidia__vgpu_params='enable_uvm=1')
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.host.nvidia_smi.ecc_modes', self.ecc_modes
            )
        )
        # The destination tells what the guest is to get.
        lined = dataclasses.replace(first, vgpu_params='enable_uvm=0')
        facts = {
            'the product of the GPU': '0x2235',
            'the vGPU type': '557',
            'the branch of the driver': '570',
            'the ECC mode': 'Enabled',
            'vgpu_params': 'enable_uvm=1',
        }
        self.assertEqual(
            (facts, {**facts, 'vgpu_params': 'enable_uvm=0'}),
            driver.migration_facts([first, lined]),
        )
        self.assertEqual([[self.CARD]], self.asked)

    def ecc_modes(self, cards):
        """As the tool tells them, which takes up to a minute."""
        self.asked.append([str(card) for card in cards])
        return dict.fromkeys(cards, 'Enabled')

    def test_no_vgpu(self):
        handle = attach_handle.AttachHandle(
            'handle', pci_address.PciAddress.parse(FUNCTIONS[0])
        )
        self.assertRaises(exceptions.DeviceError, self.a_driver().plug, handle)
        self.a_driver().unplug(handle)
