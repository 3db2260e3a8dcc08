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


"""Configurations of Nova and of ours that claim the same device, or nearly."""

import dataclasses
import json

import testscenarios

from nova_accel.drivers import base
from nova_accel.drivers import facts
from nova_accel.drivers import loading
from nova_accel.host import host_use
from nova_accel.host import nova_claims
from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model.devices import device_spec
from nova_accel.virt.publishing import discovery
from nova_accel.virt.publishing import last_answers
from nova_accel.virt.publishing import units_in_use
from unit.host import claimed_host
from unit.host.claimed_host import an_entry
from unit.host.claimed_host import CHIP
from unit.host.claimed_host import CHIP_1
from unit.host.claimed_host import FPGA
from unit.host.claimed_host import GPU0
from unit.host.claimed_host import GPU1
from unit.host.claimed_host import NODE
from unit.host.claimed_host import NODE_UUID
from unit.host.claimed_host import NVME
from unit.host.claimed_host import QAT
from unit.host.claimed_host import SRIOV_GPU

FPGA_VF1, FPGA_VF2 = '0000:83:00.1', '0000:83:00.2'
QAT_VF1, QAT_VF2, QAT_VF8 = '0000:84:00.1', '0000:84:00.2', '0000:84:01.0'
NIC_VF1 = '0000:85:00.1'
SRIOV_VF1, SRIOV_VF2 = '0000:ae:00.1', '0000:ae:00.2'

NVME_UUID = naming.derived_uuid(NODE_UUID, 'provider', 'ssd', '144d', 'a80a')


def a_line(address, driver='pci', **keys):
    return json.dumps({'address': address, 'driver': driver, **keys})


#: Our line for each device.
OURS = {
    GPU0: a_line(GPU0, 'mdev', mdev_type='nvidia-11'),
    FPGA: a_line(FPGA, 'fake'),
    QAT_VF1: a_line(QAT_VF1),
    QAT_VF8: a_line(QAT_VF8),
    NIC_VF1: a_line(NIC_VF1, type='NIC'),
    CHIP: a_line(CHIP, 'unit', type='AICHIP'),
    NVME: a_line(NVME, type='SSD'),
    SRIOV_GPU: a_line(SRIOV_GPU, 'mdev', type='VGPU'),
    SRIOV_VF1: a_line(SRIOV_VF1, 'mdev', type='VGPU'),
}
WHOLE_GPU = a_line(GPU0, type='GPU')
WHOLE_SRIOV_GPU = a_line(SRIOV_GPU, type='GPU')
WHOLE_SRIOV_VF = a_line(SRIOV_VF1, type='GPU')


class UnitDriver(base.Driver):
    """The functions 0 and 1 of a chip go into a guest together."""

    def discover(self, function, spec, host):
        known = facts.of(function, spec)
        return known.device(
            [
                known.deployable(
                    'unit',
                    [
                        attach_handle.AttachHandle(
                            naming.derived_uuid(
                                self._node_uuid, function.name
                            ),
                            function.address,
                            further_functions=(
                                dataclasses.replace(
                                    function.address, function=1
                                ),
                            ),
                        )
                    ],
                )
            ]
        )


def pci(*specs, ours, line=None, names=None, **placement):
    """``[pci] device_spec``.

    :param ours: the device, for which there is a line in OURS, or a line
    :param line: the one of them that conflicts, the last by default
    :param names: what the error says of the function that Nova claims
    """
    specs = [
        spec if isinstance(spec, str) else json.dumps(spec) for spec in specs
    ]
    return {
        'nova': {'pci': specs, **placement},
        'ours': ours,
        'named': f'[pci] device_spec = {line or specs[-1]}',
        'what': names,
    }


def vgpus(named, ours, names=None, **types):
    """``[devices]`` and ``[mdev_*]``; ``nvidia_11`` is ``nvidia-11``."""
    return {
        'nova': {
            'vgpus': {
                name.replace('_', '-'): options
                for name, options in types.items()
            }
        },
        'ours': ours,
        'named': named,
        'what': names,
    }


