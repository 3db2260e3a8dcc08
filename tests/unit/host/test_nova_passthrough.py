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


"""Checked against Nova's own classes, whose rules the module repeats."""

import json

import hypothesis
from hypothesis import strategies
from nova import exception
from nova import objects
from nova.pci import whitelist
from nova.virt.libvirt import driver as libvirt_driver

from nova_accel.host import nova_passthrough
from nova_accel.model import naming
from unit.host import claimed_host
from unit.host.claimed_host import FPGA
from unit.host.claimed_host import GPU0
from unit.host.claimed_host import GPU1
from unit.host.claimed_host import NIC
from unit.host.claimed_host import NVME
from unit.host.claimed_host import QAT

FPGA_VFS = {'0000:83:00.1', '0000:83:00.2'}
NIC_VFS = {'0000:85:00.1', '0000:85:00.2'}


class PassthroughTestCase(claimed_host.ClaimedHostTestCase):
    def line_for(self, address):
        return nova_passthrough.Passthrough().line_for(
            self.function(address), self.node_devices.look()
        )

    def lines(self):
        """Address of a function that Nova takes -> the line."""
        lines = nova_passthrough.Passthrough()
        host = self.node_devices.look()
        return {
            str(function.address): line
            for function in host.functions.values()
            if (line := lines.line_for(function, host)) is not None
        }

    def claimed(self, *pci):
        self.configure(pci)
        return set(self.lines())


class TestLineFor(PassthroughTestCase):
    def test_nothing_is_configured(self):
        self.assertEqual(set(), self.claimed())

    def test_by_ids(self):
        claimed = self.claimed({'vendor_id': '8086', 'product_id': '37c9'})
        self.assertEqual(8, len(claimed))
        self.assertNotIn(QAT, claimed)

    def test_the_line_is_the_operators(self):
        line = '[{"address": "*:83:*.*"},  {"vendor_id": "10de"}]'
        self.configure(['{"vendor_id": "1234"}', line])
        for address in (FPGA, '0000:83:00.1', GPU0):
            self.assertEqual(
                f'[pci] device_spec = {line}', self.line_for(address)
            )
        self.assertIsNone(self.line_for(QAT))

    def test_a_physical_functions_address_means_its_virtual_ones_too(self):
        self.assertEqual({FPGA} | FPGA_VFS, self.claimed({'address': FPGA}))

    def test_an_interface(self):
        for name, functions in (
            ('ens5', {NIC} | NIC_VFS),
            ('ens5v0', {'0000:85:00.1'}),
            ('eno1', set()),
            ('nowhere', set()),
        ):
            self.assertEqual(functions, self.claimed({'devname': name}))

    def test_remote_managed_needs_a_serial_number(self):
        """Its own or its card's."""
        line = {'address': '*:*:*.[1-7]', 'remote_managed': 'true'}
        line['address'] = {'function': '[1-7]'}
        self.assertEqual(NIC_VFS, self.claimed(line))
        self.change(
            '0000:83:00.2',
            '</product>',
            """</product>
            <capability type='vpd'><name>x</name><fields access='readonly'>
            <serial_number>1</serial_number></fields></capability>""",
        )
        self.assertEqual(NIC_VFS | {'0000:83:00.2'}, self.claimed(line))
        self.change(NIC, 'MT2019X1', '')
        self.assertEqual({'0000:83:00.2'}, self.claimed(line))

    def test_an_address_that_nova_cannot_take(self):
        self.change(GPU0, '<domain>0</domain>', '<domain>65536</domain>')
        claimed = self.claimed({'vendor_id': '10de'})
        self.assertIn(GPU1, claimed)
        self.assertEqual(
            [],
            [address for address in claimed if address.endswith(':81:00.0')],
        )

    def test_a_line_that_nova_cannot_use(self):
        for line in (
            '{',
            '3',
            '{"vendor_id": "x"}',
            '{"devname": "ens5", "address": "*:85:*.*"}',
        ):
            self.configure([line])
            self.assertRaises(
                exception.NovaException, nova_passthrough.Passthrough
            )


class TestLineGiving(PassthroughTestCase):
    def line_giving(self, *pci, **placement):
        self.configure(pci, **placement)
        return nova_passthrough.Passthrough().line_giving(
            naming.OWNERSHIP_TRAIT, self.node_devices.look()
        )

    def test_our_trait(self):
        for traits in 'CUSTOM_NOVA_ACCEL', 'HW_GPU_API_VULKAN,nova-accel':
            line = json.dumps({'address': NVME, 'traits': traits})
            self.assertEqual(
                f'[pci] device_spec = {line}',
                self.line_giving(
                    '{"vendor_id": "1234"}', line, report_in_placement=True
                ),
            )
            self.assertIsNone(
                self.line_giving(line, report_in_placement=False)
            )

    def test_what_is_given_to_nothing(self):
        for line in (
            {'address': NVME, 'traits': 'CUSTOM_NOVA'},
            {'address': '0000:99:00.0', 'traits': 'nova_accel'},
            {'address': NVME, 'traits': 'nova_accel', 'physical_network': 'x'},
        ):
            self.assertIsNone(self.line_giving(line, report_in_placement=True))

    def test_a_line_before_it_matches(self):
        self.assertIsNone(
            self.line_giving(
                {'address': NVME},
                {'address': NVME, 'traits': 'nova_accel'},
                report_in_placement=True,
            )
        )


