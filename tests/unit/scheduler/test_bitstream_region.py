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

import fixtures
from nova import context as nova_context
from nova import exception
import testtools

from nova_accel import exceptions
from nova_accel.model import naming
from nova_accel.model.profiles import device_profile
from nova_accel.scheduler import bitstream_region
from nova_accel.testing import scheduling
from rig.stubs import bitstreams

REGION = '9eb88c8c-981c-59f8-9ada-574fd16d4d18'
OTHER = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
TRAIT = naming.region_trait('FPGA', 'Intel', REGION)


class TestRequire(testtools.TestCase):
    """A host whose accelerators have regions of one type, in Placement."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.placement = self.useFixture(scheduling.Placement())
        self.placement.add_provider(
            'card',
            {'FPGA': 1},
            traits=[TRAIT, naming.function_trait('FPGA', 'Intel', REGION)],
        )
        self.images = bitstreams.Images()
        self.asked = []
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.image.glance.API.get',
                lambda _api, *args: self.get(*args),
            )
        )
        self.context = nova_context.RequestContext(
            'user', 'project', is_admin=False
        )

    def get(self, context, image_id):
        self.assertIs(self.context, context)
        self.asked.append(image_id)
        return self.images.show(context, image_id)

    def upload(self, **properties):
        return self.images.add(b'bits', **properties)

    def require(self, **group):
        (found,) = bitstream_region.require(
            self.context,
            device_profile.parse_groups([{'resources:FPGA': '1', **group}]),
        )
        return set(found.required)

    def test_its_region(self):
        image = self.upload(region_uuid=REGION.upper())
        self.assertEqual(
            {TRAIT, 'CUSTOM_A'},
            self.require(
                **{'accel:bitstream_id': image, 'trait:CUSTOM_A': 'required'}
            ),
        )

    def test_of_a_device_of_another_type(self):
        trait = naming.region_trait('AICHIP', 'Intel', OTHER)
        self.placement.add_provider('chip', {}, traits=[trait])
        self.assertEqual(
            {trait},
            self.require(
                **{'accel:bitstream_id': self.upload(region_uuid=OTHER)}
            ),
        )

    def test_nothing_is_asked_for_other_groups(self):
        for group in (
            {},
            {'accel:function_id': OTHER},
            {'accel:bitstream_id': OTHER, f'trait:{TRAIT}': 'required'},
        ):
            self.assertNotIn('accel', str(self.require(**group)))
        self.assertEqual([], self.asked)

    def test_no_accelerator_has_it(self):
        image = self.upload(region_uuid=OTHER)
        error = self.assertRaises(
            exceptions.NotFound, self.require, **{'accel:bitstream_id': image}
        )
        for text in (image, OTHER):
            self.assertIn(text, str(error))

    def test_two_vendors_have_it(self):
        self.placement.add_provider(
            'second',
            {},
            traits=[naming.region_trait('FPGA', 'Xilinx', REGION)],
        )
        self.assertEqual(
            set(),
            self.require(
                **{'accel:bitstream_id': self.upload(region_uuid=REGION)}
            ),
        )

    def test_what_cannot_be_found_out_is_left_to_the_host(self):
        for image in (OTHER, self.upload(), self.upload(region_uuid='---')):
            self.assertEqual(
                set(), self.require(**{'accel:bitstream_id': image})
            )
        self.assertIn(f'region of bitstream {OTHER}', self.log.output)

    def test_glance_is_away(self):
        def fail(*_args):
            raise exception.GlanceConnectionFailed(server='s', reason='away')

        self.get = fail
        self.assertEqual(set(), self.require(**{'accel:bitstream_id': OTHER}))
        self.assertIn('away', self.log.output)

    def test_placement_is_away(self):
        image = self.upload(region_uuid=REGION)
        self.placement.use('http://127.0.0.1:1')
        self.assertRaises(
            exception.RequestFilterFailed,
            self.require,
            **{'accel:bitstream_id': image},
        )
