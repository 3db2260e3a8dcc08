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


from nova_accel import exceptions
from nova_accel.host import whole_card
from nova_accel.model import pci_address
from unit.drivers import divided_card

ADDRESS = pci_address.PciAddress.parse(divided_card.CARD)


class TestWholeCard(divided_card.CardTestCase):
    def give(self):
        whole_card.give(self.sysfs.sysfs, ADDRESS)

    def take_back(self):
        whole_card.take_back(self.sysfs.sysfs, ADDRESS)

    def assert_refused(self, call, *texts):
        error = self.assertRaises(exceptions.DeviceError, call)
        for text in texts:
            self.assertIn(text, str(error))

    def changes(self):
        return [
            call[0] if call[0] in ('-d', '-e') else call[2:]
            for call in self.tool.calls
            if not set(call) & {'-lgi', '--format=csv,noheader'}
        ]

    def test_it_is_given_and_taken_back(self):
        for _guest in range(2):
            for _time in range(2):
                self.give()
                self.assertFalse(self.card.are_functions)
            self.tool.bind(self.card, 'vfio-pci')
            # The guest is started again.
            self.give()
            self.tool.bind(self.card, 'nvidia')
            for _time in range(2):
                self.take_back()
                self.assertTrue(self.card.are_functions)
        self.assertEqual(2 * ['-d', '-e'], self.changes())

    def test_what_was_made_of_it_is_removed(self):
        """MIG mode, too: the guest's driver would find it."""
        self.card.is_on = True
        self.tool.answer(['mig', '-i', divided_card.CARD, '-cgi', '9:4', '-C'])
        self.give()
        self.assertEqual({}, self.card.instances)
        self.assertFalse(self.card.is_on)
        self.assertFalse(self.card.are_functions)

    def test_a_vgpu_is_on_it(self):
        for is_on, shape, text in (
            (False, 'vgpu:NVIDIA H100-20C', 'it has a vGPU'),
            (True, 'mig:*', 'In use by another client'),
        ):
            self.card.is_on = is_on
            handle = next(iter(self.discover(shape).handles))
            driver = self.a_driver()
            driver.plug(handle)
            self.assert_refused(self.give, text)
            self.assertTrue(self.card.are_functions)
            self.assertEqual(1, len(self.card.vgpus))
            driver.unplug(handle)

    def test_a_mediated_device_is_on_it(self):
        """Also one that no one knows of; of a function, and of the card."""
        for address, text in (
            (self.functions[3].address, 'it has a vGPU'),
            (ADDRESS, 'has the mediated device a-uuid'),
        ):
            attribute = 'mdev_supported_types__nvidia_1__devices__a-uuid__x'
            self.sysfs.set(address, **{attribute: ''})
            self.assert_refused(self.give, text)
            self.assertTrue(self.card.are_functions)

    def test_the_host_uses_it(self):
        self.sysfs.set(ADDRESS, boot_vga='1')
        self.assert_refused(self.give, 'the display')
        self.assertTrue(self.card.are_functions)

    def test_the_program_fails(self):
        self.card.processes = 1
        self.assert_refused(self.give, 'set_functions', 'Cannot unbindLock')
        self.card.processes = 0
        self.give()
        self.card.processes = 1
        self.assert_refused(self.take_back, 'Cannot unbindLock')

    def test_the_program_does_nothing(self):
        self.tool._sriov_manage = lambda _arguments: (0, '')
        self.assert_refused(self.give, 'to be removed, and stay')
        self.card.are_functions = False
        self.tool.bind(self.card, 'nvidia')
        self.assert_refused(self.take_back, 'to be made, and are not there')

    def test_it_has_not_come_back(self):
        self.give()
        self.tool.bind(self.card, 'vfio-pci')
        self.assert_refused(self.take_back, 'it is bound to vfio-pci')

    def test_it_never_has_functions(self):
        """A card of before SR-IOV."""
        self.card.are_functions = False
        self.sysfs.set(ADDRESS, sriov_totalvfs='0')
        self.tool.bind(self.card, 'nvidia')
        self.give()
        self.take_back()
        self.assertEqual([], self.changes())