_BUSES = ('81', '82', 'ae')
_VENDORS = ('8086', '15b3')
_PRODUCTS = ('37c8', '37c9')
_NAMES = ('ens1', 'ens2')
_ANY = ('*', '')
_DOMAIN = strategies.sampled_from([*_ANY, '0', '0000', '0001'])
_BUS = strategies.sampled_from([*_ANY, *_BUSES, 'AE'])
_SLOT = strategies.sampled_from([*_ANY, '0', '00', '1'])
_FUNCTION = strategies.sampled_from([*_ANY, '0', '1', '2'])
_ADDRESSES = strategies.one_of(
    strategies.builds('0000:{}:00.0'.format, _BUS),
    strategies.builds('{}:{}:{}.{}'.format, _DOMAIN, _BUS, _SLOT, _FUNCTION),
    strategies.builds('{}:{}.{}'.format, _BUS, _SLOT, _FUNCTION),
    strategies.builds('{}.{}'.format, _SLOT, _FUNCTION),
    strategies.fixed_dictionaries(
        {},
        optional={
            'domain': strategies.sampled_from(['.*', '0', '^1', '']),
            'bus': strategies.sampled_from(
                ['.*', '8[12]', 'AE', 'ae', '8', '8$']
            ),
            'slot': strategies.sampled_from(['.*', '0', '00']),
            'function': strategies.sampled_from(['.*', '0', '[1-7]', '']),
        },
    ),
)
_WHERE = strategies.one_of(
    strategies.just({}),
    _ADDRESSES.map(lambda address: {'address': address}),
    strategies.sampled_from([*_NAMES, 'nowhere']).map(
        lambda name: {'devname': name}
    ),
)
_WHAT = strategies.one_of(
    strategies.just({}),
    strategies.sampled_from(_PRODUCTS).map(lambda id_: {'product_id': id_}),
    strategies.fixed_dictionaries(
        {},
        optional={
            'vendor_id': strategies.sampled_from([*_VENDORS, ' 8086', '*']),
            'product_id': strategies.sampled_from([*_PRODUCTS, '37C9', '*']),
        },
    ),
)
_TAGS = strategies.one_of(
    strategies.just({}),
    strategies.just({'remote_managed': 'true'}),
    strategies.fixed_dictionaries(
        {},
        optional={
            'remote_managed': strategies.sampled_from(['false', 'yes']),
            'physical_network': strategies.just('physnet1'),
            'trusted': strategies.just('true'),
            'managed': strategies.sampled_from(['yes', 'no']),
        },
    ),
)
_SPECS = strategies.builds(
    lambda where, what, tags: where | what | tags, _WHERE, _WHAT, _TAGS
)
_LINES = strategies.lists(
    strategies.one_of(_SPECS, strategies.lists(_SPECS, max_size=2)).map(
        json.dumps
    ),
    min_size=1,
    max_size=3,
)
_SERIALS = strategies.sampled_from([None, 'MT2019X1'])
_CARDS = strategies.dictionaries(
    strategies.sampled_from(_BUSES),
    strategies.tuples(
        strategies.sampled_from(_VENDORS),
        strategies.sampled_from(_PRODUCTS),
        strategies.sampled_from(_PRODUCTS),
        strategies.integers(0, 2),
        _SERIALS,
        _SERIALS,
        strategies.sampled_from([0, 0, 1, 65536]),
    ),
    min_size=1,
)


@strategies.composite
def _hosts(draw):
    """PCI devices, and what Nova reads in /sys about them."""
    info = claimed_host.nothing()
    cards = {}
    for bus, (vendor, *products, vfs, serial, virtual_serial, domain) in draw(
        _CARDS
    ).items():
        if vfs:
            claimed_host.add_sriov(
                info,
                int(bus, 16),
                vfs,
                vendor,
                products,
                serial,
                virtual_serial,
            )
            cards[f'0000:{bus}:00.0'] = (vendor, *products)
        else:
            card = claimed_host.add_function(
                info, int(bus, 16), vendor, products[0]
            )
            card.pci_device = card.pci_device.replace(
                '<domain>0', f'<domain>{domain}'
            )
    functions = [
        f'0000:{name[9:11]}:{name[12:14]}.{name[15:]}' for name in info.devices
    ]
    return (
        info,
        cards,
        draw(
            strategies.dictionaries(
                strategies.sampled_from(_NAMES),
                strategies.sampled_from(functions),
            )
        ),
    )


class TestAsNovaDoes(PassthroughTestCase):
    """Random lines on random hosts, against Nova's own eyes and rules."""

    @hypothesis.given(_hosts(), _LINES)
    def test_what_is_claimed(self, host, lines):
        info, *sysfs = host
        self.fake.connection.pci_info = info
        with claimed_host.Sysfs(*sysfs):
            self.configure(lines)
            try:
                theirs = whitelist.Whitelist(lines)
            except exception.NovaException as error:
                self.assertRaises(type(error), nova_passthrough.Passthrough)
                return
            ours = self.lines()
            self.assertEqual(self.taken(theirs), set(ours))
            for address, line in ours.items():
                alone = whitelist.Whitelist(
                    [line.removeprefix('[pci] device_spec = ')]
                )
                self.assertIn(address, self.taken(alone))

    def taken(self, theirs):
        """What Nova hands out, as PciDevTracker finds it."""
        return {
            device['address']
            for device in self.pci_devices()
            if self.takes(theirs, device)
        }

    def takes(self, theirs, device):
        try:
            spec = theirs.device_assignable(device)
        except exception.PciConfigInvalidSpec:
            return False
        # This is how Nova finds what to publish of it in Placement.
        self.assertIs(
            spec,
            theirs.get_devspec(objects.PciDevice.create(None, dict(device))),
        )
        return spec is not None

    def pci_devices(self):
        driver = libvirt_driver.LibvirtDriver(None)
        return json.loads(driver._get_pci_passthrough_devices())
