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

import dataclasses
import json
import uuid

import testtools

from nova_accel import exceptions
from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.cards import card_slice
from nova_accel.model.devices import hardware
from nova_accel.model.providers import provider_layout
from nova_accel.testing import reports
from rig import sample_devices

WHOLE_CARD = card_slice.WHOLE_CARD

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'


def a_handle(bus, function):
    return attach_handle.AttachHandle(
        naming.derived_uuid(NODE_UUID, str(bus), str(function)),
        pci_address.PciAddress(0, bus, 0, function),
    )


def an_fpga(bus):
    return sample_devices.fpga(
        bus,
        [
            hardware.Deployable(
                'region0',
                'FPGA',
                frozenset(map('CUSTOM_{}'.format, 'QWERTY')),
                (a_handle(bus, 1),),
            ),
            hardware.Deployable(
                'region1',
                'FPGA',
                frozenset({'CUSTOM_Z'}),
                (a_handle(bus, 2), a_handle(bus, 3)),
            ),
        ],
        numa_node=1,
    )


def report(node_uuid, *devices):
    layout = provider_layout.layout('c1', node_uuid, devices)
    return [each.to_report(node_uuid, layout.rp_uuids) for each in devices]


def uuids_of(entry):
    return [entry['uuid'], *(each['uuid'] for each in entry['deployables'])]


class TestAddresses(testtools.TestCase):
    def test_all_that_it_is_made_of(self):
        fpga = an_fpga(0x81)
        self.assertEqual(
            {
                pci_address.PciAddress(0, 0x81, 0, number)
                for number in range(4)
            },
            fpga.addresses,
        )
        unit = dataclasses.replace(
            a_handle(0x81, 1),
            further_functions=(pci_address.PciAddress(0, 0x82, 0, 1),),
        )
        alone = dataclasses.replace(
            fpga,
            deployables=(
                hardware.Deployable('unit', 'FPGA', frozenset(), (unit,)),
            ),
        )
        self.assertEqual(
            {
                pci_address.PciAddress(0, bus, 0, number)
                for bus, number in ((0x81, 0), (0x81, 1), (0x82, 1))
            },
            alone.addresses,
        )

    def test_the_parents_of_mediated_devices(self):
        vgpu = dataclasses.replace(a_handle(0x81, 4), mdev_type='nvidia-11')
        self.assertIn(
            vgpu.address,
            dataclasses.replace(
                an_fpga(0x81),
                deployables=(
                    hardware.Deployable('vgpu', 'VGPU', frozenset(), (vgpu,)),
                ),
            ).addresses,
        )


class TestWithout(testtools.TestCase):
    def test_a_part_without_units_goes(self):
        fpga = an_fpga(0x81)
        one, two, three = (a_handle(0x81, number) for number in (1, 2, 3))
        for gone, expected in (
            ([], [[one], [two, three]]),
            ([two], [[one], [three]]),
            ([one], [[two, three]]),
            ([one, two, three], []),
        ):
            left = fpga.without({each.uuid for each in gone})
            self.assertEqual(
                expected, [list(each.handles) for each in left.deployables]
            )

    def test_a_part_that_never_had_units_stays(self):
        fpga = an_fpga(0x81)
        empty = dataclasses.replace(fpga.deployables[0], handles=())
        fpga = dataclasses.replace(fpga, deployables=(empty,))
        self.assertEqual(fpga, fpga.without({'any'}))


class TestSharedCard(testtools.TestCase):
    def setUp(self):
        super().setUp()
        [self.card] = reports.SimulatedHost(regions=(), cards=1).devices()
        self.units = {
            (handle.slice.shape, handle.slice.start * 8 // WHOLE_CARD): (
                handle.uuid
            )
            for handle in self.card.handles
        }

    def test_whether_its_units_exclude_each_other(self):
        self.assertTrue(self.card.is_shared)
        self.assertFalse(an_fpga(0x81).is_shared)
        self.assertFalse(sample_devices.fpga(0x81).is_shared)

    def excluded(self, *taken):
        of_uuids = {uuid: unit for unit, uuid in self.units.items()}
        found = list(
            self.card.excluded(
                frozenset({'elsewhere', *map(self.units.get, taken)})
            )
        )
        self.assertEqual(len(set(found)), len(found))
        return {of_uuids[uuid] for uuid in found}

    def test_for_which_units_others_leave_no_room(self):
        whole, half, eighth = reports.WHOLE, reports.HALF, reports.EIGHTH
        for taken, expected in (
            ([], set()),
            ([(whole, 0)], self.units.keys() - {(whole, 0)}),
            ([(eighth, 0)], {(whole, 0), (half, 0)}),
            (
                [(half, 4)],
                {(whole, 0), *((eighth, start) for start in (4, 5, 6))},
            ),
            (
                [(eighth, 0), (half, 4)],
                {
                    (whole, 0),
                    (half, 0),
                    *((eighth, start) for start in (4, 5, 6)),
                },
            ),
        ):
            self.assertEqual(expected, self.excluded(*taken), taken)

    def test_units_that_share_no_card_exclude_nothing(self):
        fpga = an_fpga(0x81)
        handle, *_others = fpga.handles
        self.assertEqual([], list(fpga.excluded({handle.uuid})))


