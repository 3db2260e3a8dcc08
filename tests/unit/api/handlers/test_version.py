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

import testtools
import webob

from nova_accel.api import app


class VersionTest(testtools.TestCase):
    def get(self, mount: str, path: str) -> webob.Response:
        request = webob.Request.blank(path, base_url=f'https://cloud{mount}')
        return request.get_response(app.versions_factory({}))

    def test_links_follow_the_url_of_the_request(self) -> None:
        for mount in ('', '/accelerator', '/some/where'):
            for path in ('', '/'):
                [version] = self.get(mount, path).json['versions']
                self.assertEqual(
                    f'https://cloud{mount}/v2', version['links'][0]['href']
                )
            for path in ('/v2', '/v2/'):
                version = self.get(mount, path).json
                self.assertEqual(
                    f'https://cloud{mount}/v2/', version['links'][0]['href']
                )
