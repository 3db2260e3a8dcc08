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

import re

import testtools

from nova_accel.model.devices import vgpu_parameters


class TestPattern(testtools.TestCase):
    def test_as_nvidia_writes_it(self):
        for text in (
            'enable_uvm=1',
            'frame_rate_limiter=0, disable_vnc=1',
            'uuid=6ab0e3a7-6f2d-4c6f-9d6c-3f5f3d1b2c11,my_vgpu_type_id=1',
            f'a={958 * "1"}',
        ):
            self.assertTrue(re.fullmatch(vgpu_parameters.PATTERN, text), text)

    def test_one_that_gives_another_type_than_is_counted(self):
        for text in ('vgpu_type_id=1', 'a=1,vgpu_type_id=1,b=2'):
            self.assertFalse(re.fullmatch(vgpu_parameters.PATTERN, text))


class TestNormalised(testtools.TestCase):
    def test_without_spaces(self):
        self.assertEqual('a=1,b=2', vgpu_parameters.normalised('a=1,  b=2'))
