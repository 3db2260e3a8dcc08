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


import threading

import fixtures
from nova import exception
from nova import utils as nova_utils
from nova.tests.fixtures import libvirt as fakelibvirt
import testtools

from nova_accel import exceptions
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model import pci_address
from nova_accel.testing import devices
from nova_accel.testing import libvirt

UUID = '0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e5f'
GPU = pci_address.PciAddress.parse('0000:81:00.0')


def error(text, code=fakelibvirt.VIR_ERR_INTERNAL_ERROR):
    return libvirt.libvirt_error(text, code)


class FailingDevice:
    def __init__(self, fault):
        self._fault = fault

    def XMLDesc(self, _flags):
        raise self._fault


class NodeDevicesTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.fake = self.useFixture(libvirt.Libvirt(devices.pci_info(gpus=2)))
        self.node_devices = libvirt_devices.NodeDevices(
            self.fake.host, gone_within_s=0.3
        )

    def patch_connection(self, method, function):
        self.useFixture(
            fixtures.MonkeyPatch(
                f'nova.tests.fixtures.libvirt.Connection.{method}', function
            )
        )

    def mdevs(self):
        return list(self.node_devices.look().mdevs)


class TestLook(NodeDevicesTestCase):
    def test_everything_is_seen(self):
        host = self.node_devices.look()
        self.assertEqual((), host.unreadable)
        self.assertEqual((), host.mdevs)
        self.assertEqual(
            set(self.fake.connection.pci_info.devices),
            {function.name for function in host.functions.values()},
        )
        for address, function in host.functions.items():
            self.assertEqual(function.name, address.node_device)

    def test_virtual_functions_and_their_cards_know_each_other(self):
        functions = self.node_devices.look().functions
        cards = [
            function
            for function in functions.values()
            if function.virtual_functions
        ]
        self.assertEqual(
            [2, 8], [len(card.virtual_functions) for card in cards]
        )
        for card in cards:
            self.assertEqual(
                {card.address},
                {
                    functions[address].parent_address
                    for address in card.virtual_functions
                },
            )

    def test_the_boards(self):
        self.fake.sysfs.set(
            GPU, subsystem_vendor='0x10de', subsystem_device='0x157e'
        )
        functions = self.node_devices.look().functions
        self.assertEqual('10de:157e', str(functions[GPU].subsystem))
        self.assertEqual(
            {GPU},
            {each.address for each in functions.values() if each.subsystem},
        )

    def test_an_unreadable_device_does_not_hide_the_rest(self):
        pci = self.fake.connection.pci_info.devices
        pci['pci_0000_81_00_0'].pci_device = '<device><capability'
        host = self.node_devices.look()
        self.assertEqual(len(pci) - 1, len(host.functions))
        (reason,) = host.unreadable
        self.assertIn('pci_0000_81_00_0', reason)

    def test_an_unreadable_mdev_does_not_hide_the_rest(self):
        self.node_devices.create_mdev(UUID, GPU, 'nvidia-11')
        self.fake.connection.mdev_info.devices['mdev_x'] = (
            fakelibvirt.NodeDevice(None, '<device><name/><parent/></device>')
        )
        host = self.node_devices.look()
        self.assertEqual([UUID], [mdev.uuid for mdev in host.mdevs])
        (reason,) = host.unreadable
        self.assertIn('mdev_x', reason)

    def test_a_device_that_goes_while_it_is_looked_at(self):
        look_up = fakelibvirt.Connection.nodeDeviceLookupByName

        def gone(connection, name):
            if name == 'pci_0000_81_00_0':
                raise libvirt.no_device(name)
            return look_up(connection, name)

        self.patch_connection('nodeDeviceLookupByName', gone)
        host = self.node_devices.look()
        self.assertNotIn(GPU, host.functions)
        self.assertEqual((), host.unreadable)

    def test_a_device_that_libvirt_fails_at(self):
        """It is found, or it is not, and then it has no description."""
        look_up = fakelibvirt.Connection.nodeDeviceLookupByName
        fault = error('internal error')

        def failing(connection, name):
            if name != 'pci_0000_81_00_0':
                return look_up(connection, name)
            if isinstance(fault, UnicodeError):
                return FailingDevice(fault)
            raise fault

        self.patch_connection('nodeDeviceLookupByName', failing)
        whole = len(self.fake.connection.pci_info.devices)
        for fault in (
            error('internal error'),
            error('access denied', fakelibvirt.VIR_ERR_INVALID_ARG),
            UnicodeDecodeError('utf-8', b'\xff', 0, 1, 'invalid start byte'),
        ):
            host = self.node_devices.look()
            self.assertEqual(whole - 1, len(host.functions))
            (reason,) = host.unreadable
            self.assertIn('pci_0000_81_00_0', reason)
            self.assertIn(str(fault), reason)

    def test_the_connection_breaks_midway(self):
        """Then nothing is known: that is not a host without devices."""
        look_up = fakelibvirt.Connection.nodeDeviceLookupByName

        def failing(connection, name):
            if name == 'pci_0000_81_00_0':
                raise fakelibvirt.make_libvirtError(
                    fakelibvirt.libvirtError,
                    'end of file',
                    error_code=fakelibvirt.VIR_ERR_INTERNAL_ERROR,
                    error_domain=fakelibvirt.VIR_FROM_RPC,
                )
            return look_up(connection, name)

        self.patch_connection('nodeDeviceLookupByName', failing)
        fault = self.assertRaises(
            exceptions.DeviceError, self.node_devices.look
        )
        self.assertIn('end of file', str(fault))

    def test_libvirt_fails(self):
        def fail(*_args):
            raise error('connection lost')

        for method in ('listDevices', 'nodeDeviceLookupByName'):
            self.patch_connection(method, fail)
            fault = self.assertRaises(
                exceptions.DeviceError, self.node_devices.look
            )
            self.assertIn('connection lost', str(fault))

    def test_libvirt_is_away(self):
        def fail(_host):
            raise exception.HypervisorUnavailable()

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.virt.libvirt.host.Host.get_connection', fail
            )
        )
        fault = self.assertRaises(
            exceptions.DeviceError, self.node_devices.look
        )
        self.assertIn('libvirt does not list its devices', str(fault))


