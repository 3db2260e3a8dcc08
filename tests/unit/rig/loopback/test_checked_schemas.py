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

import jsonschema
import testtools

from rig.loopback import checked_schemas


class TestCheckedSchemas(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(checked_schemas.CheckedSchemas())

    def test_as_jsonschema(self):
        schema = {'type': 'string', 'format': 'ipv4'}
        for _time in range(2):
            jsonschema.validate('x', schema)
            for value, options in (
                (1, {}),
                ('x', {'format_checker': jsonschema.FormatChecker()}),
            ):
                self.assertRaises(
                    jsonschema.ValidationError,
                    jsonschema.validate,
                    value,
                    schema,
                    **options,
                )

    def test_a_wrong_schema(self):
        schema = {'type': 'stringy'}
        for _time in range(2):
            self.assertRaises(
                jsonschema.SchemaError, jsonschema.validate, 'x', schema
            )

    def test_a_schema_is_checked_once(self):
        checks = []

        class Validator(jsonschema.Draft202012Validator):
            @classmethod
            def check_schema(cls, schema):
                checks.append(schema)

        schema = {'type': 'string'}
        for _time in range(2):
            jsonschema.validate('x', schema, Validator)
        self.assertEqual([schema], checks)