def yaml(*entries, ours, file='a.yaml', named=''):
    """A provider.yaml with these entries."""
    return {
        'nova': {'providers': {file: list(entries)}},
        'ours': ours,
        'named': f'{file}: provider with {named}',
        'what': None,
    }


def of_node(*traits, **inventories):
    return an_entry('$COMPUTE_NODE', *traits, method='uuid', **inventories)


DEFAULT_11 = '[devices] enabled_mdev_types = nvidia-11 (without [mdev_nvidia'
CONFLICTS = {
    # [pci] device_spec
    'everything': pci({}, ours=NVME),
    'any address': pci({'address': '*:*:*.*'}, ours=NVME),
    'a vendor': pci({'vendor_id': '10de'}, ours=GPU0),
    'a product': pci({'product_id': 'a80a'}, ours=NVME),
    'ids in capitals': pci(
        {'vendor_id': '144D', 'product_id': 'A80A'}, ours=NVME
    ),
    'any ids': pci({'vendor_id': '*', 'product_id': '*'}, ours=NVME),
    'an address': pci({'address': NVME}, ours=NVME),
    'an address in capitals': pci({'address': '0000:AE:00.1'}, ours=SRIOV_VF1),
    'no domain': pci({'address': '87:00.0'}, ours=NVME),
    'a slot': pci({'address': ':00.'}, ours=NVME),
    'a function': pci({'address': '.0'}, ours=NVME),
    'a short bus': pci({'address': '0:87:0.0'}, ours=NVME),
    'a bus': pci({'address': '*:87:*.*'}, ours=NVME),
    'a regex': pci(
        {'address': {'bus': '8[67]', 'function': '[0-3]'}}, ours=NVME
    ),
    'a regex of nothing': pci({'address': {}}, ours=NVME),
    'a regex that begins so': pci({'address': {'bus': '8'}}, ours=NVME),
    'a list': pci([{'address': GPU1}, {'address': NVME}], ours=NVME),
    'the second line': pci({'address': GPU1}, {'address': NVME}, ours=NVME),
    'the first of two': pci(
        {'vendor_id': '144d'},
        {'address': NVME},
        ours=NVME,
        line='{"vendor_id": "144d"}',
    ),
    'ids and address': pci(
        {'vendor_id': '144d', 'address': '*:87:*.*'}, ours=NVME
    ),
    'a physical network': pci(
        {'address': NIC_VF1, 'physical_network': 'x'}, ours=NIC_VF1
    ),
    'tags': pci(
        {
            'address': NVME,
            'managed': 'no',
            'trusted': 'true',
            'live_migratable': 'yes',
        },
        ours=NVME,
    ),
    'in Placement': pci(
        {'address': NVME, 'resource_class': 'SSD', 'traits': 'FAST'},
        ours=NVME,
        report_in_placement=True,
    ),
    'remote managed': pci(
        {'product_id': '101e', 'remote_managed': 'true'}, ours=NIC_VF1
    ),
    'remote managed by the interface of its card': pci(
        {'devname': 'ens5', 'product_id': '101e', 'remote_managed': 'true'},
        ours=NIC_VF1,
    ),
    'an interface': pci({'devname': 'ens5v0'}, ours=NIC_VF1),
    'the interface of its card': pci({'devname': 'ens5'}, ours=NIC_VF1),
    'the address of its card': pci({'address': QAT}, ours=QAT_VF8),
    'the address of its card, and its ids': pci(
        {'address': QAT, 'product_id': '37c9'}, ours=QAT_VF8
    ),
    'its card alone': pci(
        {'product_id': '37c8'},
        ours=QAT_VF8,
        names=f'{QAT}, the physical function of {QAT_VF8},',
    ),
    'its card by a regex': pci(
        {'address': {'bus': '84', 'slot': '00', 'function': '0'}},
        ours=QAT_VF8,
        names=f'{QAT}, the physical function of',
    ),
    'a region of it': pci({'address': FPGA_VF2}, ours=FPGA, names=FPGA_VF2),
    'the virtual functions of it': pci(
        {'product_id': '09c5'}, ours=FPGA, names=FPGA_VF1
    ),
    'a parent of its vGPUs': pci(
        {'address': SRIOV_VF2}, ours=SRIOV_GPU, names=SRIOV_VF2
    ),
    'a virtual function of a whole card': pci(
        {'address': SRIOV_VF2},
        ours=WHOLE_SRIOV_GPU,
        names=f'{SRIOV_VF2}, a virtual function of {SRIOV_GPU},',
    ),
    'the card of a vGPU': pci(
        {'address': {'bus': 'ae', 'function': '0'}},
        ours=SRIOV_VF1,
        names=f'{SRIOV_GPU}, the physical function of {SRIOV_VF1},',
    ),
    'a vGPU': pci({'address': SRIOV_VF1}, ours=SRIOV_VF1),
    'a whole GPU': pci({'address': GPU0}, ours=WHOLE_GPU),
    'the first function of a unit': pci({'address': CHIP}, ours=CHIP),
    'the second function of a unit': pci(
        {'address': CHIP_1}, ours=CHIP, names=CHIP_1
    ),
    # [devices] and [mdev_*]
    'a card of vGPUs': vgpus(
        f'[mdev_nvidia-11] device_addresses = {GPU0}', GPU0, nvidia_11=[GPU0]
    ),
    'a card of vGPUs of another type': vgpus(
        f'[mdev_nvidia-12] device_addresses = {GPU1},{GPU0}',
        GPU0,
        nvidia_12=[GPU1, GPU0],
    ),
    'a card of vGPUs of a type that it does not make': vgpus(
        '[mdev_nvidia-99]', GPU0, nvidia_99=[GPU0]
    ),
    'the default type': vgpus(DEFAULT_11, GPU0, nvidia_11=[]),
    'the default type is another': vgpus(
        '[devices] enabled_mdev_types = nvidia-12', GPU0, nvidia_12=[]
    ),
    'the default type comes second': vgpus(
        '[devices] enabled_mdev_types = nvidia-12,nvidia-11 (without '
        '[mdev_nvidia-11]',
        GPU0,
        nvidia_12=[GPU1],
        nvidia_11=[],
    ),
    'a type with a limit': vgpus(
        DEFAULT_11, GPU0, nvidia_11={'max_instances': 4}
    ),
    'a type of another class': vgpus(
        '[mdev_nvidia-11] device_addresses',
        GPU0,
        nvidia_11={'device_addresses': [GPU0], 'mdev_class': 'CUSTOM_VGPU'},
    ),
    'vGPUs of a whole GPU': vgpus(
        '[mdev_nvidia-11]', WHOLE_GPU, nvidia_11=[GPU0]
    ),
    'the default type of a whole GPU': vgpus(
        DEFAULT_11, WHOLE_GPU, nvidia_11=[]
    ),
    'a virtual function that makes vGPUs': vgpus(
        f'[mdev_nvidia-557] device_addresses = {SRIOV_VF2}',
        SRIOV_GPU,
        names=SRIOV_VF2,
        nvidia_557=[SRIOV_VF2],
    ),
    'the default type of virtual functions': vgpus(
        '[devices] enabled_mdev_types = nvidia-557',
        SRIOV_GPU,
        names=SRIOV_VF1,
        nvidia_557=[],
    ),
    'vGPUs of a virtual function': vgpus(
        '[mdev_nvidia-557]', WHOLE_SRIOV_VF, nvidia_557=[SRIOV_VF1]
    ),
    'vGPUs of virtual functions of a whole card': vgpus(
        '[devices] enabled_mdev_types = nvidia-557',
        WHOLE_SRIOV_GPU,
        names=f'{SRIOV_VF1}, a virtual function of {SRIOV_GPU},',
        nvidia_557=[],
    ),
    'vGPUs by the address of the card': vgpus(
        f'[mdev_nvidia-557] device_addresses = {SRIOV_GPU}',
        SRIOV_VF1,
        names=f'{SRIOV_GPU}, the physical function of',
        nvidia_557=[SRIOV_GPU],
    ),
    'vGPUs by an address in capitals': vgpus(
        '[mdev_nvidia-557] device_addresses = 0000:AE:00.1',
        SRIOV_VF1,
        nvidia_557=['0000:AE:00.1'],
    ),
    # provider.yaml
    'the name of a pool': yaml(
        an_entry(f'{NODE}_accel_ssd_144d_a80a', 'CUSTOM_X'),
        ours=NVME,
        named=f'name {NODE}_accel_ssd_144d_a80a',
    ),
    'the uuid of a pool': yaml(
        an_entry(NVME_UUID, 'CUSTOM_X', method='uuid'),
        ours=NVME,
        named=f'uuid {NVME_UUID}',
    ),
    'the name of a NUMA node\'s pool': yaml(
        an_entry(f'{NODE}_accel_ssd_144d_a80a_numa0', 'CUSTOM_X'),
        ours=a_line(NVME, type='SSD', pool='numa'),
        named=f'name {NODE}_accel_ssd_144d_a80a_numa0',
    ),
    'its resource class': yaml(
        an_entry(f'{NODE}_accel_ssd_144d_a80a', CUSTOM_SSD=4),
        ours=NVME,
        named='name host1_accel_ssd',
    ),
    'another resource class': yaml(
        an_entry(f'{NODE}_accel_pci_0000_81_00_0', CUSTOM_LICENCE=4),
        ours=GPU0,
        named='name host1_accel_pci_0000_81_00_0',
    ),
    'the provider of a region': yaml(
        an_entry(f'{NODE}_accel_pci_0000_83_00_0_region1', 'CUSTOM_X'),
        ours=FPGA,
        named='name host1_accel_pci_0000_83_00_0_region1',
    ),
    'the provider above the regions': yaml(
        an_entry(f'{NODE}_accel_pci_0000_83_00_0', 'CUSTOM_X'),
        ours=FPGA,
        named='name host1_accel_pci_0000_83_00_0',
    ),
    'our trait, to all nodes': yaml(
        of_node('CUSTOM_NOVA_ACCEL'), ours=NVME, named='uuid $COMPUTE_NODE'
    ),
    'our trait, to this node by name': yaml(
        an_entry(NODE, 'CUSTOM_X', 'CUSTOM_NOVA_ACCEL'),
        ours=NVME,
        named=f'name {NODE}',
    ),
    'our trait, to this node by uuid': yaml(
        of_node('CUSTOM_X'),
        an_entry(NODE_UUID, 'CUSTOM_NOVA_ACCEL', method='uuid'),
        ours=NVME,
        named=f'uuid {NODE_UUID}',
    ),
    'our trait and class, to all nodes': yaml(
        of_node('CUSTOM_NOVA_ACCEL', CUSTOM_SSD=1),
        ours=NVME,
        named='uuid $COMPUTE_NODE',
    ),
    "our trait, to a card of Nova's": yaml(
        an_entry(f'{NODE}_pci_0000_82_00_0', 'CUSTOM_NOVA_ACCEL'),
        ours=NVME,
        named='name host1_pci_0000_82_00_0',
    ),
    'our trait, to a PCI device': pci(
        {'address': GPU1, 'traits': 'nova_accel'},
        ours=NVME,
        names='CUSTOM_NOVA_ACCEL',
        report_in_placement=True,
    ),
}

