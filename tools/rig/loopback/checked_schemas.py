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

"""JSON schemas that are checked once in a process, not for each request.

Placement checks its schemas, which are constants, whenever it validates a
request. That was a thirtieth of a functional test's time.
"""

from typing import Any

import fixtures
import jsonschema
from jsonschema import validators

#: The schemas that were right. They are kept, so that no other one gets the
#: identity of one of them.
_checked: dict[int, Any] = {}


def _validate(
    instance: Any, schema: Any, cls: Any = None, *args: Any, **options: Any
) -> None:
    """See ``jsonschema.validate``."""
    kind = cls or validators.validator_for(schema)
    if id(schema) not in _checked:
        kind.check_schema(schema)
        _checked[id(schema)] = schema
    error = jsonschema.exceptions.best_match(
        kind(schema, *args, **options).iter_errors(instance)
    )
    if error is not None:
        raise error


class CheckedSchemas(fixtures.Fixture):
    """Has ``jsonschema.validate`` remember which schemas are right."""

    def _setUp(self) -> None:
        self.useFixture(fixtures.MonkeyPatch('jsonschema.validate', _validate))
