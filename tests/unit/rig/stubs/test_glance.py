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

from typing import BinaryIO

from nova.tests import fixtures as nova_fixtures
import testtools
import webob

from rig.stubs import glance


class Images:
    """What Glance asks of Nova's fixture."""

    def detail(self, _context: object) -> list[dict[str, object]]:
        return [
            nova_fixtures.GlanceFixture.image1,
            {
                **nova_fixtures.GlanceFixture.image2,
                'name': 'guest',
                'tags': ['FPGA', 'tested'],
                'os_hash_algo': 'sha512',
            },
        ]

    def download(
        self, _context: object, image_id: str, data: BinaryIO
    ) -> None:
        if image_id == nova_fixtures.GlanceFixture.image2['id']:
            data.write(b'bits' * 1000000)


class TestGlance(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.glance = glance.Glance('http://127.0.0.1:1/image', Images())

    def get(self, path: str, method: str = 'GET') -> webob.Response:
        return webob.Request.blank(path, method=method).get_response(
            self.glance
        )

    def test_list(self) -> None:
        every = self.get('/v2/images').json['images']
        self.assertEqual(
            ['fakeimage123456', 'guest'], [image['name'] for image in every]
        )
        named = self.get('/v2/images?name=guest&limit=1').json['images']
        self.assertEqual([every[1]], named)

    def test_list_by_tags(self) -> None:
        for query, expected in (
            ('tag=FPGA', ['guest']),
            ('tag=FPGA&tag=tested', ['guest']),
            ('tag=FPGA&tag=GPU', []),
        ):
            self.assertEqual(
                expected,
                [
                    image['name']
                    for image in self.get(f'/v2/images?{query}').json['images']
                ],
            )

    def test_data(self) -> None:
        path = f'/v2/images/{nova_fixtures.GlanceFixture.image2["id"]}/file'
        answer = self.get(path)
        self.assertEqual(b'bits' * 1000000, answer.body)
        self.assertEqual(4000000, answer.content_length)

    def test_no_data(self) -> None:
        path = f'/v2/images/{nova_fixtures.GlanceFixture.image1["id"]}/file'
        self.assertEqual(204, self.get(path).status_int)
        self.assertEqual(404, self.get('/v2/images/guest/file').status_int)

    def test_the_schema_tells_properties_apart(self) -> None:
        names = self.get('/v2/schemas/image').json['properties']
        self.assertIn('os_hash_value', names)
        self.assertNotIn('function_uuid', names)

    def test_show(self) -> None:
        image = nova_fixtures.GlanceFixture.image1
        shown = self.get(f'/v2/images/{image["id"]}').json
        self.assertEqual(
            (image['id'], 'active', 'x86_64', '2011-01-01T01:02:03Z'),
            (
                shown['id'],
                shown['status'],
                shown['architecture'],
                shown['created_at'],
            ),
        )
        self.assertEqual(404, self.get('/v2/images/guest').status_int)

    def test_discovery(self) -> None:
        (version,) = self.get('/').json['versions']
        self.assertEqual(
            'http://127.0.0.1:1/image/v2/', version['links'][0]['href']
        )

    def test_read_only(self) -> None:
        self.assertEqual(405, self.get('/v2/images', 'POST').status_int)