class TestToReport(testtools.TestCase):
    def test_facts(self):
        [entry] = report(NODE_UUID, an_fpga(0x81))
        deployables = entry.pop('deployables')
        self.assertEqual(
            {
                'uuid': naming.derived_uuid(NODE_UUID, 'pci_0000_81_00_0'),
                'name': 'pci_0000_81_00_0',
                'type': 'FPGA',
                'vendor_id': '8086',
                'product_id': '09c4',
                'vendor': 'Intel',
                'product': 'PAC',
                'address': '0000:81:00.0',
                'driver': 'fake',
                'numa_node': 1,
                'fault': None,
                'attributes': {},
                'link_sets': [],
            },
            entry,
        )
        self.assertEqual(
            ['region0', 'region1'], [each['name'] for each in deployables]
        )
        self.assertEqual(
            ['FPGA', 'FPGA'], [each['resource_class'] for each in deployables]
        )
        self.assertEqual(
            [[f'CUSTOM_{letter}' for letter in 'EQRTWY'], ['CUSTOM_Z']],
            [each['traits'] for each in deployables],
        )
        self.assertEqual(
            [
                [a_handle(0x81, 1).to_dict()],
                [a_handle(0x81, 2).to_dict(), a_handle(0x81, 3).to_dict()],
            ],
            [each['attach_handles'] for each in deployables],
        )

    def test_link_sets_if_there_are_any(self):
        fpga = dataclasses.replace(an_fpga(0x81), link_sets=('four', 'two'))
        [entry] = report(NODE_UUID, fpga)
        self.assertEqual(['four', 'two'], entry['link_sets'])

    def test_providers_are_those_of_the_layout(self):
        fpga = an_fpga(0x81)
        layout = provider_layout.layout('c1', NODE_UUID, [fpga])
        [entry] = report(NODE_UUID, fpga)
        for each in entry['deployables']:
            self.assertEqual(
                layout.rp_uuids[fpga.name, each['name']], each['rp_uuid']
            )

    def test_it_is_plain_json(self):
        entries = report(NODE_UUID, an_fpga(0x81))
        self.assertEqual(entries, json.loads(json.dumps(entries)))

    def test_uuids_stay_and_are_different(self):
        entries = report(NODE_UUID, an_fpga(0x81), an_fpga(0x82))
        found = [each for entry in entries for each in uuids_of(entry)]
        self.assertEqual(6, len({uuid.UUID(each) for each in found}))
        again = report(
            NODE_UUID,
            dataclasses.replace(
                an_fpga(0x81), product='PAC N3000', numa_node=None
            ),
        )
        self.assertEqual(uuids_of(entries[0]), uuids_of(again[0]))

    def test_two_nodes_have_different_uuids(self):
        other = str(uuid.uuid4())
        [here] = report(NODE_UUID, an_fpga(0x81))
        [there] = report(other, an_fpga(0x81))
        self.assertEqual(set(), set(uuids_of(here)) & set(uuids_of(there)))


class TestCheckDerived(testtools.TestCase):
    def test_what_is_reported(self):
        hardware.check_derived(
            'c1',
            NODE_UUID,
            report(NODE_UUID, an_fpga(0x81), an_fpga(0x82)),
        )

    def test_each_uuid_is_of_the_node_and_of_its_own_name(self):
        for change in (
            lambda entry: entry.update(name='pci_0000_82_00_0'),
            lambda entry: entry.update(uuid=NODE_UUID),
            lambda entry: entry['deployables'][1].update(uuid=NODE_UUID),
            lambda entry: entry['deployables'][0].update(name='region1'),
            # Both with the same uuid.
            lambda entry: entry['deployables'][1].update(uuid=entry['uuid']),
        ):
            [entry] = report(NODE_UUID, an_fpga(0x81))
            change(entry)
            fault = self.assertRaises(
                exceptions.Conflict,
                hardware.check_derived,
                'c1',
                NODE_UUID,
                [entry],
            )
            self.assertIn(entry['name'], str(fault))
            self.assertIn('host c1', str(fault))
