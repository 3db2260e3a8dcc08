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

import hypothesis
from hypothesis import strategies as st
import jsonschema
import testtools

from nova_accel.api.schemas import host as schemas
from nova_accel.model import attach_handle
from nova_accel.model import bounds
from nova_accel.model import host_contract
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.devices import hardware
from nova_accel.model.providers import provider_layout
from nova_accel.model.providers import publishable

NODE = 'c1'
NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'
TRAIT = 'CUSTOM_FPGA_INTEL_PAC'


def a_handle(number=0):
    return attach_handle.AttachHandle(
        str(uuid.UUID(int=number)), pci_address.PciAddress(0, 0x81, 0, 1)
    )


def a_deployable(name='region0', number=0, **changes):
    return dataclasses.replace(
        hardware.Deployable(
            name, 'FPGA', frozenset({TRAIT}), (a_handle(number),)
        ),
        **changes,
    )


def a_device(name='pci_0000_81_00_0', number=0, **changes):
    return dataclasses.replace(
        hardware.Device(
            name,
            'FPGA',
            '8086',
            '09c4',
            'Intel',
            'PAC',
            pci_address.PciAddress(0, 0x81, 0, 0),
            'fake',
            (a_deployable(number=number),),
        ),
        **changes,
    )


OTHER = a_device('pci_0000_82_00_0', number=2**64)


class PublishableTestCase(testtools.TestCase):
    def check(self, *devices):
        """What the rule promises; what it gives."""
        found = publishable.of(NODE, devices)
        layout = provider_layout.layout(NODE, NODE_UUID, found.devices)
        names = [provider.name for provider in layout.providers]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(len(names), len(layout.uuids))
        for provider in layout.providers:
            self.assertLessEqual(len(provider.name), 200)
        report = json.loads(
            json.dumps(
                {
                    host_contract.KEY: host_contract.NEWEST,
                    'node_uuid': NODE_UUID,
                    'service_host': NODE,
                    'digest': 'd',
                    'devices': [
                        each.to_report(NODE_UUID, layout.rp_uuids)
                        for each in found.devices
                    ],
                }
            )
        )
        jsonschema.validate(report, schemas.REPORT)
        for kind in ('deployables', 'attach_handles'):
            self.check_uuids(report, kind)
        for text in found.left_out:
            text.encode()
        return found

    def check_uuids(self, report, kind):
        deployables = [
            deployable
            for each in report['devices']
            for deployable in each['deployables']
        ]
        uuids = [
            each['uuid']
            for each in (
                deployables
                if kind == 'deployables'
                else [
                    handle
                    for deployable in deployables
                    for handle in deployable['attach_handles']
                ]
            )
        ]
        self.assertEqual(len(uuids), len(set(uuids)))

    def one(self, *devices):
        """The first of them, and what is said; another one is unharmed."""
        found = self.check(*devices, OTHER)
        self.assertEqual(OTHER, found.devices[-1])
        (text,) = found.left_out
        self.assertIn('0000:81:00.0', text)
        return found.devices[:-1], text


