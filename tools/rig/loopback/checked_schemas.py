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

"""JSON schemas that are checked once in a process.

``jsonschema.validate`` checks the schema itself at each call. Placement calls
it for each request, and that was a third of the time of a claim.
"""

from typing import Any

import fixtures
import jsonschema
from jsonschema import exceptions
from jsonschema import validators

#: The schemas that are right. They are kept, so no other one has their id.
_checked: dict[int, Any] = {}


def _validate(
    instance: Any, schema: Any, cls: Any = None, *args: Any, **options: Any
) -> None:
    """As ``jsonschema.validate``.

    :raises ValidationError: the instance does not fit the schema.
    :raises SchemaError: the schema is wrong.
    """
    validator = cls or validators.validator_for(schema)
    if id(schema) not in _checked:
        validator.check_schema(schema)
        _checked[id(schema)] = schema
    error = exceptions.best_match(
        validator(schema, *args, **options).iter_errors(instance)
    )
    if error is not None:
        raise error


class CheckedSchemas(fixtures.Fixture):
    """Has each schema checked once. The schemas must not change."""

    def _setUp(self) -> None:
        self.useFixture(
            fixtures.MockPatchObject(jsonschema, 'validate', _validate)
        )
