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

import uuid

import hypothesis
import testtools

from nova_accel import exceptions
from nova_accel.model.devices import programmable
from nova_accel.model.fpga import fpga_bitstream
from unit.model import hostile_metadata

IMAGE = '0b955a5b-f5dd-49d0-8c4f-28729427d303'
FUNCTION = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
REGION_TYPE = '9eb88c8c-981c-59f8-9ada-574fd16d4d18'


class TestWanted(testtools.TestCase):
    def test_what_people_read(self):
        for field, value, text in (
            ('bitstream_id', IMAGE, f'bitstream {IMAGE}'),
            ('function_id', FUNCTION, f'function {FUNCTION}'),
            ('function_name', 'Matrix', "function 'Matrix'"),
        ):
            self.assertEqual(
                text, str(fpga_bitstream.WantedBitstream(**{field: value}))
            )

    def test_is_met_by(self):
        found = fpga_bitstream.Bitstream(
            IMAGE,
            'matrix',
            10,
            function_uuids=(REGION_TYPE, FUNCTION),
            function_name='matrix',
        )
        for wanted, met in (
            (fpga_bitstream.WantedBitstream(bitstream_id=IMAGE), True),
            (fpga_bitstream.WantedBitstream(bitstream_id=FUNCTION), False),
            (fpga_bitstream.WantedBitstream(function_id=FUNCTION), True),
            (fpga_bitstream.WantedBitstream(function_id=IMAGE), False),
            (fpga_bitstream.WantedBitstream(function_name='matrix'), True),
            (fpga_bitstream.WantedBitstream(function_name='Matrix'), False),
        ):
            self.assertEqual(met, wanted.is_met_by(found), str(wanted))


