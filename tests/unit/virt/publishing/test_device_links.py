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

import pathlib

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.model import link_sets
from nova_accel.model.devices import device_spec
from nova_accel.model.links import link_discovery
from nova_accel.testing import fake_sysfs
from nova_accel.virt.publishing import device_links
from nova_accel.virt.publishing import discovery
from nova_accel.virt.publishing import gpu_links
from nova_accel.virt.publishing import link_memory
from unit.model.links import test_linked_devices

a_gpu = test_linked_devices.a_gpu
links = test_linked_devices.links

LINE = device_spec.parse(
    [
        '{"vendor_id": "10de", "driver": "nvidia_gpu", "pool": "link", '
        '"module_ids": {"0000:01:00.0": 1, "0000:02:00.0": 2}}'
    ],
    ['nvidia_gpu'],
)[0]


class TestDeviceLinks(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.fake = self.useFixture(fake_sysfs.FakeSysfs())
        self.path = (
            pathlib.Path(self.useFixture(fixtures.TempDir()).path)
            / 'links.json'
        )
        self.partitions = [{1, 2}, {1}, {2}]
        self.fault = None
        self.start()

    def start(self, has_fabric=True):
        memory = link_memory.LinkMemory(self.path)
        self.links = device_links.DeviceLinks(
            self.fake.sysfs,
            memory,
            gpu_links.GpuLinks(self.fake.sysfs, memory, ask=self.fail),
            self.offered if has_fabric else None,
        )

    def offered(self):
        if self.fault is not None:
            raise exceptions.DeviceError(self.fault)
        return [
            link_discovery.KnownPartition(frozenset(each))
            for each in self.partitions
        ]

    def joined(self, *buses, **keys):
        devices = tuple(a_gpu(bus, **keys) for bus in buses)
        for device in devices:
            self.fake.set(device.address)
        return self.links.joined(
            discovery.Discovered(
                devices, lines={device.name: LINE for device in devices}
            )
        )

    def test_a_host_without_links_pays_nothing(self):
        self.start(has_fabric=False)
        found = discovery.Discovered((a_gpu(1, linked=False),))
        # There is no such function in sysfs.
        self.assertIs(found, self.links.joined(found))
        self.assertFalse(self.path.exists())

    def test_partitions(self):
        found = self.joined(1, 2)
        self.assertEqual(
            [{'FABRIC', 'NVLINK_2'}] * 2, list(map(links, found.devices))
        )
        self.assertEqual(1, len(found.links.nodes))

    def test_fabric_manager_is_away(self):
        self.joined(1, 2)
        self.fault = 'refused'
        self.start()
        found = self.joined(1, 2)
        self.assertEqual(
            ['Fabric Manager does not answer: refused'] * 2,
            [device.fault for device in found.devices],
        )
        # So that all providers stay.
        self.assertEqual(1, len(found.links.nodes))

    def test_a_partition_that_is_listed_no_more(self):
        before = self.joined(1, 2, 3).links
        self.assertEqual(2, len(before.nodes))
        self.partitions = [{1}, {2}]
        found = self.joined(1, 2, 3)
        self.assertEqual(
            [node.members for node in before.nodes],
            [node.members for node in found.links.nodes],
        )
        self.assertEqual([{'FABRIC'}] * 3, list(map(links, found.devices)))
        self.start()
        [node] = self.joined(1, 2, 3).links.nodes
        self.assertEqual(
            [link_sets.Kind.ROOT], [each.kind for each in node.sets]
        )

    def test_bad_lists(self):
        too_many = [{1, number} for number in range(2, 256)]
        too_many += [{2, number} for number in range(3, 9)]
        for partitions, count in (
            ([], 0),
            ([{999}, {-1}, set()], 0),
            (too_many, 260),
        ):
            self.partitions = partitions
            self.start()
            for device in self.joined(1, 2).devices:
                self.assertEqual(
                    f'Fabric Manager lists {count} partitions', device.fault
                )

    def test_complaints_are_logged_once(self):
        device = a_gpu(9)
        for _time in range(2):
            self.links.joined(
                discovery.Discovered((device,), lines={device.name: LINE})
            )
        self.assertEqual(1, self.log.output.count('0000:09:00.0: its module'))
        self.assertEqual(1, self.log.output.count('in no set of a switch'))
