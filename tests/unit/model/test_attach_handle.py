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

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel import reason
from nova_accel.model import attach_handle
from nova_accel.model import decoding
from nova_accel.model import pci_address
from unit.model import pci_addresses
from unit.model.cards import slices

UUID = '4b20d080-1b54-4048-85b3-a6a62d165c01'

HANDLES = st.builds(
    attach_handle.AttachHandle,
    uuid=st.uuids().map(str),
    address=pci_addresses.ANY,
    mdev_type=st.sampled_from(['nvidia-11', 'i915-GVTg_V5_4']),
    # As discovery makes it of a serial number.
    identity=st.none() | st.text(min_size=1, max_size=9).map(reason.sanitize),
    slice=st.none() | slices.ANY,
) | st.builds(
    attach_handle.AttachHandle,
    uuid=st.uuids().map(str),
    address=pci_addresses.ANY,
    physical_network=st.none() | st.just('physnet1'),
    further_functions=st.lists(pci_addresses.ANY, max_size=3).map(tuple),
    vgpu_type=st.none() | st.just('1015'),
    is_managed=st.booleans(),
    slice=st.none() | slices.ANY,
    # Which is not on the wire.
    cleaning=st.sampled_from([(), ('command', '/usr/bin/wipe')]),
)


class TestAttachHandle(testtools.TestCase):
    def test_pci_on_the_wire(self):
        handle = attach_handle.AttachHandle(
            UUID, pci_address.PciAddress(0, 0x81, 2, 3)
        )
        self.assertEqual(
            {
                'uuid': UUID,
                'type': 'PCI',
                'info': {
                    'domain': '0000',
                    'bus': '81',
                    'device': '02',
                    'function': '3',
                },
            },
            handle.to_dict(),
        )

    def test_mdev_on_the_wire_has_its_parent_and_type(self):
        handle = attach_handle.AttachHandle(
            UUID, pci_address.PciAddress(0, 0x84, 0, 0), 'nvidia-11'
        )
        self.assertEqual(
            {
                'uuid': UUID,
                'type': 'MDEV',
                'info': {
                    'domain': '0000',
                    'bus': '84',
                    'device': '00',
                    'function': '0',
                    'asked_type': 'nvidia-11',
                },
            },
            handle.to_dict(),
        )

    def test_a_function_of_a_network_names_it(self):
        handle = attach_handle.AttachHandle(
            UUID,
            pci_address.PciAddress(0, 0x81, 2, 3),
            physical_network='physnet1',
        )
        self.assertEqual('physnet1', handle.info['physical_network'])

    def test_a_function_of_a_vendors_vfio_driver_has_its_type(self):
        handle = attach_handle.AttachHandle(
            UUID,
            pci_address.PciAddress(0, 0x81, 0, 4),
            vgpu_type='1015',
            is_managed=False,
        )
        self.assertEqual(
            {
                'uuid': UUID,
                'type': 'PCI',
                'info': {
                    'domain': '0000',
                    'bus': '81',
                    'device': '00',
                    'function': '4',
                    'asked_type': '1015',
                    'managed': 'no',
                },
            },
            handle.to_dict(),
        )

    def test_a_unit_of_a_card_of_many_shapes_has_its_slice(self):
        handle = attach_handle.AttachHandle(
            UUID,
            pci_address.PciAddress(0, 0x81, 0, 4),
            slice=slices.eighths('mig:3g.40gb', 4, 4),
        )
        self.assertEqual(
            {
                'shape': 'mig:3g.40gb',
                'mode': 'mig',
                'start': 1441440,
                'size': 1441440,
            },
            handle.info['slice'],
        )
        self.assertEqual(handle, attach_handle.from_dict(handle.to_dict()))

    def test_further_functions_go_along(self):
        card, audio = (
            pci_address.PciAddress(0, 0x81, 0, number) for number in (0, 1)
        )
        handle = attach_handle.AttachHandle(
            UUID, card, further_functions=(audio,)
        )
        self.assertEqual(['0000:81:00.1'], handle.info['further_functions'])
        self.assertEqual((card, audio), handle.functions)

    def test_another_device_by_its_identity(self):
        """Of a GPU: ids, class and serial number, as far as both have them."""
        gpu, silent, bare = (
            attach_handle.identity_of('10de:2331', class_code, serial)
            for class_code, serial in (
                ('030200', 'S1'),
                ('030200', None),
                (None, None),
            )
        )
        self.assertEqual('10de:2331 class 0302 serial number S1', gpu)
        for same in (gpu, silent, bare, 'S1', None):
            self.assertFalse(attach_handle.is_another(gpu, same), same)
            self.assertFalse(attach_handle.is_another(same, gpu), same)
        for other in (
            attach_handle.identity_of('15b3:2331', '030200', 'S1'),
            attach_handle.identity_of('10de:2330', '030200', 'S1'),
            attach_handle.identity_of('10de:2331', '020000', 'S1'),
            attach_handle.identity_of('10de:2331', '030200', 'S2'),
            attach_handle.identity_of('15b3:101e', None, None),
            'S2',
        ):
            self.assertTrue(attach_handle.is_another(gpu, other), other)
            self.assertTrue(attach_handle.is_another(other, gpu), other)

    def test_its_serial_number(self):
        for identity, serial in (
            ('144d:a80a class 0108 serial number S 1\n', 'S 1\n'),
            ('144d:a80a class 0108', None),
            ('144d:a80a', None),
            ('144d', '144d'),
            ('S1', 'S1'),
            (None, None),
        ):
            handle = attach_handle.AttachHandle(
                UUID, pci_address.PciAddress(0, 1, 0, 0), identity=identity
            )
            self.assertEqual(serial, handle.serial_number)

    def test_which_device_it_is(self):
        handle, same, other, silent = (
            attach_handle.AttachHandle(
                UUID, pci_address.PciAddress(0, 0x81, 2, 3), identity=identity
            )
            for identity in ('S1', 'S1', 'S2', None)
        )
        moved = dataclasses.replace(
            handle, address=pci_address.PciAddress(0, 0x82, 2, 3)
        )
        error = self.assertRaises(
            exceptions.DeviceError, handle.check_same, moved
        )
        self.assertIn('at 0000:82:02.3 now', str(error))
        self.assertEqual('S1', handle.to_dict()['identity'])
        self.assertNotIn('identity', handle.info)
        self.assertNotIn('identity', silent.to_dict())
        for one, another in (
            (handle, same),
            (handle, silent),
            (silent, handle),
            (silent, silent),
        ):
            one.check_same(another)
        error = self.assertRaises(
            exceptions.DeviceError, handle.check_same, other
        )
        for text in ('0000:81:02.3', 'S2', 'S1', 'Put it back'):
            self.assertIn(text, str(error))

    def test_a_device_that_has_become_another_one(self):
        """Its serial number tells whether it is the same card."""
        for before, now, told in (
            # A ConnectX, of Ethernet and of InfiniBand.
            (
                '15b3:1021 class 0200 serial number S1',
                '15b3:1021 class 0207 serial number S1',
                'its mode was changed, by its guest',
            ),
            # FPGAs that their guests have flashed.
            (
                '10ee:5000 class 1200 serial number S1',
                '10ee:9038 class 1200 serial number S1',
                'its firmware or its mode was changed',
            ),
            (
                '10ee:5000 class 1200',
                '10ee:9038 class 1200',
                'another device was put in its place, or its firmware',
            ),
            (
                '15b3:1021 class 0200 serial number S1',
                '15b3:1021 class 0207 serial number S2',
                'another device was put in its place',
            ),
        ):
            mine, present = (
                attach_handle.AttachHandle(
                    UUID, pci_address.PciAddress(0, 0x81, 0, 0), identity=each
                )
                for each in (before, now)
            )
            error = self.assertRaises(
                exceptions.DeviceError, mine.check_same, present
            )
            for text in (before, now, told, 'or delete the server'):
                self.assertIn(text, str(error))

    def test_a_mediated_device_gives_no_function(self):
        self.assertEqual(
            (),
            attach_handle.AttachHandle(
                UUID, pci_address.PciAddress(0, 0x81, 0, 0), 'nvidia-11'
            ).functions,
        )

    @given(HANDLES)
    def test_round_trip_through_json(self, handle):
        text = json.dumps(handle.to_dict())
        self.assertEqual(handle, attach_handle.from_dict(json.loads(text)))

    @given(HANDLES)
    def test_info_is_the_callers_own(self, handle):
        before = handle.to_dict()
        handle.info['bus'] = 'xx'
        handle.info.pop('domain')
        self.assertEqual(before, handle.to_dict())

    def test_a_malformed_address_is_refused(self):
        good = attach_handle.AttachHandle(
            UUID, pci_address.PciAddress(0, 0x81, 2, 3)
        ).to_dict()
        for part, text in (
            ('domain', '0'),
            ('bus', '0x81'),
            ('device', '20'),
            ('function', '8'),
            ('function', '3\n'),
            ('bus', ''),
        ):
            bad = {**good, 'info': {**good['info'], part: text}}
            error = self.assertRaises(
                decoding.Malformed, attach_handle.from_dict, bad
            )
            self.assertIn('info', str(error))

    def test_what_is_no_handle(self):
        good = attach_handle.AttachHandle(
            UUID, pci_address.PciAddress(0, 0x81, 2, 3)
        ).to_dict()
        for spoilt, fault in (
            ({'uuid': [UUID]}, 'uuid is'),
            ({'type': 'USB'}, "type is 'USB', not one of PCI, MDEV"),
            ({'type': 'MDEV'}, 'info.asked_type is missing'),
            ({'info': None}, 'info is None'),
            (
                {'info': {**good['info'], 'further_functions': [7]}},
                'info.further_functions[0] is',
            ),
            ({'identity': 7}, 'identity is 7'),
            ({'info': {**good['info'], 'slice': 'whole'}}, 'info.slice is'),
            (
                {'info': {**good['info'], 'slice': {'shape': 'whole'}}},
                'info.slice.start is missing',
            ),
            *(
                (
                    {
                        'info': {
                            **good['info'],
                            'slice': slices.WHOLE.to_dict() | spoilt,
                        }
                    },
                    f'info.slice.{part} is',
                )
                for part, spoilt in (
                    ('shape', {'shape': 7}),
                    ('mode', {'mode': None}),
                    ('start', {'start': -1}),
                    ('start', {'start': '0'}),
                    ('size', {'size': 0}),
                    # Beyond the end of the card.
                    ('size', {'start': 1}),
                )
            ),
        ):
            error = self.assertRaises(
                ValueError, attach_handle.from_dict, {**good, **spoilt}
            )
            self.assertIn(fault, str(error))
