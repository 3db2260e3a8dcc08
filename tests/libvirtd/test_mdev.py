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

import errno
import uuid

from libvirtd import base
from libvirtd import machines
from nova_accel import exceptions

GPU = machines.MDEV_GPU
OTHERS = machines.SRIOV_MDEV_GPU
LARGE, SMALL = 'nvidia-231', 'nvidia-230'


class TestMdev(base.HostTestCase):
    machine = machines.EVERY_KIND

    def create(self, mdev_type=LARGE, parent=GPU, own=None):
        own = own or str(uuid.uuid4())
        self.addCleanup(self.node_devices.destroy_mdev, own)
        self.node_devices.create_mdev(own, base.address(parent), mdev_type)
        return own

    def mdevs(self):
        return {
            (mdev.uuid, mdev.type, mdev.parent)
            for mdev in self.node_devices.mdevs()
        }

    def kernels(self):
        """The uuids of those that there are."""
        return {
            path.name
            for path in (self.server.sysfs / 'bus/mdev/devices').iterdir()
        }

    def left(self):
        return dict(self.function(GPU).mdev_types)

    def assert_not_made(self, text, *arguments):
        error = self.assertRaises(
            exceptions.DeviceError, self.create, *arguments
        )
        self.assertIn(text, str(error))

    def test_create_and_destroy(self):
        own = self.create()
        self.assertEqual({own}, self.kernels())
        self.assertEqual({(own, LARGE, base.address(GPU))}, self.mdevs())
        self.assertEqual({SMALL: 0, LARGE: 3, 'nvidia-232': 0}, self.left())
        self.node_devices.destroy_mdev(own)
        self.assertEqual(set(), self.kernels())
        self.assertEqual(set(), self.mdevs())
        self.assertEqual({SMALL: 8, LARGE: 4, 'nvidia-232': 2}, self.left())

    def test_twice(self):
        own = self.create()
        self.create(own=own)
        self.assertEqual({own}, self.kernels())
        for _time in range(2):
            self.node_devices.destroy_mdev(own)
        self.assertEqual(set(), self.kernels())

    def test_a_card_is_full(self):
        made = {self.create() for _time in range(4)}
        self.assert_not_made(f'{GPU.address} makes no {LARGE}')
        self.assertEqual(made, self.kernels())
        self.node_devices.destroy_mdev(made.pop())
        self.create()

    def test_beside_one_of_another_size(self):
        own = self.create()
        self.assert_not_made(f'makes no {SMALL}', SMALL)
        self.assertEqual({own}, self.kernels())

    def test_virtual_functions_share_their_card(self):
        """Each makes one, all of them three."""
        parents = [OTHERS.virtual(index) for index in range(4)]
        for parent in parents[:3]:
            self.create('nvidia-474', parent)
        self.assert_not_made('makes no nvidia-474', 'nvidia-474', parents[3])
        self.assert_not_made('makes no nvidia-474', 'nvidia-474', parents[0])
        self.assertEqual(
            {'nvidia-474': 0, 'nvidia-475': 0},
            dict(self.function(parents[3]).mdev_types),
        )

    def test_a_type_that_the_card_does_not_make(self):
        self.assert_not_made('makes no nvidia-474', 'nvidia-474')

    def test_a_function_that_makes_none(self):
        self.assert_not_made('makes no', LARGE, machines.SSD)

    def test_a_uuid_that_is_taken(self):
        own = self.create()
        self.assert_not_made(
            f'{own} is a {LARGE}', 'nvidia-474', OTHERS.virtual(0), own
        )
        self.assertEqual({(own, LARGE, base.address(GPU))}, self.mdevs())

    def test_the_driver_refuses(self):
        fault = self.refuse(
            f'{GPU.path}/mdev_supported_types/{LARGE}/create', errno.EIO
        )
        own = str(uuid.uuid4())
        self.assert_not_made(f'makes no {LARGE}', LARGE, GPU, own)
        self.assertEqual(set(), self.kernels())
        fault.unlink()
        self.create(own=own)

    def test_one_that_does_not_go(self):
        """As one that a guest has; later it can be destroyed."""
        own = self.create()
        fault = self.refuse(f'{GPU.path}/{own}/remove', errno.EBUSY)
        error = self.assertRaises(
            exceptions.DeviceError, self.node_devices.destroy_mdev, own
        )
        self.assertIn(own, str(error))
        self.assertEqual({(own, LARGE, base.address(GPU))}, self.mdevs())
        fault.unlink()
        self.node_devices.destroy_mdev(own)
        self.assertEqual(set(), self.kernels())

    def test_foreign_ones_are_left_alone(self):
        foreign = self.a_foreign_mdev(GPU, LARGE)
        self.assert_soon({(foreign, LARGE, base.address(GPU))}, self.mdevs)
        own = self.create()
        self.node_devices.destroy_mdev(own)
        self.assertEqual({foreign}, self.kernels())

    def test_units_are_what_is_ours_and_what_is_left(self):
        line = base.a_line(GPU, driver='mdev', mdev_type=LARGE)
        driver = self.drivers['mdev']
        (all_of_it,) = self.discover_one(line).deployables
        for handle in all_of_it.handles[1:3]:
            self.addCleanup(driver.unplug, handle)
            driver.plug(handle)
        self.assertEqual((all_of_it,), self.discover_one(line).deployables)
        self.a_foreign_mdev(GPU, LARGE)
        self.assert_soon(
            3, lambda: len(self.discover_one(line).deployables[0].handles)
        )
        (left,) = self.discover_one(line).deployables
        self.assertLess(set(all_of_it.handles[1:3]), set(left.handles))
        self.assertLess(set(left.handles), set(all_of_it.handles))

    def test_a_card_that_others_use_up(self):
        for _time in range(2):
            self.a_foreign_mdev(GPU, 'nvidia-232')
        line = base.a_line(GPU, driver='mdev', mdev_type=LARGE)
        self.assert_soon((), lambda: self.discover(line).devices)
        (reason,) = self.discover(line).refused
        self.assertIn(f'no more {LARGE}', reason)

    def test_the_host_reboots(self):
        """They are gone, and can be made again with the same uuids."""
        own = self.create()
        self.reboot()
        self.assertEqual(set(), self.mdevs())
        self.create(own=own)
        self.assertEqual({own}, self.kernels())
