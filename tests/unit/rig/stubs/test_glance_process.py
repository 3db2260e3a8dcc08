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


import requests
import testtools

from rig.stubs import glance_process


class TestGlanceProcess(testtools.TestCase):
    def test_a_bitstream(self) -> None:
        with glance_process.GlanceProcess() as glance:
            data = b'bits' * 1000000
            url = f'{glance.url}/v2/images/{glance.add(data)}'
            self.assertEqual(
                len(data), requests.get(url, timeout=60).json()['size']
            )
            self.assertEqual(
                data, requests.get(f'{url}/file', timeout=60).content
            )
        self.assertRaises(
            requests.ConnectionError, requests.get, url, timeout=60
        )
