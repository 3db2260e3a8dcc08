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


import testtools

from nova_accel.host import libvirt_devices
from nova_accel.testing import devices
from nova_accel.testing import hgx_host
from nova_accel.testing import libvirt


class TestHgxHost(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.host = hgx_host.HgxHost()

    def test_each_switch_has_two_gpus_and_a_card(self):
        switches = {}
        for address in (*self.host.gpus, *self.host.nics):
            place = self.host.place(address)
            switches.setdefault(place.bridges[-2], []).append(place)
        self.assertEqual(4, len(switches))
        for places in switches.values():
            self.assertEqual(
                [hgx_host.GPU[0]] * 2 + [hgx_host.NIC[0]],
                [place.function.vendor_id for place in places],
            )
        roots = {places[0].root for places in switches.values()}
        self.assertEqual(4, len(roots))

    def test_each_node_has_half_of_the_gpus(self):
        nodes = [
            self.host.place(gpu).function.numa_node for gpu in self.host.gpus
        ]
        self.assertEqual([0] * 4 + [1] * 4, nodes)

    def test_pairs_of_modules(self):
        for order, is_one in (
            (hgx_host.PAIRS_ON_SWITCHES, True),
            (hgx_host.PAIRS_ACROSS_SWITCHES, False),
        ):
            host = hgx_host.HgxHost(order)
            gpus = {number: gpu for gpu, number in host.module_ids.items()}
            self.assertEqual(set(range(1, 9)), set(gpus))
            self.assertNotEqual(sorted(order), list(order))
            for one, other in ((1, 3), (2, 4), (5, 7), (6, 8)):
                switches = {
                    host.place(gpus[number]).bridges[-2]
                    for number in (one, other)
                }
                self.assertEqual(is_one, len(switches) == 1)

    def test_install(self):
        info = devices.pci_info(gpus=0, fpgas=0, qats=0)
        fake = self.useFixture(libvirt.Libvirt(info))
        self.host.install(info, fake.sysfs)
        functions = libvirt_devices.NodeDevices(fake.host).look().functions
        self.assertEqual(len(self.host.places), len(functions))
        gpu = self.host.gpus[0]
        path = (fake.sysfs.root / f'bus/pci/devices/{gpu}').resolve()
        self.assertEqual(
            'devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/'
            '0000:18:00.0',
            str(path.relative_to(fake.sysfs.root.resolve())),
        )
        self.assertEqual('0', fake.sysfs.sysfs.read(gpu, 'numa_node'))
        self.assertEqual(
            [str(bridge) for bridge in self.host.place(gpu).bridges],
            [part for part in path.parts[:-1] if part.count(':') == 2],
        )
        for address, function in functions.items():
            self.assertEqual(
                self.host.place(address).bridges[-1:],
                (function.upstream,) if function.upstream else (),
            )

    def test_device_spec(self):
        gpus, nics = hgx_host.device_spec(pool='link', module_ids={})
        self.assertIn('"pool": "link"', gpus)
        self.assertIn('"module_ids": {}', gpus)
        self.assertIn('"pool": "link"', nics)
        self.assertNotIn('module_ids', nics)
