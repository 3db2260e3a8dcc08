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

"""Rows as plain dicts, with the types of their columns.

SQLAlchemy's rows have no types. Each module that makes rows has a TypedDict of
the columns that its query selects.
"""

from collections.abc import Mapping
from typing import Any
from typing import cast
from typing import TypeVar

import sqlalchemy as sa

_R = TypeVar('_R')


def rows(kind: type[_R], result: sa.CursorResult[Any]) -> list[_R]:
    """All rows of a result.

    :param kind: the TypedDict of the columns that the query selects
    """
    names = tuple(result.keys())
    # Faster than result.mappings(), which looks up each column of each row.
    return [cast(_R, dict(zip(names, found, strict=True))) for found in result]


def row(kind: type[_R], found: Mapping[Any, Any]) -> _R:
    """One row, which has the columns of the kind."""
    return cast(_R, dict(found))
