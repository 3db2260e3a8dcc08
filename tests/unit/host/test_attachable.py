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

import testtools

from nova_accel.host import attachable
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import device_spec_keys
from nova_accel.model.devices import hardware
from nova_accel.testing import pci_functions
from unit.model.cards import slices

MDEV = '0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e5f'
SLOT = tuple(f'0000:81:00.{number}' for number in range(3))


def an_address(text):
    return pci_address.PciAddress.parse(text)


def a_function(address, *group, **facts):
    return pci_functions.function(
        address, '10de', '13f2', with_functions=group, **facts
    )


def a_host(*functions, mdevs=()):
    return libvirt_devices.HostDevices(
        {function.address: function for function in functions}, mdevs
    )


def a_device(*handles):
    return hardware.Device(
        'card',
        'GPU',
        '10de',
        '13f2',
        'NVIDIA',
        'M60',
        handles[0].address,
        'pci',
        (hardware.Deployable('function', 'PGPU', frozenset(), handles),),
    )


def a_handle(address, *others, mdev_type=None):
    return attach_handle.AttachHandle(
        f'handle of {address}',
        an_address(address),
        mdev_type,
        further_functions=tuple(map(an_address, others)),
    )


class TestUnit(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.bridge = a_function('0000:80:01.0', is_bridge=True)
        group = ('0000:80:01.0', *SLOT[:2], '0000:82:00.0')
        self.functions = a_host(
            self.bridge,
            *(a_function(address, *group) for address in SLOT),
            a_function('0000:82:00.0', *group),
        ).functions

    def unit(self, address, kind):
        return [
            str(member)
            for member in attachable.unit(
                self.functions[an_address(address)], kind, self.functions
            )
        ]

    def test_function(self):
        self.assertEqual(
            [SLOT[1]], self.unit(SLOT[1], device_spec_keys.UnitKind.FUNCTION)
        )

    def test_slot(self):
        self.assertEqual(
            [SLOT[1], SLOT[0], SLOT[2]],
            self.unit(SLOT[1], device_spec_keys.UnitKind.SLOT),
        )

    def test_slot_of_a_card_is_not_that_of_its_virtual_functions(self):
        card, *parts = pci_functions.virtual_functions(
            a_function('0000:83:00.0'), 9, '13f2'
        )
        self.functions = a_host(card, *parts).functions
        self.assertEqual(
            ['0000:83:00.0'],
            self.unit('0000:83:00.0', device_spec_keys.UnitKind.SLOT),
        )
        self.assertEqual(
            ['0000:83:01.0', '0000:83:01.1'],
            self.unit('0000:83:01.0', device_spec_keys.UnitKind.SLOT),
        )

    def test_iommu_group_without_its_bridges(self):
        self.assertEqual(
            [SLOT[0], SLOT[1], '0000:82:00.0'],
            self.unit(SLOT[0], device_spec_keys.UnitKind.IOMMU_GROUP),
        )

    def test_without_an_iommu_group(self):
        function = a_function('0000:84:00.0')
        function = pci_function.PciFunction(
            function.name, function.address, '10de', '13f2'
        )
        self.assertEqual(
            (function.address,),
            attachable.unit(
                function, device_spec_keys.UnitKind.IOMMU_GROUP, self.functions
            ),
        )


class TestRefusals(testtools.TestCase):
    line_keys = frozenset({'unit'})

    def refusals(self, host, *handles):
        return attachable.refusals(a_device(*handles), host, self.line_keys)

    def check(self, host, *handles):
        self.assertEqual({}, self.refusals(host, *handles))

    def assert_refused(self, host, *handles, texts):
        """The last of the units alone is."""
        found = self.refusals(host, *handles)
        self.assertEqual([handles[-1].uuid], [*found])
        for text in texts:
            self.assertIn(text, found[handles[-1].uuid])

    def test_alone_in_its_iommu_group(self):
        self.check(a_host(a_function(SLOT[0])), a_handle(SLOT[0]))

    def test_bridges_do_not_count(self):
        bridge = a_function('0000:80:01.0', is_bridge=True)
        self.check(
            a_host(bridge, a_function(SLOT[0], '0000:80:01.0')),
            a_handle(SLOT[0]),
        )

    def test_what_libvirt_does_not_describe_may_be_no_bridge(self):
        self.assert_refused(
            a_host(a_function(SLOT[0], '0000:80:01.0')),
            a_handle(SLOT[0]),
            texts=['0000:80:01.0'],
        )

    def test_others_in_its_iommu_group(self):
        functions = [
            a_function(address, *SLOT, '0000:82:00.0', iommu_group=7)
            for address in (*SLOT, '0000:82:00.0')
        ]
        self.assert_refused(
            a_host(*functions),
            a_handle(SLOT[0]),
            texts=[
                'IOMMU group 7',
                f'with {SLOT[1]}, {SLOT[2]}, 0000:82:00.0',
                '"unit": "iommu_group"',
            ],
        )
        self.check(a_host(*functions), a_handle(*SLOT, '0000:82:00.0'))

    def test_others_in_its_slot(self):
        functions = [a_function(address, *SLOT) for address in SLOT]
        self.assert_refused(
            a_host(*functions),
            a_handle(SLOT[0]),
            texts=['"unit": "slot" or "iommu_group"'],
        )
        self.check(a_host(*functions), a_handle(*SLOT))

    def test_the_cure_is_a_key_that_the_driver_reads(self):
        slot = [a_function(address, *SLOT) for address in SLOT]
        others = [a_function(address, '0000:82:00.0') for address in SLOT]
        for functions, line_keys, cure in (
            (slot, {'whole'}, '"whole": true'),
            (others, {'whole'}, 'ACS'),
            (slot, set(), 'ACS'),
        ):
            self.line_keys = line_keys
            self.assert_refused(
                a_host(*functions), a_handle(SLOT[0]), texts=[cure]
            )

    def test_a_domain_that_qemu_does_not_take(self):
        for address in ('10000:e1:00.0', 'ffffffff:01:00.0'):
            self.assert_refused(
                a_host(a_function(address)),
                a_handle(address),
                texts=[address, '16 bits', 'VMD'],
            )
        self.check(
            a_host(a_function('ffff:01:00.0')), a_handle('ffff:01:00.0')
        )

    def test_each_function_of_a_unit_counts(self):
        self.assert_refused(
            a_host(
                a_function(SLOT[0]),
                a_function(SLOT[1], SLOT[2]),
                a_function(SLOT[2], SLOT[1]),
            ),
            a_handle(SLOT[0], SLOT[1]),
            texts=[SLOT[1], SLOT[2]],
        )

    def test_no_iommu(self):
        address = an_address(SLOT[0])
        function = pci_function.PciFunction(
            address.node_device, address, '10de', '13f2'
        )
        self.assert_refused(
            a_host(function),
            a_handle(SLOT[0]),
            texts=[SLOT[0], 'no IOMMU group'],
        )

    def test_a_bridge(self):
        self.assert_refused(
            a_host(a_function(SLOT[0], is_bridge=True)),
            a_handle(SLOT[0]),
            texts=[f'{SLOT[0]} is a bridge'],
        )

    def test_gone(self):
        for handle in (
            a_handle(SLOT[0]),
            a_handle(SLOT[0], mdev_type='nvidia-11'),
        ):
            self.assert_refused(a_host(), handle, texts=[SLOT[0], 'not among'])

    def test_virtual_functions_are_enabled(self):
        card, *parts = pci_functions.virtual_functions(
            a_function(SLOT[0]), 2, '13f2'
        )
        host = a_host(card, *parts)
        self.assert_refused(
            host,
            a_handle(SLOT[0]),
            texts=[f'2 virtual functions of {SLOT[0]}'],
        )
        self.check(host, *(a_handle(str(part.address)) for part in parts))

    def test_a_virtual_function_that_makes_mdevs(self):
        card, *parts = pci_functions.virtual_functions(
            a_function(SLOT[0]), 2, '13f2', mdev_types={'nvidia-474': 1}
        )
        self.assert_refused(
            a_host(card, *parts),
            a_handle(SLOT[1]),
            texts=[SLOT[1], 'nvidia-474', f'carved card {SLOT[0]}'],
        )

    def test_a_card_that_could_make_mdevs(self):
        self.check(
            a_host(a_function(SLOT[0], mdev_types={'nvidia-11': 4})),
            a_handle(SLOT[0]),
        )

    def test_a_card_that_has_made_mdevs(self):
        mdev = pci_function.Mdev(MDEV, 'nvidia-11', an_address(SLOT[0]))
        card = a_function(SLOT[0], mdev_types={'nvidia-11': 4})
        self.assert_refused(
            a_host(card, mdevs=(mdev,)),
            a_handle(SLOT[0]),
            texts=[SLOT[0], '1 mediated devices'],
        )
        self.check(
            a_host(card, mdevs=(mdev,)),
            a_handle(SLOT[0], mdev_type='nvidia-11'),
        )

    def test_mdevs_of_another_function_of_the_card(self):
        card, one, two = pci_functions.virtual_functions(
            a_function(SLOT[0]), 2, '13f2'
        )
        mdev = pci_function.Mdev(MDEV, 'nvidia-474', one.address)
        self.assert_refused(
            a_host(card, one, two, mdevs=(mdev,)),
            a_handle(SLOT[2]),
            texts=[f'card {SLOT[0]} of {SLOT[2]} is carved'],
        )

    def test_a_function_in_two_units(self):
        host = a_host(a_function(SLOT[0]), a_function(SLOT[1]))
        self.assert_refused(
            host,
            a_handle(SLOT[0]),
            a_handle(SLOT[1], SLOT[0]),
            texts=[SLOT[0], 'two of its units'],
        )

    def test_units_that_exclude_each_other_anyway(self):
        """Each has its own function in two shapes of a card."""
        host = a_host(a_function(SLOT[0]), a_function(SLOT[1]))
        self.check(
            host,
            *(
                dataclasses.replace(
                    a_handle(address),
                    uuid=f'{size} at {start}',
                    slice=slices.eighths('mig:3g.40gb', start, size),
                )
                for address, start, size in (
                    (SLOT[0], 0, 4),
                    (SLOT[1], 4, 4),
                    (SLOT[0], 0, 1),
                    (SLOT[1], 4, 1),
                )
            ),
        )

    def test_each_of_them_has_to_be_one_that_can_be_attached(self):
        self.assert_refused(
            a_host(a_function(SLOT[0], '0000:82:00.0')),
            dataclasses.replace(a_handle(SLOT[0]), slice=slices.WHOLE),
            texts=['0000:82:00.0'],
        )

    def test_mdevs_of_one_card_are_many_units(self):
        card = a_function(SLOT[0], mdev_types={'nvidia-11': 4})
        self.check(
            a_host(card),
            *(a_handle(SLOT[0], mdev_type='nvidia-11') for _unit in range(4)),
        )


class TestLine(testtools.TestCase):
    def test_the_key_that_helps_is_one(self):
        for kind in device_spec_keys.UnitKind:
            (spec,) = device_spec.parse(
                [
                    json.dumps(
                        {'vendor_id': '10de', 'driver': 'pci', 'unit': kind}
                    )
                ],
                ['pci'],
            )
            self.assertIs(kind, spec.unit)