class TestOf(PublishableTestCase):
    def test_what_is_good_stays(self):
        devices = (
            a_device(
                deployables=(
                    a_deployable('region0', 1),
                    a_deployable('region1', 2),
                ),
                attributes={'link': 'x8'},
                numa_node=0,
            ),
            OTHER,
        )
        self.assertEqual(
            publishable.Publishable(devices, ()), self.check(*devices)
        )
        self.assertEqual((), self.check().devices)

    def test_what_is_as_large_as_it_may_be_stays(self):
        handle = dataclasses.replace(
            a_handle(1),
            mdev_type='m' * 255,
            vgpu_type='v' * 255,
            physical_network='p' * 255,
            further_functions=(a_handle().address,) * 255,
        )
        device_ = a_device(
            driver='d' * 255,
            numa_node=bounds.MAX_NUMA_NODE,
            attributes={'n' * 255: 'x'}
            | {
                str(number): 'x' for number in range(bounds.MAX_ATTRIBUTES - 2)
            },
            deployables=(
                a_deployable(
                    region='r' * 255,
                    handles=(handle,),
                    bitstream_id=str(uuid.UUID(int=7)),
                    traits=frozenset(
                        f'CUSTOM_{number}'
                        for number in range(bounds.MAX_TRAITS)
                    ),
                ),
            ),
        )
        self.assertEqual(
            publishable.Publishable((device_,), ()),
            publishable.of(NODE, [device_]),
        )

    def test_what_is_as_small_as_it_may_be_stays(self):
        devices = (
            a_device(
                'a',
                driver='d',
                deployables=(a_deployable('b', region='r'),),
                attributes={'n': 'x'},
            ),
            a_device('e', deployables=()),
        )
        self.assertEqual(
            publishable.Publishable(devices, ()), self.check(*devices)
        )

    def test_traits(self):
        for bad in (
            '---',
            'CUSTOM_',
            'custom_a',
            'CUSTOM_\u00c4',
            'CUSTOM_' + 'A' * 249,
            'CUSTOM_A\n',
            'HW_UNHEARD_OF',
            5,
        ):
            (found,), text = self.one(
                a_device(
                    deployables=(
                        a_deployable(
                            traits=frozenset({TRAIT, 'HW_CPU_X86_AVX', bad})
                        ),
                    )
                )
            )
            self.assertEqual(
                {TRAIT, 'HW_CPU_X86_AVX'}, found.deployables[0].traits
            )
            self.assertIn('1 traits of region0', text)
            self.assertIn(
                '1 traits of region0', found.attributes[publishable.LEFT_OUT]
            )

    def test_too_many_traits(self):
        mine = frozenset({'CUSTOM_Z'})
        others = {f'CUSTOM_{number}' for number in range(1100)}
        (found,), text = self.one(
            a_device(
                operator_traits=mine,
                deployables=(a_deployable(traits=mine | others),),
            )
        )
        self.assertEqual(
            mine.union(sorted(others)[: bounds.MAX_TRAITS - 1]),
            found.deployables[0].traits,
        )
        self.assertIn('77 traits of region0, which has 1101', text)

    def test_names_of_deployables(self):
        for bad in (
            '',
            'x' * 200,
            'a\0b',
            'a\nb',
            '\ud800',
            'region0',
            None,
            5,
        ):
            (found,), _text = self.one(
                a_device(deployables=(a_deployable(), a_deployable(bad, 2)))
            )
            self.assertEqual((a_deployable(),), found.deployables)
            self.assertIsNone(found.fault)

    def test_no_deployable_is_left(self):
        (found,), _text = self.one(
            a_device(deployables=(a_deployable(resource_class='Ferrari'),))
        )
        self.assertEqual((), found.deployables)
        self.assertIn('Ferrari', found.fault)
        (found,), _text = self.one(
            a_device(
                fault='it is too hot',
                deployables=(a_deployable(resource_class='Ferrari'),),
            )
        )
        self.assertEqual('it is too hot', found.fault)

    def test_names_of_regions(self):
        for bad in ('', 'x' * 256, '\0', 5):
            (found,), text = self.one(
                a_device(
                    deployables=(
                        a_deployable(),
                        a_deployable('region1', 2, region=bad),
                    )
                )
            )
            self.assertEqual((a_deployable(),), found.deployables)
            self.assertIn('its region is', text)

    def test_too_many_deployables(self):
        (found,), _text = self.one(
            a_device(
                deployables=tuple(
                    a_deployable(f'region{number}', number)
                    for number in range(300)
                )
            )
        )
        self.assertEqual(bounds.MAX_DEPLOYABLES, len(found.deployables))

    def test_handles(self):
        good = a_handle(1)
        for bad in (
            dataclasses.replace(good, uuid='---'),
            dataclasses.replace(good, uuid=good.uuid.upper() + '0'),
            dataclasses.replace(good, uuid=None),
            good,
            a_handle(2**64),
            None,
            dataclasses.replace(a_handle(2), mdev_type='x' * 256),
            dataclasses.replace(a_handle(2), vgpu_type='x' * 256),
            dataclasses.replace(a_handle(2), further_functions=('here',)),
            dataclasses.replace(a_handle(2), physical_network='\0'),
            dataclasses.replace(a_handle(2), physical_network='a\x1b[2J'),
            dataclasses.replace(a_handle(2), identity='\ud800'),
            dataclasses.replace(a_handle(2), identity='x' * 256),
            dataclasses.replace(a_handle(2), address='here'),
            dataclasses.replace(
                a_handle(2), further_functions=(a_handle().address,) * 256
            ),
        ):
            found = self.check(
                OTHER,
                a_device(deployables=(a_deployable(handles=(good, bad)),)),
            )
            self.assertEqual(1, len(found.left_out))
            if bad is not None:
                self.assertEqual(
                    (good,), found.devices[1].deployables[0].handles
                )

    def test_too_many_handles(self):
        (found,), text = self.one(
            a_device(
                deployables=(
                    a_deployable(
                        handles=tuple(
                            map(a_handle, range(bounds.MAX_HANDLES + 5))
                        )
                    ),
                )
            )
        )
        self.assertEqual(bounds.MAX_HANDLES, len(found.deployables[0].handles))
        self.assertIn('5 units', text)

    def test_attributes(self):
        (found,), _text = self.one(
            a_device(
                attributes={
                    'good': 'x' * 300,
                    'bad': 5,
                    '': 'x',
                    'n' * 256: 'x',
                    5: 'x',
                    '\0': 'x',
                }
            )
        )
        self.assertEqual({'good', publishable.LEFT_OUT}, set(found.attributes))
        (found,), text = self.one(
            a_device(attributes={str(number): 'x' for number in range(100)})
        )
        self.assertIn('37 attributes, which exceed 63 or', text)
        self.assertEqual(bounds.MAX_ATTRIBUTES, len(found.attributes))

    def test_the_bitstream_and_the_numa_node(self):
        (found,), _text = self.one(
            a_device(
                numa_node=-1, deployables=(a_deployable(bitstream_id='---'),)
            )
        )
        self.assertEqual(a_device(attributes=found.attributes), found)
        for bad in (-1, bounds.MAX_NUMA_NODE + 1, True, 1.5, 'one'):
            (found,), text = self.one(a_device(numa_node=bad))
            self.assertIsNone(found.numa_node)
            self.assertIn(f'its NUMA node {bad!r}', text)
        _devices, text = self.one(
            a_device(deployables=(a_deployable(bitstream_id='---'),))
        )
        self.assertIn("its bitstream '---'", text)

    def test_a_fault_that_is_no_text(self):
        found = self.check(a_device(fault=OSError('it is gone')))
        self.assertEqual('it is gone', found.devices[0].fault)

    def test_a_device_that_cannot_be_published(self):
        for changes in (
            {'name': 'x' * 250},
            {'name': ''},
            {'name': None},
            {'type': 'CAR'},
            {'vendor_id': 'Intel'},
            {'product_id': '09C4'},
            {'driver': '\0'},
            {'driver': 'a\u2028b'},
            {'deployables': None},
            {'attributes': None},
            {'vendor': None},
        ):
            found, _text = self.one(a_device(**changes))
            self.assertEqual((), found)
        found = self.check(a_device(address='here'), OTHER, None)
        self.assertEqual((OTHER,), found.devices)
        self.assertEqual(2, len(found.left_out))

    def test_two_of_the_same_name(self):
        for first, second in (
            (a_device(), a_device(number=1)),
            # The same provider.
            (
                a_device('a_b'),
                a_device(
                    'a',
                    deployables=(a_deployable('b', 1), a_deployable('c', 2)),
                ),
            ),
            # The same uuid.
            (
                a_device('a/b'),
                a_device(
                    'a',
                    deployables=(a_deployable('b', 1), a_deployable('c', 2)),
                ),
            ),
        ):
            devices, _text = self.one(first, second)
            self.assertEqual(first, devices[0])
            self.assertFalse(
                any(
                    deployable.name == 'b'
                    for each in devices
                    for deployable in each.deployables
                )
            )

    def test_the_name_that_is_there_already_is_told(self):
        _devices, text = self.one(a_device(), a_device(number=1))
        self.assertIn(f'there is another {a_device().name} on the host', text)

    def test_only_a_part_among_several_has_a_provider_of_its_own(self):
        self.assertEqual(
            (),
            self.check(
                a_device('a', deployables=(a_deployable('b'),)),
                a_device('a_b', number=1),
            ).left_out,
        )

    def test_only_what_is_pooled_needs_the_name_of_a_pool(self):
        named_so = a_device('fpga_8086_09c4', 9)
        several = (a_deployable('b', 1), a_deployable('c', 2))
        for other in (
            a_device(),
            a_device(pooled=True, deployables=several),
            a_device(pooled=True, deployables=()),
        ):
            self.assertEqual((), self.check(named_so, other).left_out)

    def test_the_name_of_a_pool(self):
        pooled = [
            a_device(f'pci{number}', number, pooled=True)
            for number in range(2)
        ]
        self.assertEqual((), self.check(*pooled).left_out)
        for devices in (
            (a_device('fpga_8086_09c4', 9), *pooled),
            (*pooled, a_device('fpga_8086_09c4', 9)),
        ):
            self.assertNotEqual((), self.check(*devices).left_out)

    def test_too_many_devices(self):
        found = publishable.of(
            'host',
            [a_device(f'pci{number}', number) for number in range(5)],
            3,
        )
        self.assertEqual(3, len(found.devices))
        self.assertEqual(2, len(found.left_out))


