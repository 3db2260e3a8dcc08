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

import types

from nova import utils
import testtools

from nova_accel.virt import image_properties


class TestOf(testtools.TestCase):
    def test_properties_that_nova_does_not_know(self):
        properties = {'accel:bitstream_id': 'uuid', 'hw_disk_bus': 'virtio'}
        metadata = utils.get_system_metadata_from_image(
            {'properties': properties, 'name': 'cirros'}
        )
        metadata['boot_roles'] = 'admin'
        self.assertEqual(
            properties,
            image_properties.of(
                types.SimpleNamespace(system_metadata=metadata)
            ),
        )
        self.assertEqual(
            {}, image_properties.of(types.SimpleNamespace(system_metadata={}))
        )
