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


from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel.model import bounds
from nova_accel.model import pci_address
from nova_accel.model.devices import pci_path
from unit.model import pci_addresses

PATHS = st.builds(
    pci_path.PciPath,
    st.builds('pci{:04x}:{:02x}'.format, st.integers(0, 0xFFFFF), st.just(0)),
    st.lists(pci_addresses.ANY, max_size=pci_path.MAX_BRIDGES).map(tuple),
    st.none() | st.integers(0, bounds.MAX_NUMA_NODE),
)

PORT, UPSTREAM, DOWNSTREAM, CARD, LOWER, GPU = map(
    pci_address.PciAddress.parse,
    (
        '0000:16:02.0',
        '0000:17:00.0',
        '0000:18:00.0',
        '0000:19:00.0',
        '0000:1a:00.0',
        '0000:1b:00.0',
    ),
)


def written(path, function):
    return ('devices', path.root, *map(str, path.bridges), str(function))


class TestParse(testtools.TestCase):
    def assert_refused(self, text, parts, numa_node=None):
        error = self.assertRaises(
            exceptions.DeviceError, pci_path.parse, parts, numa_node
        )
        self.assertIn(text, str(error))

    @given(PATHS, pci_addresses.ANY)
    def test_round_trip(self, path, function):
        node = '-1' if path.numa_node is None else str(path.numa_node)
        self.assertEqual(path, pci_path.parse(written(path, function), node))

    def test_of_a_switch(self):
        path = pci_path.parse(
            [
                'devices',
                'pci0000:16',
                '0000:16:02.0',
                '0000:17:00.0',
                '0000:18:00.0',
                '0000:1b:00.0',
            ],
            '1',
        )
        self.assertEqual(
            pci_path.PciPath('pci0000:16', (PORT, UPSTREAM, DOWNSTREAM), 1),
            path,
        )

    def test_below_a_controller_of_another_platform(self):
        path = pci_path.parse(
            ('devices', 'platform', '4010000.pcie', 'pci0000:00', str(GPU))
        )
        self.assertEqual(pci_path.PciPath('pci0000:00'), path)

    def test_the_lowest_root_complex_is_its_own(self):
        path = pci_path.parse(
            (
                'devices',
                'pci0000:64',
                '0000:64:00.5',
                'pci10000:00',
                '10000:00:02.0',
                '10000:01:00.0',
            )
        )
        self.assertEqual('pci10000:00', path.root)
        self.assertEqual(1, len(path.bridges))

    def test_no_path_of_a_function(self):
        for parts in (
            (),
            ('devices',),
            ('devices', 'pci0000:00'),
            ('devices', 'platform', str(GPU)),
            ('devices', 'pci0000:0g', str(GPU)),
        ):
            self.assert_refused('is not the path of a PCI function', parts)
        self.assert_refused(
            "'virtio0' is not a PCI address",
            ('devices', 'pci0000:00', str(GPU), 'virtio0'),
        )

    def test_too_deep(self):
        path = pci_path.PciPath(
            'pci0000:00', (PORT,) * (pci_path.MAX_BRIDGES + 1)
        )
        self.assert_refused('is not the path', written(path, GPU))

    def test_nodes(self):
        parts = ('devices', 'pci0000:00', str(GPU))
        for text in ('-1', None):
            self.assertIsNone(pci_path.parse(parts, text).numa_node)
        for text in ('', '-2', '1024', '99999', '\u0661', '0x1', 'a'):
            self.assert_refused('is not a NUMA node', parts, text)


class TestSwitches(testtools.TestCase):
    def assert_switches(self, wanted, *bridges):
        path = pci_path.PciPath('pci0000:16', bridges)
        self.assertEqual(wanted, path.switches())
        self.assertEqual(wanted[-1] if wanted else None, path.switch())

    def test_none(self):
        self.assert_switches(())
        self.assert_switches((), PORT)

    def test_a_bridge_to_a_conventional_bus_is_none(self):
        self.assert_switches((), PORT, CARD)
        self.assert_switches((UPSTREAM,), PORT, UPSTREAM, DOWNSTREAM, CARD)

    def test_of_the_board_and_of_the_card(self):
        self.assert_switches((UPSTREAM,), PORT, UPSTREAM, DOWNSTREAM)
        self.assert_switches(
            (UPSTREAM, CARD), PORT, UPSTREAM, DOWNSTREAM, CARD, LOWER
        )