_TEXTS = st.one_of(
    # More good ones than bad, or else most devices are left out as a whole.
    st.sampled_from(['a', 'b', 'c', 'd', 'a_b', 'a/b']),
    st.sampled_from(['a', 'b', 'c', 'd', 'a_b', 'a/b']),
    st.sampled_from(
        ['', 'x' * 300, '\ud800', '\0', 'a\nb', 'a\x9b2J', '\u202ea', None, 5]
    ),
)
_ADDRESSES = st.one_of(
    *[
        st.builds(
            pci_address.PciAddress,
            st.integers(0, 2**32),
            st.integers(0, 255),
            st.integers(0, 31),
            st.integers(0, 7),
        )
    ]
    * 4,
    st.just('here'),
)
_HANDLES = st.builds(
    attach_handle.AttachHandle,
    st.one_of(
        _TEXTS,
        st.integers(0, 9).map(lambda number: str(uuid.UUID(int=number))),
    ),
    _ADDRESSES,
    mdev_type=_TEXTS,
    vgpu_type=_TEXTS,
    physical_network=_TEXTS,
    identity=_TEXTS,
)
_TRAITS = st.frozensets(
    st.one_of(_TEXTS, st.sampled_from([TRAIT, 'CUSTOM_' + 'A' * 249])),
    max_size=4,
)
_DEPLOYABLES = st.builds(
    hardware.Deployable,
    _TEXTS,
    st.one_of(st.just('FPGA'), st.just('CUSTOM_A'), _TEXTS),
    _TRAITS,
    st.lists(_HANDLES, max_size=3).map(tuple),
    st.booleans(),
    _TEXTS,
    _TEXTS,
    _TEXTS,
)
_DEVICES = st.builds(
    hardware.Device,
    _TEXTS,
    st.sampled_from([*naming.RESOURCE_CLASSES, 'CAR']),
    st.just('8086'),
    st.just('09c4'),
    _TEXTS,
    _TEXTS,
    _ADDRESSES,
    st.just('fake'),
    st.lists(_DEPLOYABLES, max_size=4).map(tuple),
    st.one_of(st.none(), st.integers()),
    st.booleans(),
    _TRAITS,
    _TEXTS,
    st.dictionaries(_TEXTS, _TEXTS, max_size=3),
)


class TestHostile(PublishableTestCase):
    @hypothesis.given(st.lists(st.one_of(_DEVICES, _TEXTS), max_size=4))
    def test_whatever_a_driver_says(self, devices):
        found = self.check(OTHER, *devices)
        self.assertEqual(OTHER, found.devices[0])
