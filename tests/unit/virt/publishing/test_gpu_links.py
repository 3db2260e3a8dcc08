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
from nova_accel.host import nvidia_smi
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.model.devices import hardware
from nova_accel.testing import fake_sysfs
from nova_accel.virt.publishing import gpu_links
from nova_accel.virt.publishing import link_memory


def address(bus):
    return pci_address.PciAddress(0, bus, 0, 0)


def a_gpu(bus, serial=None):
    handle = attach_handle.AttachHandle('uuid', address(bus), identity=serial)
    return hardware.Device(
        name=f'gpu{bus}',
        type='GPU',
        vendor_id='10de',
        product_id='2335',
        vendor='v',
        product='p',
        address=address(bus),
        driver='nvidia_gpu',
        deployables=(
            hardware.Deployable('function', 'PGPU', frozenset(), (handle,)),
        ),
    )


class GpuLinksTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.fake = self.useFixture(fake_sysfs.FakeSysfs())
        self.path = (
            pathlib.Path(self.useFixture(fixtures.TempDir()).path)
            / 'links.json'
        )
        self.now = 1000.0
        self.useFixture(
            fixtures.MonkeyPatch('time.monotonic', lambda: self.now)
        )
        self.told = {}
        self.calls = 0
        self.start()

    def start(self):
        self.links = gpu_links.GpuLinks(
            self.fake.sysfs, link_memory.LinkMemory(self.path), self.ask
        )

    def ask(self, addresses):
        self.calls += 1
        self.asked = set(addresses)
        if isinstance(self.told, Exception):
            raise self.told
        return tuple(self.told.values())

    def bind(self, driver, *buses):
        for bus in buses:
            self.fake.set(address(bus))
            link = self.fake.root / f'bus/pci/devices/{address(bus)}/driver'
            link.unlink(missing_ok=True)
            link.symlink_to(f'../../../bus/pci/drivers/{driver}')

    def tell(self, bus, module_id, *peers, has_fabric=False):
        self.told[bus] = nvidia_smi.Gpu(
            address(bus), module_id, frozenset(map(address, peers)), has_fabric
        )


class TestLearn(GpuLinksTestCase):
    def test_a_guests_gpu_keeps_what_was_known(self):
        self.bind('nvidia', 1, 2)
        self.tell(1, 4, 9, has_fabric=True)
        self.tell(2, 1)
        gpus = [a_gpu(1), a_gpu(2)]
        self.links.learn(gpus)
        known = {'gpu1': 4, 'gpu2': None}
        self.assertEqual(known, self.links.module_ids(gpus))
        self.assertEqual({address(1), address(2)}, self.asked)
        self.bind('vfio-pci', 1, 2)
        self.start()
        self.links.learn(gpus)
        self.assertEqual(1, self.calls)
        self.assertEqual(known, self.links.module_ids(gpus))

    def test_nobody_is_asked_for_nothing(self):
        self.links.learn([])
        self.bind('vfio-pci', 1)
        self.links.learn([a_gpu(1), a_gpu(2)])
        self.assertEqual(0, self.calls)
        self.assertEqual({}, self.links.module_ids([a_gpu(1)]))

    def test_another_card_is_asked_anew(self):
        self.bind('nvidia', 1)
        self.tell(1, 4, has_fabric=True)
        self.links.learn([a_gpu(1, 'first')])
        self.assertEqual({}, self.links.module_ids([a_gpu(1, 'second')]))
        # While a guest has it, it does not tell its serial number.
        self.assertEqual({'gpu1': 4}, self.links.module_ids([a_gpu(1)]))
        self.tell(1, 5, has_fabric=True)
        self.links.learn([a_gpu(1, 'second')])
        self.assertEqual(
            {'gpu1': 5}, self.links.module_ids([a_gpu(1, 'second')])
        )

    def test_how_often(self):
        self.bind('nvidia', 1)
        self.tell(1, 4)
        self.links.learn([a_gpu(1)])
        self.now += gpu_links.LOOK_AGAIN_S - 1
        self.links.learn([a_gpu(1)])
        self.assertEqual(1, self.calls)
        self.now += 1
        self.links.learn([a_gpu(1)])
        self.assertEqual(2, self.calls)
        # A new one is asked at once, and not again and again.
        self.bind('nvidia', 2)
        for _time in range(3):
            self.links.learn([a_gpu(1), a_gpu(2)])
        self.assertEqual(3, self.calls)
        self.now += gpu_links.TRY_AGAIN_S
        self.links.learn([a_gpu(1), a_gpu(2)])
        self.assertEqual(4, self.calls)

    def test_a_failure_is_logged_and_tried_again(self):
        self.bind('nvidia', 1)
        self.told = exceptions.DeviceError('no such command')
        for _time in range(3):
            self.links.learn([a_gpu(1)])
        self.assertEqual(1, self.calls)
        self.assertIn('no such command', self.log.output)
        self.told = {}
        self.tell(1, 4, has_fabric=True)
        self.now += gpu_links.TRY_AGAIN_S
        self.links.learn([a_gpu(1)])
        self.assertEqual({'gpu1': 4}, self.links.module_ids([a_gpu(1)]))


class TestPairs(GpuLinksTestCase):
    def setUp(self):
        super().setUp()
        self.gpus = [a_gpu(bus) for bus in (1, 2, 3)]
        self.bind('nvidia', 1, 2, 3)
        self.tell(1, 1, 2)
        self.tell(2, 1, 1)
        self.tell(3, 1, 1)

    def pairs(self):
        self.links.learn(self.gpus)
        return self.links.pairs(self.gpus)

    def test_both_ends_say_so(self):
        pair = frozenset({'gpu1', 'gpu2'})
        self.assertEqual(({pair}, frozenset()), self.pairs())

    def test_a_link_that_fails(self):
        pair = frozenset({'gpu1', 'gpu2'})
        self.pairs()
        self.tell(1, 1)
        self.now += gpu_links.LOOK_AGAIN_S
        self.assertEqual(({pair}, {pair}), self.pairs())
        # It is known which link has failed after a restart, too.
        self.start()
        self.assertEqual(({pair}, {pair}), self.pairs())
        self.tell(1, 1, 2)
        self.now += gpu_links.LOOK_AGAIN_S
        self.assertEqual(({pair}, frozenset()), self.pairs())

    def test_a_guests_gpu_loses_no_link(self):
        """The other GPU may say so, because the guest's is not started."""
        before = self.pairs()
        self.bind('vfio-pci', 1)
        del self.told[1]
        self.tell(2, 1)
        self.now += gpu_links.LOOK_AGAIN_S
        self.assertEqual(before, self.pairs())
        self.assertEqual(2, self.calls)

    def test_another_card_has_lost_nothing(self):
        self.gpus[0] = a_gpu(1, 'first')
        self.pairs()
        self.gpus[0] = a_gpu(1, 'second')
        self.tell(1, 1)
        self.now += gpu_links.LOOK_AGAIN_S
        self.assertEqual((frozenset(), frozenset()), self.pairs())


class TestOfLines(testtools.TestCase):
    def test_by_address(self):
        self.assertEqual(
            {'gpu1': 7, 'gpu2': None},
            gpu_links.of_lines(
                [a_gpu(1), a_gpu(2), a_gpu(3)],
                {'0000:01:00.0': 7, '0000:02:00.0': None, '0000:09:00.0': 1},
            ),
        )
