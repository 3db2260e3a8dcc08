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

from libvirtd import base
from libvirtd import machines
from nova_accel import exceptions

GPU = machines.MDEV_GPU
TYPE = 'nvidia-230'


class TestLibvirtdAway(base.HostTestCase):
    """libvirtd ends, and comes again; our connection is the same object."""

    machine = machines.EVERY_KIND

    def setUp(self):
        super().setUp()
        self.addCleanup(self.server.start_daemon)
        self.line = base.a_line(GPU, driver='mdev', mdev_type=TYPE)
        self.before = self.discover(self.line)

    def assert_error(self, text, function, *arguments):
        error = self.assertRaises(exceptions.DeviceError, function, *arguments)
        self.assertIn(text, str(error))

    def kill_after(self, method):
        """Have it end when Nova's Host has done that, once."""
        original = getattr(self.host, method)

        def then_kill(*arguments):
            delattr(self.host, method)
            result = original(*arguments)
            self.kill_libvirtd()
            return result

        setattr(self.host, method, then_kill)

    def test_gone(self):
        self.kill_libvirtd()
        for _time in range(2):
            self.assert_error(
                'libvirt does not list its devices', self.discover, self.line
            )
        self.assert_error(
            'libvirt does not list its guests', self.guests.uuids
        )
        self.server.start_daemon()
        self.assertEqual(self.before, self.discover(self.line))

    def test_restarted_between_two_looks(self):
        self.kill_libvirtd()
        self.server.start_daemon()
        self.assertEqual(self.before, self.discover(self.line))

    def test_gone_in_the_middle_of_a_look(self):
        """Half of the devices is not what the host has."""
        for method in ('list_pci_devices', 'device_lookup_by_name'):
            self.kill_after(method)
            self.assert_error(
                'libvirt does not list its devices', self.discover, self.line
            )
            self.server.start_daemon()
            self.assertEqual(self.before, self.discover(self.line))

    def test_gone_before_a_device_is_made(self):
        own = str(uuid.uuid4())
        self.addCleanup(self.node_devices.destroy_mdev, own)
        self.addCleanup(self.server.start_daemon)
        self.kill_libvirtd()
        create = (self.node_devices.create_mdev, own, base.address(GPU), TYPE)
        self.assert_error(f'{GPU.address} makes no {TYPE}', *create)
        self.server.start_daemon()
        self.assertEqual((), self.node_devices.mdevs())
        create[0](*create[1:])
        self.assertEqual(own, self.node_devices.mdevs()[0].uuid)

    def test_gone_after_a_device_is_made(self):
        """Tried again, it is found to be there."""
        own = str(uuid.uuid4())
        self.addCleanup(self.node_devices.destroy_mdev, own)
        self.addCleanup(self.server.start_daemon)
        self.kill_after('device_create')
        create = (self.node_devices.create_mdev, own, base.address(GPU), TYPE)
        self.assert_error(f'{GPU.address} makes no {TYPE}', *create)
        self.assertTrue(self.file(GPU, own).exists())
        self.server.start_daemon()
        create[0](*create[1:])
        self.node_devices.destroy_mdev(own)
        self.assertFalse(self.file(GPU, own).exists())

    def test_gone_before_a_device_is_destroyed(self):
        own = str(uuid.uuid4())
        self.node_devices.create_mdev(own, base.address(GPU), TYPE)
        self.kill_libvirtd()
        self.assert_error(own, self.node_devices.destroy_mdev, own)
        self.assertTrue(self.file(GPU, own).exists())
        self.server.start_daemon()
        self.node_devices.destroy_mdev(own)
        self.assertFalse(self.file(GPU, own).exists())

    def test_what_changes_while_it_is_away(self):
        self.kill_libvirtd()
        self.a_foreign_mdev(GPU, TYPE)
        self.file(machines.SSD, 'remove').write_text('1')
        self.addCleanup(self.put_in_again)
        self.server.start_daemon()
        found = self.node_devices.look()
        self.assertNotIn(base.address(machines.SSD), found.functions)
        self.assertEqual(
            7, found.functions[base.address(GPU)].mdev_types[TYPE]
        )

    def put_in_again(self):
        (self.server.sysfs / 'bus/pci/rescan').write_text('1')
        self.assert_soon(True, lambda: bool(self.function(machines.SSD)))