class TestMdevs(NodeDevicesTestCase):
    def test_all_that_are_there(self):
        self.assertEqual((), self.node_devices.mdevs())
        self.node_devices.create_mdev(UUID, GPU, 'nvidia-11')
        self.assertEqual(
            (pci_function.Mdev(UUID, 'nvidia-11', GPU),),
            self.node_devices.mdevs(),
        )

    def test_libvirt_fails(self):
        def fail(*_args):
            raise error('connection lost')

        self.patch_connection('listDevices', fail)
        self.assertRaises(exceptions.DeviceError, self.node_devices.mdevs)


class TestFunction(NodeDevicesTestCase):
    def test_it_is_seen_as_it_is_now(self):
        self.assertEqual(
            self.node_devices.look().functions[GPU],
            self.node_devices.function(GPU),
        )
        card = self.fake.connection.pci_info.devices['pci_0000_81_00_0']
        card.pci_device = card.pci_device.replace('nvidia<', 'vfio-pci<')
        self.assertEqual('vfio-pci', self.node_devices.function(GPU).driver)

    def test_it_is_not_there(self):
        error = self.assertRaises(
            exceptions.DeviceError,
            self.node_devices.function,
            pci_address.PciAddress(0, 1, 2, 3),
        )
        self.assertIn('0000:01:02.3 is not there', str(error))


class TestCreateMdev(NodeDevicesTestCase):
    def test_create(self):
        self.node_devices.create_mdev(UUID, GPU, 'nvidia-11')
        self.assertEqual(
            [pci_function.Mdev(UUID, 'nvidia-11', GPU)], self.mdevs()
        )

    def test_again(self):
        for _time in range(2):
            self.node_devices.create_mdev(UUID, GPU, 'nvidia-11')
        self.assertEqual(1, len(self.mdevs()))

    def test_another_type_or_parent_is_there(self):
        self.node_devices.create_mdev(UUID, GPU, 'nvidia-11')
        other = pci_address.PciAddress.parse('0000:82:00.0')
        for parent, mdev_type in ((GPU, 'nvidia-12'), (other, 'nvidia-11')):
            fault = self.assertRaises(
                exceptions.DeviceError,
                self.node_devices.create_mdev,
                UUID,
                parent,
                mdev_type,
            )
            self.assertIn('is a nvidia-11 of 0000:81:00.0', str(fault))
        self.assertEqual(
            [pci_function.Mdev(UUID, 'nvidia-11', GPU)], self.mdevs()
        )

    def test_refused(self):
        for parent, mdev_type, reason in (
            ('0000:81:00.0', 'nvidia-99', 'No space left'),
            ('0000:83:00.0', 'nvidia-11', 'No space left'),
            ('0000:ff:00.0', 'nvidia-11', 'no node device'),
        ):
            fault = self.assertRaises(
                exceptions.DeviceError,
                self.node_devices.create_mdev,
                UUID,
                pci_address.PciAddress.parse(parent),
                mdev_type,
            )
            self.assertIn(reason, str(fault))
            self.assertIn(parent, str(fault))
        self.assertEqual([], self.mdevs())

    def test_nothing_came_of_it(self):
        self.patch_connection(
            'nodeDeviceCreateXML', lambda connection, xml, flags: None
        )
        fault = self.assertRaises(
            exceptions.DeviceError,
            self.node_devices.create_mdev,
            UUID,
            GPU,
            'nvidia-11',
        )
        self.assertIn('not there', str(fault))


