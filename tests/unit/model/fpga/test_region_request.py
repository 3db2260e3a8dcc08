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

import testtools

from nova_accel import exceptions
from nova_accel.model.devices import programmable
from nova_accel.model.fpga import fpga_bitstream
from nova_accel.model.fpga import region_contents
from nova_accel.model.fpga import region_request
from unit.virt.fpga import fpga_card

IMAGE = '7a0b9d2e-0b5a-4d59-9d3b-3a1b8f0a5c11'
FUNCTION = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
FUNCTIONS = {
    f'trait:{fpga_card.FUNCTION_TRAIT}': 'required',
    'trait:CUSTOM_FUNCTION_X': 'required',
}


class TestOf(testtools.TestCase):
    regions = tuple(
        (fpga_card.DEVICE, region) for region in fpga_card.DEVICE.regions
    )

    def of(self, *arqs, **properties):
        return region_request.of(arqs, self.regions, properties)

    def test_each_region_once(self):
        first, second = self.of(
            fpga_card.wants(IMAGE, 'region1_function0'),
            fpga_card.an_arq('region0'),
            fpga_card.wants(IMAGE, 'region1_function1'),
        )
        self.assertEqual(
            (
                fpga_bitstream.WantedBitstream(IMAGE),
                'region1',
                None,
                'region0',
            ),
            (
                first.wanted,
                first.region.name,
                second.wanted,
                second.region.name,
            ),
        )

    def test_the_image_asks_for_regions_alone(self):
        properties = {'accel:bitstream_id': IMAGE}
        arq = fpga_card.an_arq()
        (request,) = self.of(arq, **properties)
        self.assertEqual(fpga_bitstream.WantedBitstream(IMAGE), request.wanted)
        self.regions = ()
        self.assertEqual([], self.of(arq, **properties))
        self.assertRaises(
            exceptions.DeviceError, self.of, fpga_card.wants(IMAGE)
        )

    def test_two_things_of_one_region(self):
        for second in (
            fpga_card.an_arq('region1_function1'),
            fpga_card.wants(fpga_card.NODE, 'region1_function1'),
        ):
            self.assertRaises(
                exceptions.Conflict,
                self.of,
                fpga_card.wants(IMAGE, 'region1_function0'),
                second,
            )

    def test_functions_that_are_required(self):
        (request,) = self.of(fpga_card.an_arq(**FUNCTIONS))
        self.assertEqual(
            {'region0': {fpga_card.FUNCTION_TRAIT}}, request.functions
        )
        has = region_contents.KnownContents(
            programmable.Contents(
                IMAGE, 'sha', 'text', (fpga_card.FUNCTION,), owner=None
            )
        )
        request.check(has, None)
        for known in (
            region_contents.KnownContents(),
            region_contents.KnownContents(has.contents, 'CRC error'),
            region_contents.KnownContents(
                dataclasses.replace(has.contents, owner='project')
            ),
        ):
            self.assertRaises(
                exceptions.DeviceError, request.check, known, None
            )


class TestReadWanted(testtools.TestCase):
    def test_one_of_three(self):
        for name, value, field in (
            ('bitstream_id', IMAGE, 'bitstream_id'),
            ('function_id', FUNCTION, 'function_id'),
            ('function_name', 'Matrix, fast', 'function_name'),
        ):
            expected = fpga_bitstream.WantedBitstream(**{field: value})
            self.assertEqual(
                expected, region_request.read_wanted({name: value})
            )
            self.assertEqual(
                expected,
                region_request.read_wanted(
                    {f'accel:{name}': value, 'resources:FPGA': '1'}
                ),
            )
            self.assertEqual(
                expected,
                region_request.read_wanted(
                    {}, {f'accel:{name}': value, 'os_type': 'linux'}
                ),
            )

    def test_nothing(self):
        self.assertIsNone(region_request.read_wanted({'resources:FPGA': '1'}))
        self.assertIsNone(
            region_request.read_wanted(
                {'bitstream_id': ''}, {'accel:function_name': None}
            )
        )

    def test_an_image_has_properties_of_its_own(self):
        """Only those in the namespace ask for something."""
        self.assertIsNone(
            region_request.read_wanted({}, {'function_name': 'guest'})
        )

    def test_the_same_twice(self):
        self.assertEqual(
            fpga_bitstream.WantedBitstream(bitstream_id=IMAGE),
            region_request.read_wanted(
                {'bitstream_id': IMAGE.upper()}, {'accel:bitstream_id': IMAGE}
            ),
        )

    def test_more_than_one(self):
        for group, image in (
            ({'bitstream_id': IMAGE, 'function_id': FUNCTION}, {}),
            ({'bitstream_id': IMAGE}, {'accel:bitstream_id': FUNCTION}),
            ({'function_name': 'a'}, {'accel:function_id': FUNCTION}),
        ):
            error = self.assertRaises(
                exceptions.InvalidDeviceProfile,
                region_request.read_wanted,
                group,
                image,
            )
            self.assertIn('one bitstream or function', str(error))

    def test_no_uuid(self):
        for name in ('bitstream_id', 'function_id'):
            error = self.assertRaises(
                exceptions.InvalidDeviceProfile,
                region_request.read_wanted,
                {name: '../../etc/passwd'},
            )
            self.assertIn(f'accel:{name}', str(error))
