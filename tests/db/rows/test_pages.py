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

import itertools
from typing import Any

import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import device_profile
from nova_accel.db.rows import pages
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import paging
from nova_accel.testing import database

load_tests = testscenarios.load_tests_apply_scenarios

_TABLE = schema.DEVICE_PROFILES
_KEYS = pages.columns(_TABLE, 'name', 'description', 'updated_at')

#: Name, description and updated_at of each row, in the order of their age.
_ROWS = [
    ('c', None, None),
    ('a', 'x', schema.now()),
    ('b', 'x', None),
    ('e', None, schema.now()),
    ('d', 'w', None),
    ('f', 'x', None),
]


class TestRead(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        with engine.writer() as connection:
            for name, description, updated_at in _ROWS:
                connection.execute(
                    sa.insert(_TABLE).values(
                        uuid=f'uuid-{name}',
                        name=name,
                        groups=[],
                        description=description,
                        created_at=schema.now(),
                        updated_at=updated_at,
                    )
                )

    def names(self, *where: Any, **page: Any) -> str:
        with engine.reader() as connection:
            return ''.join(
                row['name']
                for row in pages.read(
                    connection,
                    device_profile.DeviceProfileRow,
                    sa.select(_TABLE),
                    where,
                    paging.Page(**page),
                    _TABLE,
                    _KEYS,
                )
            )

    def sorted(self, *keys: str, **page: Any) -> str:
        return self.names(
            sort=paging.parse_sort(','.join(keys), _KEYS), **page
        )

    def test_orders(self) -> None:
        for keys, names in (
            ((), 'cabedf'),
            (('name',), 'abcdef'),
            (('name:desc',), 'fedcba'),
            # What has no value is less than any; the same are by age.
            (('description',), 'cedabf'),
            (('description:desc',), 'fbadec'),
            (('description', 'name:desc'), 'ecdfba'),
            (('description:desc', 'name'), 'abfdce'),
        ):
            found = self.sorted(*keys) if keys else self.names()
            self.assertEqual(names, found, keys)

    def test_pages_are_the_list(self) -> None:
        orders = [()] + [
            tuple(
                f'{name}:{direction}'
                for name, direction in zip(names, directions, strict=True)
            )
            for names in itertools.permutations(_KEYS, 2)
            for directions in itertools.product(('asc', 'desc'), repeat=2)
        ]
        for keys in orders:
            sort = paging.parse_sort(','.join(keys), _KEYS) if keys else ()
            marker, found = None, ''
            while page := self.names(sort=sort, limit=2, marker=marker):
                found += page
                marker = f'uuid-{page[-1]}'
            self.assertEqual(self.names(sort=sort), found, keys)

    def test_a_marker_that_is_filtered_out(self) -> None:
        self.assertEqual(
            'df',
            self.names(_TABLE.c.name.in_(['a', 'd', 'f']), marker='uuid-e'),
        )

    def test_no_such_marker(self) -> None:
        error = self.assertRaises(
            exceptions.InvalidRequest, self.names, marker='uuid-z'
        )
        self.assertIn('uuid-z', str(error))

    def test_two_statements_wherever_the_page_is(self) -> None:
        for marker, amount in ((None, 1), ('uuid-c', 2), ('uuid-d', 2)):
            self.assertEqual(
                amount,
                len(
                    self.statements(
                        lambda marker=marker: self.names(
                            limit=2,
                            marker=marker,
                            sort=(paging.SortKey('description'),),
                        )
                    )
                ),
            )