class TestDestroyMdev(NodeDevicesTestCase):
    def setUp(self):
        super().setUp()
        self.node_devices.create_mdev(UUID, GPU, 'nvidia-11')

    def destroy(self):
        self.node_devices.destroy_mdev(UUID)

    def patch_destroy(self, function):
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.testing.libvirt.MediatedDevice.destroy', function
            )
        )

    def assert_refused(self, text):
        fault = self.assertRaises(exceptions.DeviceError, self.destroy)
        self.assertIn(UUID, str(fault))
        self.assertIn(text, str(fault))

    def test_destroy(self):
        self.destroy()
        self.assertEqual([], self.mdevs())

    def test_one_that_libvirt_would_make_again(self):
        """As Nova's own code defines those of a Cyborg."""
        (name,) = self.fake.connection.listDevices('mdev', 0)
        device = self.fake.connection.nodeDeviceLookupByName(name)
        self.fake.connection.nodeDeviceDefineXML(device.XMLDesc(0), 0)
        self.assertTrue(device.isPersistent())
        self.destroy()
        self.assertFalse(device.isPersistent())
        self.assertEqual([], self.mdevs())

    def test_again(self):
        for _time in range(2):
            self.destroy()

    def test_others_stay(self):
        other = UUID.replace('0', '1')
        self.node_devices.create_mdev(other, GPU, 'nvidia-11')
        self.destroy()
        self.assertEqual([other], [mdev.uuid for mdev in self.mdevs()])

    def test_refused(self):
        def refuse(_device):
            raise error('device in use')

        self.patch_destroy(refuse)
        self.assert_refused('device in use')

    def test_gone_meanwhile(self):
        real = libvirt.MediatedDevice.destroy

        def destroy_twice(device):
            real(device)
            real(device)

        self.patch_destroy(destroy_twice)
        self.destroy()
        self.assertEqual([], self.mdevs())

    def test_it_does_not_go(self):
        self.patch_destroy(lambda _device: 0)
        self.assert_refused('still there')

    def test_it_goes_late(self):
        """libvirt's answer precedes the kernel's event."""
        real = libvirt.MediatedDevice.destroy

        def destroy_later(device):
            timer = threading.Timer(0.1, real, [device])
            timer.start()
            self.addCleanup(timer.join)

        self.patch_destroy(destroy_later)
        self.destroy()
        self.assertEqual([], self.mdevs())


class TestNovaLooksMeanwhile(NodeDevicesTestCase):
    def test_no_mdev_comes_or_goes(self):
        """Nova's lock about vGPUs, which it holds while it chooses one."""
        with_nova = nova_utils.synchronized('vgpu_resources')
        started = threading.Event()

        def create_and_destroy():
            started.set()
            self.node_devices.create_mdev(UUID, GPU, 'nvidia-11')
            self.node_devices.destroy_mdev(UUID)

        worker = threading.Thread(target=create_and_destroy)

        @with_nova
        def choose():
            worker.start()
            started.wait(10)
            worker.join(0.2)
            self.assertTrue(worker.is_alive())
            self.assertEqual([], self.fake.host.list_mediated_devices())

        choose()
        worker.join(10)
        self.assertFalse(worker.is_alive())


class TestLookMeanwhile(NodeDevicesTestCase):
    def test_an_mdev_that_is_made_counts_once(self):
        """It is what its parent can make or what it has made, never both."""
        real = fakelibvirt.Connection.listDevices
        maker = threading.Thread(
            target=self.node_devices.create_mdev, args=(UUID, GPU, 'nvidia-11')
        )

        def list_devices(connection, cap, flags):
            if cap == 'mdev' and not maker.ident:
                # The parents have been looked at by now.
                maker.start()
                maker.join(0.2)
            return real(connection, cap, flags)

        before = self.node_devices.look().functions[GPU].mdev_types
        self.patch_connection('listDevices', list_devices)
        host = self.node_devices.look()
        maker.join(10)
        self.assertEqual(
            before['nvidia-11'],
            host.functions[GPU].mdev_types['nvidia-11'] + len(host.mdevs),
        )
        self.assertEqual([UUID], [mdev.uuid for mdev in self.mdevs()])