NO_CONFLICTS = {
    # [pci] device_spec
    'nothing': pci('[]', ours=NVME),
    'another vendor': pci({'vendor_id': '144c'}, ours=NVME),
    'another product': pci({'product_id': 'a80b'}, ours=NVME),
    'another bus': pci({'address': '*:86:*.*'}, ours=NVME),
    'another slot': pci({'address': ':01.'}, ours=NVME),
    'another function': pci({'address': '0000:87:00.1'}, ours=NVME),
    'any other function': pci({'address': '.1'}, ours=NVME),
    'another domain': pci({'address': '0001:87:00.0'}, ours=NVME),
    'its ids at another address': pci(
        {'vendor_id': '144d', 'product_id': 'a80a', 'address': '*:86:*.*'},
        ours=NVME,
    ),
    'its vendor with another product': pci(
        {'vendor_id': '144d', 'product_id': '1020'}, ours=NVME
    ),
    'its address with another vendor': pci(
        {'address': NVME, 'vendor_id': '10de'}, ours=NVME
    ),
    'a regex that ends before': pci({'address': {'bus': '8[1-6]'}}, ours=NVME),
    'a regex in capitals': pci({'address': {'bus': 'AE'}}, ours=SRIOV_VF1),
    'a regex with an end': pci({'address': {'bus': '8$'}}, ours=NVME),
    'a regex of another function': pci(
        {'address': {'bus': '87', 'function': '[1-7]'}}, ours=NVME
    ),
    'a list of others': pci([{'address': GPU1}, {'address': CHIP}], ours=NVME),
    'remote managed without a serial number': pci(
        {'address': '*:87:*.*', 'remote_managed': 'true'}, ours=NVME
    ),
    'remote managed by a card without one': pci(
        {'product_id': '37c9', 'remote_managed': 'true'}, ours=QAT_VF1
    ),
    'an interface of another': pci({'devname': 'eno1'}, ours=NIC_VF1),
    'an interface that is not there': pci({'devname': 'ens6'}, ours=NIC_VF1),
    'an interface of its card, for others': pci(
        {'devname': 'ens5', 'product_id': '101d', 'vendor_id': '8086'},
        ours=NIC_VF1,
    ),
    'a function of the same card': pci({'address': QAT_VF2}, ours=QAT_VF1),
    'the other functions of the same card': pci(
        {'address': {'bus': '84', 'slot': '00', 'function': '[2-7]'}},
        {'address': '84:01.0'},
        ours=QAT_VF1,
    ),
    'another card of the same vendor': pci({'address': FPGA}, ours=QAT_VF1),
    'the function of another bus': pci({'address': '*:83:00.1'}, ours=QAT_VF1),
    'a card, but not its own': pci({'product_id': '09c4'}, ours=QAT_VF8),
    'the address of its card, and other ids': pci(
        {'address': QAT, 'product_id': '09c5'}, ours=QAT_VF8
    ),
    'another card whose functions are vGPUs': pci(
        {'address': GPU1}, ours=SRIOV_GPU
    ),
    'another vGPU of the same card': pci(
        {'address': SRIOV_VF2}, ours=SRIOV_VF1
    ),
    'another GPU': pci({'address': GPU1}, ours=WHOLE_GPU),
    'a function beside a unit': pci({'address': '0000:86:00.2'}, ours=CHIP),
    'others in Placement': pci(
        {'address': GPU1, 'resource_class': 'CUSTOM_SSD', 'traits': 'ACCEL'},
        ours=NVME,
        report_in_placement=True,
    ),
    'our trait, but not in Placement': pci(
        {'address': GPU1, 'traits': 'nova_accel'}, ours=NVME
    ),
    'our trait, with a physical network': pci(
        {'address': GPU1, 'traits': 'nova_accel', 'physical_network': 'x'},
        ours=NVME,
        report_in_placement=True,
    ),
    'our trait, to nothing': pci(
        {'address': '*:99:*.*', 'traits': 'nova_accel'},
        ours=NVME,
        report_in_placement=True,
    ),
    # [devices] and [mdev_*]
    'another card of vGPUs': vgpus('', GPU0, nvidia_11=[GPU1]),
    'two types of another card': vgpus(
        '', GPU0, nvidia_11=[GPU1], nvidia_12=[SRIOV_VF1]
    ),
    'another whole GPU': vgpus('', WHOLE_GPU, nvidia_11=[GPU1]),
    'a default type that it does not make': vgpus('', GPU0, nvidia_557=[]),
    'a default type of nobody': vgpus('', GPU0, nvidia_99=[]),
    'the second type without addresses': vgpus(
        '', GPU0, nvidia_557=[], nvidia_11=[]
    ),
    'a limit and a class of another card': vgpus(
        '',
        GPU0,
        nvidia_11={
            'device_addresses': [GPU1],
            'max_instances': 1,
            'mdev_class': 'CUSTOM_VGPU',
        },
    ),
    'a type of whole GPUs elsewhere': vgpus('', NVME, nvidia_11=[]),
    'a card, not its virtual functions': vgpus(
        '', SRIOV_GPU, nvidia_11=[], nvidia_12=[GPU0]
    ),
    'another virtual function that makes vGPUs': vgpus(
        '', SRIOV_VF1, nvidia_557=[SRIOV_VF2]
    ),
    # provider.yaml
    'a trait of all nodes': yaml(of_node('CUSTOM_X'), ours=NVME),
    'our class, to all nodes': yaml(of_node(CUSTOM_SSD=4), ours=NVME),
    'a trait of this node': yaml(an_entry(NODE, 'CUSTOM_X'), ours=NVME),
    'this node differs from all': yaml(
        of_node('CUSTOM_NOVA_ACCEL'), an_entry(NODE, 'CUSTOM_X'), ours=NVME
    ),
    'our trait, to another node': yaml(
        an_entry('host2', 'CUSTOM_NOVA_ACCEL'), ours=NVME
    ),
    'our trait, to a node with a longer name': yaml(
        an_entry('host10', 'CUSTOM_NOVA_ACCEL'), ours=NVME
    ),
    'our provider of another node': yaml(
        an_entry('host2_accel_ssd_144d_a80a', CUSTOM_SSD=4), ours=NVME
    ),
    'another provider of ours': yaml(
        an_entry(f'{NODE}_accel_ssd_144d_a80b', 'CUSTOM_NOVA_ACCEL'),
        ours=NVME,
    ),
    'the pool of another NUMA node': yaml(
        an_entry(f'{NODE}_accel_ssd_144d_a80a_numa1', 'CUSTOM_X'),
        ours=a_line(NVME, type='SSD', pool='numa'),
    ),
    'a region that is not there': yaml(
        an_entry(f'{NODE}_accel_pci_0000_83_00_0_region2', 'CUSTOM_X'),
        ours=FPGA,
    ),
    'an entry that adds nothing': yaml(
        an_entry(f'{NODE}_accel_ssd_144d_a80a'), ours=NVME
    ),
    'a uuid in capitals': yaml(
        an_entry(NVME_UUID.upper(), 'CUSTOM_X', method='uuid'), ours=NVME
    ),
    'a file that is not read': yaml(
        an_entry(f'{NODE}_accel_ssd_144d_a80a', 'CUSTOM_X'),
        ours=NVME,
        file='a.yml',
    ),
    "a provider of Nova's": yaml(
        an_entry(f'{NODE}_pci_0000_87_00_0', 'CUSTOM_X'), ours=NVME
    ),
}


