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

from oslo_utils import uuidutils
from oslotest import base
import sqlalchemy as sa

from rig.benchmark import row_copies

_METADATA = sa.MetaData()
_HOSTS = sa.Table(
    'hosts',
    _METADATA,
    sa.Column('id', sa.Integer, primary_key=True),
    sa.Column('uuid', sa.String(36), unique=True),
    sa.Column('name', sa.String(36)),
    sa.Column('parent', sa.Integer),
)
_PARTS = sa.Table(
    'parts',
    _METADATA,
    sa.Column('id', sa.Integer, primary_key=True),
    sa.Column('host_uuid', sa.ForeignKey('hosts.uuid')),
    sa.Column('name', sa.String(36)),
)


class TestInsert(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.uuid = uuidutils.generate_uuid()
        self.engine = sa.create_engine('sqlite://')
        self.addCleanup(self.engine.dispose)
        _METADATA.create_all(self.engine)
        with self.engine.begin() as connection:
            connection.execute(
                sa.insert(_HOSTS),
                [
                    {'uuid': self.uuid, 'name': 'h', 'parent': None},
                    {'uuid': None, 'name': 'child', 'parent': 1},
                ],
            )
            connection.execute(
                sa.insert(_PARTS),
                [{'host_uuid': self.uuid, 'name': 'gpu'}],
            )

    def rows(self, table: sa.Table) -> list[tuple[object, ...]]:
        with self.engine.begin() as connection:
            found = connection.execute(sa.select(table).order_by('id'))
            return [tuple(row) for row in found]

    def test_copies(self) -> None:
        with self.engine.begin() as connection:
            templates = [
                row_copies.read(connection, _HOSTS, {'id': 2, 'parent': 2}),
                row_copies.read(connection, _PARTS),
            ]
        row_copies.insert(self.engine, templates, {self.uuid, 'h'}, 300)
        hosts, parts = self.rows(_HOSTS), self.rows(_PARTS)
        self.assertEqual((602, 301), (len(hosts), len(parts)))
        # Both tables have the same uuid for the same copy.
        self.assertEqual(
            [row[1] for row in hosts[::2]], [row[1] for row in parts]
        )
        self.assertEqual(301, len({row[1] for row in parts}))
        # A copy refers to itself, and has what is no name unchanged.
        self.assertEqual((3, 'h-1', None), (hosts[2][0], *hosts[2][2:]))
        self.assertEqual((4, None, 'child', 3), hosts[3])
        self.assertEqual({'gpu'}, {row[2] for row in parts})
