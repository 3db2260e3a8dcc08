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

import uuid

import libvirt
from lxml import etree
from nova.virt.libvirt import config as vconfig

from lab import processes
from libvirtd import base
from libvirtd import machines
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.virt import guest_xml


def a_handle(*functions, **keys):
    first, *others = map(base.address, functions)
    return attach_handle.AttachHandle(
        str(uuid.uuid4()), first, further_functions=tuple(others), **keys
    )


def an_arq(handle):
    return arq_types.Arq(
        str(uuid.uuid4()),
        arq_types.State.BOUND,
        'profile',
        0,
        {},
        str(uuid.uuid4()),
        handle,
    )


def a_guest(*devices):
    config = vconfig.LibvirtConfigGuest()
    config.virt_type = 'qemu'
    config.uuid = str(uuid.uuid4())
    config.name = f'guest-{config.uuid}'
    config.memory = 64 << 10
    config.os_type = 'hvm'
    config.os_arch = 'x86_64'
    config.os_mach_type = 'q35'
    config.devices = list(devices)
    return config


def source(hostdev):
    """The address on the host."""
    parts = hostdev.find('./source/address').attrib.items()
    return '{domain}:{bus}:{slot}.{function}'.format(
        **{name: number.removeprefix('0x') for name, number in parts}
    )


class TestGuest(base.HostTestCase):
    """Guests are defined as libvirt's schema and QEMU's rules allow."""

    machine = machines.EVERY_KIND

    def define(self, *handles, is_novas=False):
        """Define a guest with the devices; give libvirt's XML of them."""
        config = a_guest(*guest_xml.hostdevs(map(an_arq, handles)))
        if is_novas:
            metadata = vconfig.LibvirtConfigGuestMetaNovaInstance()
            metadata.package = '34.0.0'
            config.metadata = [metadata]
        self.host.get_connection().defineXMLFlags(
            config.to_xml(), libvirt.VIR_DOMAIN_DEFINE_VALIDATE
        )
        self.uuid = config.uuid
        self.addCleanup(self.undefine, self.uuid)
        return self.hostdevs()

    def domain(self):
        # Found again, because libvirtd may have ended since.
        return self.host.get_connection().lookupByUUIDString(self.uuid)

    def undefine(self, own):
        for domain in self.host.get_connection().listAllDomains():
            if domain.UUIDString() == own:
                domain.undefine()

    def hostdevs(self):
        return etree.fromstring(self.domain().XMLDesc(0)).findall(
            './devices/hostdev'
        )

    def assert_functions(self, hostdevs, managed, *functions):
        self.assertEqual(
            [(managed, function.address) for function in functions],
            [
                (hostdev.get('managed'), source(hostdev))
                for hostdev in hostdevs
            ],
        )

    def test_what_is_wrong_is_refused(self):
        """Or these tests would show nothing."""
        hostdev = vconfig.LibvirtConfigGuestHostdevPCI()
        hostdev.domain, hostdev.bus = '0000', 'zz'
        hostdev.slot, hostdev.function = '00', '0'
        error = self.assertRaises(
            libvirt.libvirtError,
            self.host.get_connection().defineXMLFlags,
            a_guest(hostdev).to_xml(),
            libvirt.VIR_DOMAIN_DEFINE_VALIDATE,
        )
        self.assertEqual(
            libvirt.VIR_ERR_XML_INVALID_SCHEMA, error.get_error_code()
        )

    def test_a_function(self):
        for function in (
            machines.LONE_GPU,
            machines.SSD,
            machines.QAT.virtual(0),
        ):
            self.assert_functions(
                self.define(a_handle(function)), 'yes', function
            )

    def test_several_functions(self):
        functions = (machines.GPU, machines.GPU_AUDIO)
        self.assert_functions(
            self.define(a_handle(*functions)), 'yes', *functions
        )

    def test_a_function_of_its_vendors_vfio_driver(self):
        function = machines.VFIO_GPU.virtual(1)
        self.assert_functions(
            self.define(
                a_handle(function, vgpu_type='1145', is_managed=False)
            ),
            'no',
            function,
        )

    def test_a_mediated_device(self):
        device = self.discover_one(
            base.a_line(
                machines.MDEV_GPU, driver='mdev', mdev_type='nvidia-230'
            )
        )
        handle = device.deployables[0].handles[0]
        self.addCleanup(self.drivers['mdev'].unplug, handle)
        self.drivers['mdev'].plug(handle)
        (hostdev,) = self.define(handle)
        self.assertEqual(
            ('mdev', 'vfio-pci', handle.uuid),
            (
                hostdev.get('type'),
                hostdev.get('model'),
                hostdev.find('./source/address').get('uuid'),
            ),
        )
        self.assertEqual({self.uuid: {handle.uuid}}, self.guests.devices())
        self.assertEqual({self.uuid}, self.guests.uuids())

    def test_all_of_these(self):
        """In one guest, each at a place of its own in it."""
        functions = (
            machines.LONE_GPU,
            machines.GPU,
            machines.GPU_AUDIO,
            machines.NIC.virtual(0),
            machines.QAT.virtual(1),
        )
        hostdevs = self.define(
            a_handle(functions[0]),
            a_handle(*functions[1:3]),
            a_handle(functions[3], physical_network='physnet1'),
            a_handle(functions[4]),
        )
        self.assert_functions(hostdevs, 'yes', *functions)
        places = {
            etree.tostring(hostdev.find('./address')) for hostdev in hostdevs
        }
        self.assertEqual(len(functions), len(places))

    def test_what_a_strangers_guest_has(self):
        """It is offered to no one; what a server has is its own."""
        line = base.a_line(machines.SSD)
        before = self.discover_one(line)
        self.define(a_handle(machines.SSD))
        self.assert_refused(line, machines.SSD.address, self.uuid)
        self.domain().undefine()
        self.define(a_handle(machines.SSD), is_novas=True)
        self.assertEqual(before, self.discover_one(line))

    def test_it_outlives_libvirtd(self):
        handle = a_handle(machines.SSD)
        self.define(handle)
        self.kill_libvirtd()
        self.server.start_daemon()
        self.assert_functions(self.hostdevs(), 'yes', machines.SSD)

    def test_managed_functions(self):
        """libvirt takes them from their driver, and gives them back.

        It has to: the guest does not start without a real VFIO.
        """
        functions = (machines.GPU, machines.GPU_AUDIO)
        self.define(a_handle(*functions))
        self.assertRaises(libvirt.libvirtError, self.domain().create)
        kernel = processes.log_of(self.server.kernel).read_text()
        for function in functions:
            self.assertIn(
                f"'vfio-pci' to {function.path}/driver_override", kernel
            )
            self.assertEqual(function.driver, self.function(function).driver)

    def test_a_function_that_is_not_managed(self):
        """It stays with the driver that made it a vGPU."""
        function = machines.VFIO_GPU.virtual(1)
        self.define(a_handle(function, vgpu_type='1145', is_managed=False))
        self.assertRaises(libvirt.libvirtError, self.domain().create)
        self.assertEqual('nvidia', self.function(function).driver)
        self.assertNotIn(
            f'{function.path}/driver_override',
            processes.log_of(self.server.kernel).read_text(),
        )