class ConflictsTestCase(
    testscenarios.WithScenarios, claimed_host.ClaimedHostTestCase
):
    def discover(self, *lines):
        drivers = {
            **loading.load(
                self.node_devices, self.fake.sysfs.sysfs, NODE_UUID
            ),
            'unit': UnitDriver(self.node_devices, None, NODE_UUID),
        }
        return discovery.discover(
            self.node_devices,
            drivers,
            device_spec.parse(lines, drivers),
            nova_claims.NovaClaims(NODE, NODE_UUID),
            lambda _mdevs: units_in_use.Found(),
            lambda: host_use.HostUse(self.fake.sysfs.sysfs),
            last_answers.LastAnswers(),
        )

    @property
    def our_line(self):
        return OURS.get(self.ours, self.ours)


class TestConflicts(ConflictsTestCase):
    scenarios = list(CONFLICTS.items())

    def test_it_is_refused_with_both_lines(self):
        self.configure(**self.nova)
        address = json.loads(self.our_line)['address']
        inventory = self.discover(self.our_line)
        self.assertEqual((), inventory.devices)
        (reason,) = inventory.refused
        self.assertTrue(
            reason.startswith(
                f'{address} ([nova_accel] device_spec = {self.our_line}): '
                f'Nova claims {self.what or ""}'
            ),
            reason,
        )
        self.assertIn(self.named, reason)


