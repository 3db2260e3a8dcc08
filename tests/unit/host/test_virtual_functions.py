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
import json
import threading

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.host import all_guests
from nova_accel.host import libvirt_devices
from nova_accel.host import virtual_functions
from nova_accel.model.devices import device_spec
from nova_accel.testing import devices
from nova_accel.testing import divided_cards
from nova_accel.testing import libvirt
from nova_accel.testing import pci_functions

CARD = pci_functions.function(
    '0000:3d:00.0', '8086', '37c8', max_virtual_functions=16
)
OTHER = pci_functions.function(
    '0000:3e:00.0', '8086', '37c8', max_virtual_functions=16
)
GPU = pci_functions.function(
    '0000:84:00.0', '10de', '2235', max_virtual_functions=16
)
PLAIN = pci_functions.function('0000:3f:00.0', '8086', '37c8')


def a_spec(**keys):
    line = {
        'product_id': '37c8',
        'vendor_id': '8086',
        'driver': 'pci',
        **keys,
    }
    return device_spec.parse([json.dumps(line)], [line['driver']])


class Claims:
    """As ``NovaClaims``."""

    def __init__(self, *addresses):
        self._addresses = addresses

    def on_functions(self, addresses, host):
        return '[pci]' if {*map(str, addresses)} & {*self._addresses} else None


class TestCheck(testtools.TestCase):
    def check(self, function, **keys):
        virtual_functions.check(function, *a_spec(**keys))

    def assert_refused(self, function, wanted, text):
        error = self.assertRaises(
            exceptions.DeviceError, self.check, function, sriov_numvfs=wanted
        )
        self.assertIn(text, str(error))

    def test_not_asked_for(self):
        self.check(CARD)
        self.check(PLAIN)

    def test_none_there(self):
        self.assert_refused(CARD, 8, 'when nova-compute starts')
        self.assertRaises(
            exceptions.NotMadeYet, self.check, CARD, sriov_numvfs=8
        )

    def test_more_than_it_can_have(self):
        self.assert_refused(
            CARD, 17, 'asks for 17 virtual functions, it can have 16'
        )
        self.assert_refused(PLAIN, 1, 'it can have none')

    def test_there(self):
        card, *parts = pci_functions.virtual_functions(CARD, 8, '37c9')
        for function in (card, *parts):
            self.check(function, sriov_numvfs=8)
            self.assertIsNone(
                virtual_functions.mismatch(function, *a_spec(sriov_numvfs=8))
            )

    def test_another_number_is_there(self):
        card, *_parts = pci_functions.virtual_functions(CARD, 4, '37c9')
        self.check(card, sriov_numvfs=8)
        reason = virtual_functions.mismatch(card, *a_spec(sriov_numvfs=8))
        self.assertIn('asks for 8 virtual functions, it has 4', reason)
        self.assertIn('write 0 to its sriov_numvfs', reason)

    def test_nvidia_has_a_program_of_its_own(self):
        self.assert_refused(
            GPU,
            16,
            'remove "sriov_numvfs" from the line, and have the host '
            'run /usr/lib/nvidia/sriov-manage -e 0000:84:00.0',
        )
        card, *_parts = pci_functions.virtual_functions(GPU, 16, '2235')
        self.check(card, sriov_numvfs=16)
        reason = virtual_functions.mismatch(card, *a_spec(sriov_numvfs=8))
        self.assertIn('nvidia-smi -i 0000:84:00.0 -mig 0', reason)
        self.assertIn('sriov-manage -d 0000:84:00.0', reason)
        self.assertNotIn('write 0', reason)


