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
from typing import Any

import jsonschema
import testtools

from nova_accel.api import routes
from openapi import answers
from openapi import document
from unit.api import base
from unit.api import described


class DocumentTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.document = document.document()

    def test_it_has_each_route_and_no_other(self) -> None:
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

    def test_no_answers_are_those_of_a_handler_without_a_call(self) -> None:
        self.assertEqual(
            {
                route.handler
                for table in (routes.API, routes.VERSIONS)
                for methods in table.values()
                for route in methods.values()
            },
            answers.OF_HANDLERS.keys(),
        )

    def test_arguments_say_since_when_if_they_are_newer(self) -> None:
        paths = self.document['paths']
        self.assertEqual(
            {
                'name': 'Names, separated by commas',
                'limit': 'How many at most, from 2.4 on',
                'marker': 'Uuid of the last one that is known, from 2.4 on',
                'sort': 'Keys and directions, as type:desc,uuid; from 2.4 on',
            },
            _arguments(paths['/accelerator/v2/device_profiles']['get']),
        )
        self.assertEqual(
            'How many at most',
            _arguments(paths['/accelerator/v2/programmings']['get'])['limit'],
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
                document.request_body(operation)
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


class AnswersTest(base.ApiTestCase):
    """The API answers what the document says."""

    def test_versions(self) -> None:
        for path, methods in routes.VERSIONS.items():
            schema = answers.OF_HANDLERS[methods['GET'].handler][200]
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


def _arguments(operation: dict[str, Any]) -> dict[str, str]:
    """Name -> description."""
    return {
        parameter['name']: parameter['description']
        for parameter in operation['parameters']
        if parameter.get('in') == 'query'
    }
