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
import re

import jsonschema
import testtools

from nova_accel.api import openapi
from nova_accel.api import routes
from unit.api import base
from unit.api import described


class DocumentTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.document = openapi.document()

    def test_it_has_each_route_and_no_other(self) -> None:
        self.assertEqual(
            {path: set(methods) for path, methods in routes.API.items()},
            {
                path: set(methods)
                for path, methods in openapi.OPERATIONS.items()
            },
        )
        self.assertEqual(
            {f'/accelerator/v2{path}' for path in routes.API}
            | {f'/accelerator{path}'.rstrip('/') for path in routes.VERSIONS},
            set(self.document['paths']),
        )
        for path, methods in routes.API.items():
            self.assertEqual(
                {'parameters', *(method.lower() for method in methods)},
                set(self.document['paths'][f'/accelerator/v2{path}']),
            )

    def test_operations_have_names_of_their_own(self) -> None:
        names = [
            operation['operationId']
            for methods in self.document['paths'].values()
            for operation in methods.values()
            if 'operationId' in operation
        ]
        self.assertEqual(sorted(set(names)), sorted(names))

    def test_it_is_portable(self) -> None:
        text = json.dumps(self.document, ensure_ascii=False)
        text.encode()
        self.assertNotIn(r'\\Z', text)
        for pattern in re.findall(r'"pattern": ("[^"]*")', text):
            re.compile(json.loads(pattern))
        self.assertIn(r'"^[^\\u0000\\ud800-\\udfff]*$"', text)

    def test_its_schemas_are_right(self) -> None:
        for schema in (
            *self.document['components']['schemas'].values(),
            *(
                operation.body
                for _path, _method, operation in described.OPERATIONS
                if operation.body is not None
            ),
        ):
            jsonschema.Draft202012Validator.check_schema(schema)

    def test_what_it_refers_to_is_there(self) -> None:
        for name in re.findall(
            r'#/components/(\w+/\w+)', json.dumps(self.document)
        ):
            kind, item = name.split('/')
            self.assertIn(item, self.document['components'][kind])


class CallsTest(base.ApiTestCase):
    """The document and the API say the same."""

    def test_arguments(self) -> None:
        for path, method, operation in described.OPERATIONS:
            if method not in ('GET', 'DELETE') or '{' in path:
                continue
            for name in (*operation.query, 'unknown'):
                answer = self.call(
                    method, f'{path}?{name}=1', token=True, version='latest'
                )
                self.assertEqual(
                    name == 'unknown' and bool(operation.query),
                    'Unknown argument' in answer.text,
                    f'{method} {path}?{name}',
                )

    def test_microversions(self) -> None:
        for path, method, operation in described.OPERATIONS:
            if operation.since == '2.0':
                continue
            path = re.sub('{[^}]*}', base.NOBODY, path)
            for version, is_refused in (
                (f'2.{int(operation.since[2:]) - 1}', True),
                (operation.since, False),
            ):
                answer = self.call(method, path, version=version)
                # A method that Cyborg does not know is refused as such.
                self.assertEqual(
                    is_refused,
                    answer.status_int in (405, 406),
                    f'{method} {path} {version}',
                )

    def test_versions(self) -> None:
        for path, (_summary, schema) in openapi.VERSION_ANSWERS.items():
            answer = base.webob.Request.blank(
                path, base_url='http://HOST/accelerator'
            ).get_response(base.app.versions_factory({}))
            jsonschema.validate(answer.json, schema)

    def test_an_answer_that_is_not_in_it(self) -> None:
        good = self.call('GET', '/devices')
        good.json_body = {'devices': [{}]}
        self.assertRaises(
            jsonschema.ValidationError,
            described.check,
            'GET',
            '/devices',
            good,
        )
        good.status = 202
        self.assertRaises(
            AssertionError, described.check, 'GET', '/devices', good
        )
