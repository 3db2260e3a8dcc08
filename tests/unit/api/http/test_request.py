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

import importlib
import io
import pkgutil

import jsonschema
import webob

from nova_accel import exceptions
from nova_accel.api import routes
from nova_accel.api import schemas
from nova_accel.api.http import request
from nova_accel.api.http import route
from unit.api import base


class RequestTest(base.ApiTestCase):
    def test_refuses_a_path_that_is_not_utf8(self) -> None:
        for path in ('/device_profiles/%ff', '/device_profiles?name=%ff'):
            self.assertEqual(
                'The URL is not valid UTF-8', self.refused(400, 'GET', path)
            )

    def test_refuses_a_nul(self) -> None:
        for path in ('/device_profiles/a%00', '/device_profiles?name=a%00'):
            self.refused(400, 'GET', path)

    def test_refuses_an_unknown_or_repeated_argument(self) -> None:
        path = '/accelerator_requests'
        self.assertEqual(
            'Unknown argument: "instnce"',
            self.refused(400, 'GET', f'{path}?instnce=1'),
        )
        self.assertEqual(
            'Argument given more than once: "instance"',
            self.refused(400, 'GET', f'{path}?instance=1&instance=2'),
        )

    def test_takes_a_uuid_in_all_its_forms(self) -> None:
        for form in (base.NOBODY.upper(), base.NOBODY.replace('-', '')):
            self.assertEqual(
                f'ExtArq not found with uuid={base.NOBODY}',
                self.refused(404, 'GET', f'/accelerator_requests/{form}'),
            )

    def test_schemas_are_right(self) -> None:
        """Requests are checked; schemas are not, when they come."""
        checked = 0
        for found in pkgutil.iter_modules(schemas.__path__):
            module = importlib.import_module(
                f'{schemas.__name__}.{found.name}'
            )
            for name, value in vars(module).items():
                if name.isupper() and isinstance(value, dict):
                    jsonschema.Draft202012Validator.check_schema(value)
                    checked += 1
        self.assertGreater(checked, 10)

    def test_refuses_what_is_no_json(self) -> None:
        for raw in (b'', b'{', b'\xff', b'[NaN]', b'[' * 100_000, b'9' * 5000):
            self.assertEqual(
                'Request is not in valid JSON format',
                self.refused(400, 'POST', '/device_profiles', raw=raw),
            )

    def test_refuses_a_body_that_is_too_long(self) -> None:
        self.refused(
            413,
            'POST',
            '/device_profiles',
            raw=b' ' * (route.MAX_BODY_BYTES + 1),
        )

    def test_refuses_a_body_that_ends_early(self) -> None:
        blank = webob.Request.blank('/', method='POST')
        blank.body_file = io.BytesIO(b'[')
        blank.content_length = 10
        route.keep(blank, routes.API['/device_profiles']['POST'])
        error = self.assertRaises(
            exceptions.InvalidRequest, request.json_body, blank
        )
        self.assertIn('Content-Length', str(error))

    def test_refuses_half_of_a_surrogate_pair(self) -> None:
        self.refused(
            400,
            'POST',
            '/device_profiles',
            [{'name': 'a', 'groups': [base.GROUP], 'description': '\ud800'}],
        )

    def test_names_the_place_of_a_wrong_value(self) -> None:
        self.assertEqual(
            "groups/0/resources:FPGA: 1.5 is not of type 'string', 'integer'",
            self.refused(
                400,
                'POST',
                '/device_profiles',
                [{'name': 'a', 'groups': [{'resources:FPGA': 1.5}]}],
            ),
        )

    def test_tells_back_a_part_of_a_long_value(self) -> None:
        reason = self.refused(
            400,
            'POST',
            '/device_profiles',
            [{'name': 'a', 'groups': 'x' * 10_000}],
        )
        self.assertLess(len(reason), 1000)