class TestMake(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.info = devices.pci_info(gpus=0, fpgas=0, qats=0)
        pci_functions.add(self.info, CARD, OTHER, PLAIN)
        self.fake = self.useFixture(libvirt.Libvirt(self.info))
        self.sysfs = self.fake.sysfs
        pci_functions.sriov(
            self.info,
            self.sysfs,
            {str(CARD.address): '37c9', str(OTHER.address): '37c9'},
        )
        self.nodes = libvirt_devices.NodeDevices(self.fake.host)

    def make(self, *specs, claimed=()):
        virtual_functions.VirtualFunctions(
            self.nodes,
            self.sysfs.sysfs,
            Claims(*claimed),
            all_guests.AllGuests(self.fake.host),
            within_s=0.5,
        ).make(specs or a_spec(sriov_numvfs=8))

    def numbers(self):
        """How many each card has, by libvirt and by sysfs."""
        functions = self.nodes.look().functions
        return [
            (
                len(functions[card.address].virtual_functions),
                self.sysfs.sysfs.read(card.address, 'sriov_numvfs'),
            )
            for card in (CARD, OTHER)
        ]

    def on_write(self, function):
        self.sysfs.on_write['sriov_numvfs'] = function

    def test_they_are_made(self):
        self.make()
        self.assertEqual([(8, '8'), (8, '8')], self.numbers())
        self.assertEqual(19, len(self.nodes.look().functions))
        self.assertNotIn('could not', self.log.output)

    def test_again(self):
        self.make()
        self.on_write(lambda *_arguments: self.fail('written again'))
        self.make()
        self.assertEqual([(8, '8'), (8, '8')], self.numbers())

    def test_again_after_a_reboot(self):
        self.make()
        for number in range(1, 9):
            slot, function = divmod(number, 8)
            for bus in ('3d', '3e'):
                del self.info.devices[f'pci_0000_{bus}_0{slot}_{function}']
        pci_functions.add(self.info, CARD, OTHER)
        for card in (CARD, OTHER):
            self.sysfs.set(card.address, sriov_numvfs='0')
        self.make()
        self.assertEqual([(8, '8'), (8, '8')], self.numbers())

    def test_only_if_asked(self):
        self.make(*a_spec())
        self.make(*a_spec(address='0000:77:00.0', sriov_numvfs=8))
        self.assertEqual([(0, '0'), (0, '0')], self.numbers())

    def test_the_first_line_rules(self):
        self.make(*a_spec(address='0000:3d:00.0'), *a_spec(sriov_numvfs=2))
        self.assertEqual([(0, '0'), (2, '2')], self.numbers())

    def test_another_number_is_never_changed(self):
        pci_functions.add(
            self.info, *pci_functions.virtual_functions(CARD, 4, '37c9')
        )
        self.sysfs.set(CARD.address, sriov_numvfs='4')
        self.make()
        self.assertEqual([(4, '4'), (8, '8')], self.numbers())

    def test_nor_one_that_libvirt_does_not_know(self):
        self.sysfs.set(CARD.address, sriov_numvfs='4')
        self.make()
        self.assertEqual([(0, '4'), (8, '8')], self.numbers())
        self.assertIn('sriov_numvfs of 0000:3d:00.0 is 4', self.log.output)

    def test_more_than_it_can_have(self):
        self.make(*a_spec(sriov_numvfs=17))
        self.assertEqual([(0, '0'), (0, '0')], self.numbers())

    def test_a_card_that_nova_has(self):
        self.make(claimed=['0000:3d:00.0'])
        self.assertEqual([(0, '0'), (8, '8')], self.numbers())

    def test_a_card_that_a_guest_has(self):
        self.fake.connection.defineXML('''
            <domain type='qemu'>
              <name>guest</name>
              <uuid>0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e5f</uuid>
              <memory>1024</memory><vcpu>1</vcpu><os><type>hvm</type></os>
              <devices><hostdev mode='subsystem' type='pci' managed='yes'>
                <source><address domain='0x0000' bus='0x3d' slot='0x00'
                                 function='0x0'/></source>
              </hostdev></devices>
            </domain>''')
        self.make()
        self.assertEqual([(0, '0'), (8, '8')], self.numbers())
        self.assertIn(
            '8 virtual functions of 0000:3d:00.0 could not be made: '
            'a guest has it',
            self.log.output,
        )

    def test_the_kernel_refuses(self):
        self.sysfs.remove(CARD.address)
        self.make()
        self.assertIn(
            '8 virtual functions of 0000:3d:00.0 could not be made',
            self.log.output,
        )
        functions = self.nodes.look().functions
        self.assertEqual(8, len(functions[OTHER.address].virtual_functions))

    def test_a_card_whose_ports_the_host_has(self):
        """The kernel answers EINVAL, see drivers/fpga/dfl.c."""
        pci_functions.add(
            self.info, dataclasses.replace(CARD, driver='dfl-pci')
        )
        self.sysfs.remove(CARD.address)
        self.make()
        self.assertIn('fpgaport release /dev/dfl-fme.N PORT', self.log.output)

    def test_none_are_made_of_nvidias(self):
        pci_functions.add(self.info, GPU)
        self.sysfs.set(GPU.address, sriov_numvfs='0')
        self.make(*a_spec(vendor_id='10de', product_id='2235', sriov_numvfs=4))
        self.assertEqual(
            '0', self.sysfs.sysfs.read(GPU.address, 'sriov_numvfs')
        )

    def test_the_kernel_makes_fewer(self):
        self.on_write(
            lambda address, _value: self.sysfs.set(address, sriov_numvfs='3')
        )
        self.make()
        self.assertIn('sriov_numvfs of 0000:3d:00.0 is 3', self.log.output)

    def test_libvirt_never_knows_them(self):
        self.on_write(lambda *_arguments: None)
        self.make()
        self.assertIn(
            'libvirt does not know them after 0.5 s', self.log.output
        )

    def test_libvirt_knows_one_late(self):
        """The card lists its functions before they are node devices."""
        late = 'pci_0000_3d_00_1'

        def make(address, value):
            card = dataclasses.replace(
                CARD if address == CARD.address else OTHER
            )
            pci_functions.add(
                self.info,
                *pci_functions.virtual_functions(card, int(value), '37c9'),
            )
            if address == CARD.address:
                device = self.info.devices.pop(late)
                timer = threading.Timer(
                    0.1, self.info.devices.__setitem__, [late, device]
                )
                timer.start()
                self.addCleanup(timer.join)

        self.on_write(make)
        self.make()
        self.assertIn(late, self.info.devices)
        self.assertNotIn('could not', self.log.output)


class TestCardsOfManyShapes(testtools.TestCase):
    """A reboot, or a step that was killed, has removed their functions."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.info = devices.pci_info(gpus=0, fpgas=0, qats=0)
        self.fake = self.useFixture(libvirt.Libvirt(self.info))
        self.tool = self.useFixture(
            divided_cards.DividedCards(
                self.fake.sysfs, {str(GPU.address): self.info}, 16
            )
        )
        self.card = self.tool.cards[str(GPU.address)]
        self.card.are_functions = False
        self.tool.bind(self.card, 'nvidia')

    def make(self, **keys):
        specs = a_spec(
            vendor_id='10de',
            product_id='2330',
            driver='nvidia_vfio',
            **keys,
        )
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.offered._lines', lambda: specs
            )
        )
        virtual_functions.VirtualFunctions(
            libvirt_devices.NodeDevices(self.fake.host),
            self.fake.sysfs.sysfs,
            Claims(),
            all_guests.AllGuests(self.fake.host),
        ).make(specs)

    def test_they_are_made(self):
        for _start in range(2):
            self.make(shapes=['whole', 'mig:*'])
            self.assertTrue(self.card.are_functions)
        self.assertEqual([('-e', str(GPU.address))], self.tool.calls)

    def test_only_for_shapes(self):
        self.make(vgpu_types={'1131': 4})
        self.assertEqual([], self.tool.calls)

    def test_a_guest_has_the_card(self):
        """It may be one that Nova does not run."""
        self.tool.bind(self.card, 'vfio-pci')
        self.make(shapes=['whole'])
        self.assertEqual([], self.tool.calls)
        self.assertIn('is bound to vfio-pci', self.log.output)

    def test_the_program_fails(self):
        self.card.processes = 1
        self.make(shapes=['whole'])
        self.assertIn(
            f'16 virtual functions of {GPU.address} could not be made',
            self.log.output,
        )
