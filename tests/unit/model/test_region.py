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

import json

import testtools

from nova_accel.model import region


class TestContents(testtools.TestCase):

    def test_round_trip(self):
        contents = region.Contents(
            '0b955a5b-f5dd-49d0-8c4f-28729427d303', 'ab' * 32, 'operating',
            ('5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01',))
        text = json.dumps(contents.to_dict())
        self.assertEqual(
            contents, region.contents_from_dict(json.loads(text)))