class TestNoConflicts(ConflictsTestCase):
    scenarios = list(NO_CONFLICTS.items())

    def test_it_is_published(self):
        self.configure()
        before = self.discover(self.our_line)
        self.assertEqual(1, len(before.devices), before.refused)
        self.configure(**self.nova)
        self.assertEqual(before, self.discover(self.our_line))


class TestTheRestWorks(ConflictsTestCase):
    def refused(self, *lines, **nova):
        """Device -> why it is refused; each is, or is published."""
        self.configure(**nova)
        inventory = self.discover(*lines)
        self.published = {str(device.address) for device in inventory.devices}
        return {
            reason.partition(' ')[0]: reason for reason in inventory.refused
        }

    def test_one_device_of_many(self):
        lines = [
            line for address, line in OURS.items() if address != SRIOV_VF1
        ]
        refused = self.refused(
            *lines,
            pci=[{'address': FPGA_VF1}],
            vgpus={'nvidia-11': [GPU0]},
            providers={
                'a.yaml': [an_entry(f'{NODE}_accel_ssd_144d_a80a', 'CUSTOM_X')]
            },
        )
        self.assertEqual({FPGA, GPU0, NVME}, refused.keys())
        self.assertEqual(
            {QAT_VF1, QAT_VF8, NIC_VF1, CHIP, SRIOV_GPU}, self.published
        )

    def test_the_parts_of_a_refused_device_are_no_devices(self):
        """Its line matches them too."""
        line = a_line('ae:*.*', 'mdev', type='VGPU')
        refused = self.refused(line, pci=[{'address': SRIOV_VF2}])
        self.assertEqual({SRIOV_GPU}, refused.keys())
        self.assertEqual(set(), self.published)

    def test_one_function_of_a_pool(self):
        line = json.dumps(
            {'vendor_id': '8086', 'product_id': '37c9', 'driver': 'pci'}
        )
        refused = self.refused(line, pci=[{'address': QAT_VF1}])
        self.assertEqual({QAT_VF1}, refused.keys())
        self.assertEqual(7, len(self.published))

    def test_all_of_a_pool(self):
        line = json.dumps(
            {'vendor_id': '8086', 'product_id': '37c9', 'driver': 'pci'}
        )
        refused = self.refused(
            line,
            OURS[NVME],
            providers={
                'a.yaml': [an_entry(f'{NODE}_accel_qat_8086_37c9', 'CUSTOM_X')]
            },
        )
        # The functions of a card have one reason.
        (told,) = refused.values()
        self.assertIn('and 5 more', told)
        self.assertEqual({NVME}, self.published)

    def test_our_trait_elsewhere_concerns_all(self):
        refused = self.refused(
            OURS[NVME],
            OURS[QAT_VF1],
            providers={'a.yaml': [of_node('CUSTOM_NOVA_ACCEL')]},
        )
        self.assertEqual({NVME, QAT_VF1}, refused.keys())

    def test_what_nova_has_is_not_the_drivers_fault(self):
        """The conflict is what the operator has to know first."""
        line = a_line(GPU0, 'mdev')
        self.assertIn('nvidia-11, nvidia-12', self.refused(line)[GPU0])
        self.assertIn(
            '[pci] device_spec = {}', self.refused(line, pci=[{}])[GPU0]
        )