class TestFromImage(testtools.TestCase):
    def test_all_that_it_says(self):
        self.assertEqual(
            fpga_bitstream.Bitstream(
                IMAGE,
                'matrix',
                4096,
                'active',
                'sha512',
                'ab' * 64,
                'Intel',
                'PAC',
                'shell',
                REGION_TYPE,
                (FUNCTION, REGION_TYPE),
                'multiply',
                fpga_bitstream.Signature(
                    'c2ln', 'SHA-256', 'RSA-PSS', FUNCTION
                ),
            ),
            fpga_bitstream.from_image(
                {
                    'id': IMAGE.upper(),
                    'name': 'image',
                    'size': 4096,
                    'status': 'active',
                    'os_hash_algo': 'sha512',
                    'os_hash_value': 'AB' * 64,
                    'properties': {
                        'bs-name': 'matrix',
                        'vendor': ' Intel ',
                        'board': 'PAC',
                        'shell_id': 'shell',
                        'region_uuid': REGION_TYPE.upper(),
                        'function_uuid': f'{FUNCTION}, {REGION_TYPE.upper()},',
                        'function_name': 'multiply',
                        'img_signature': 'c2ln',
                        'img_signature_hash_method': 'SHA-256',
                        'img_signature_key_type': 'RSA-PSS',
                        'img_signature_certificate_uuid': FUNCTION,
                    },
                }
            ),
        )

    def test_it_is_named_as_its_image_unless_it_says_so(self):
        for name, expected in (('matrix', 'matrix'), ('x' * 300, 'x' * 255)):
            found = fpga_bitstream.from_image(
                {'id': IMAGE, 'name': name, 'status': 'active'}
            )
            self.assertEqual(f"'{expected}' ({IMAGE})", str(found))

    def test_the_shell_that_it_is(self):
        for text, shell_id in (
            (REGION_TYPE.upper(), REGION_TYPE),
            (' base ', 'base'),
        ):
            found = fpga_bitstream.from_image(
                {
                    'id': IMAGE,
                    'status': 'active',
                    'properties': {'provides_shell_id': text},
                }
            )
            self.assertEqual(shell_id, found.provides_shell_id)

    def test_next_to_nothing(self):
        found = fpga_bitstream.from_image(
            {
                'id': IMAGE,
                'name': None,
                'size': None,
                'status': 'queued',
                'os_hash_algo': '',
            }
        )
        self.assertEqual(
            fpga_bitstream.Bitstream(IMAGE, '', 0, status='queued'), found
        )

    def test_a_public_image_is_the_operators(self):
        for image, owner in (
            ({'is_public': True, 'owner': 'project'}, None),
            ({'is_public': False, 'owner': 'project'}, 'project'),
            ({'owner': 'project'}, 'project'),
            ({'is_public': 'no', 'owner': None}, programmable.UNKNOWN_OWNER),
            # What anyone may write.
            (
                {'properties': {'is_public': True, 'visibility': 'public'}},
                programmable.UNKNOWN_OWNER,
            ),
        ):
            found = fpga_bitstream.from_image(
                {'id': IMAGE, 'status': 'active', **image}
            )
            self.assertEqual(owner, found.owner, str(image))

    def test_a_hash_among_the_properties_is_none_of_glance(self):
        found = fpga_bitstream.from_image(
            {
                'id': IMAGE,
                'status': 'active',
                'properties': {
                    'os_hash_algo': 'sha512',
                    'os_hash_value': 'ab' * 64,
                },
            }
        )
        self.assertIsNone(found.hash_value)

    def test_half_a_signature_is_one(self):
        found = fpga_bitstream.from_image(
            {
                'id': IMAGE,
                'status': 'active',
                'properties': {'img_signature': 'c2ln'},
            }
        )
        self.assertEqual(
            fpga_bitstream.Signature('c2ln', None, None, None), found.signature
        )

    def test_what_no_bitstream_may_say(self):
        for name, value in (
            ('region_uuid', 'left'),
            ('function_uuid', '---'),
            ('function_uuid', f'{FUNCTION},all'),
            (
                'function_uuid',
                ','.join(str(uuid.uuid4()) for _number in range(17)),
            ),
            ('function_name', 'n' * 256),
            ('vendor', 'a\nb'),
            ('board', '\u202eUPA'),
            ('shell_id', '\ud800'),
            ('provides_shell_id', '\0'),
            ('bs-name', 'n' * 256),
            ('img_signature', 's' * 4097),
            ('img_signature_certificate_uuid', 'u' * 256),
        ):
            error = self.assertRaises(
                exceptions.BitstreamRefused,
                fpga_bitstream.from_image,
                {'id': IMAGE, 'status': 'active', 'properties': {name: value}},
            )
            for part in (IMAGE, f'property {name} ', 'openstack image set'):
                self.assertIn(part, str(error))

    def test_a_projects_images_that_are_the_operators(self):
        for projects, owner in (
            ((), 'project'),
            (('other',), 'project'),
            (('other', 'project'), None),
        ):
            found = fpga_bitstream.from_image(
                {'id': IMAGE, 'status': 'active', 'owner': 'project'}, projects
            )
            self.assertEqual(owner, found.owner)

    @hypothesis.given(hostile_metadata.properties())
    def test_nothing_hostile_goes_further(self, properties):
        try:
            found = fpga_bitstream.from_image(
                {
                    'id': IMAGE,
                    'status': 'active',
                    'owner': 'project',
                    'properties': properties,
                }
            )
        except exceptions.BitstreamRefused as error:
            self.assertLess(len(str(error)), 4000)
            self.assertTrue(str(error).isprintable())
            return
        self.assertLessEqual(len(found.function_uuids), 16)
        for text in (*found.function_uuids, found.region_uuid or IMAGE):
            self.assertEqual(text, str(uuid.UUID(text)))
        for text in (
            found.name,
            found.vendor,
            found.board,
            found.shell_id,
            found.function_name,
            found.provides_shell_id,
        ):
            self.assertLessEqual(len(text or ''), 255)
            self.assertTrue((text or '').isprintable())


class TestFromCircuit(testtools.TestCase):
    def test_what_is_known_of_a_circuit(self):
        for owner in (None, 'project'):
            found = fpga_bitstream.from_circuit(
                programmable.Circuit(IMAGE, 'ab' * 32, (FUNCTION,), owner)
            )
            self.assertEqual(
                fpga_bitstream.Bitstream(
                    IMAGE, IMAGE, 0, function_uuids=(FUNCTION,), owner=owner
                ),
                found,
            )
