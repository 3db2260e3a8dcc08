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

import sqlalchemy as sa
import testtools

from rig.cyborg import arqs as cyborg_arqs

#: Those columns of Cyborg's tables that are filled.
_COLUMNS = {
    'devices': [
        'type',
        'vendor',
        'model',
        'hostname',
        'status',
        'device_state',
    ],
    'controlpath_ids': ['device_id', 'cpid_type', 'cpid_info'],
    'deployables': [
        'name',
        'device_id',
        'num_accelerators',
        'rp_uuid',
        'driver_name',
    ],
    'attach_handles': [
        'deployable_id',
        'cpid_id',
        'in_use',
        'attach_type',
        'attach_info',
    ],
    'device_profiles': [],
    'extended_accelerator_requests': [
        'project_id',
        'state',
        'substate',
        'device_profile_id',
        'device_profile_group_id',
        'hostname',
        'device_rp_uuid',
        'deployable_id',
        'instance_uuid',
        'attach_handle_id',
    ],
}


class TestFill(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.engine = sa.create_engine('sqlite://', poolclass=sa.StaticPool)
        self.addCleanup(self.engine.dispose)
        self.tables = sa.MetaData()
        for name, columns in _COLUMNS.items():
            sa.Table(
                name,
                self.tables,
                sa.Column('id', sa.Integer, primary_key=True),
                sa.Column('uuid', sa.String, unique=True),
                *[sa.Column(column, sa.String) for column in columns],
            )
        self.tables.create_all(self.engine)
        with self.engine.begin() as connection:
            connection.execute(
                sa.insert(self.tables.tables['device_profiles'])
            )

    def count(self, table: str, *columns: str) -> int:
        """How many rows, or different values, there are."""
        found = self.tables.tables[table]
        with self.engine.connect() as connection:
            return len(
                connection.execute(
                    sa.select(
                        *[found.c[column] for column in columns or ['id']],
                    ).distinct()
                ).all()
            )

    def test_each_arq_has_a_handle_of_its_host(self) -> None:
        cyborg_arqs.fill(self.engine, 20, 0)
        arqs = 'extended_accelerator_requests'
        self.assertEqual(20, self.count(arqs))
        self.assertEqual(20, self.count(arqs, 'attach_handle_id'))
        self.assertEqual(20, self.count(arqs, 'instance_uuid'))
        self.assertEqual(2, self.count(arqs, 'deployable_id', 'hostname'))
        self.assertEqual(
            20, self.count('attach_handles', 'deployable_id', 'attach_info')
        )

    def test_adds_what_is_missing(self) -> None:
        cyborg_arqs.fill(self.engine, 20, 0)
        cyborg_arqs.fill(self.engine, 50, 20)
        self.assertEqual(50, self.count('attach_handles'))
        cyborg_arqs.fill(self.engine, 50, 50)
        self.assertEqual(50, self.count('extended_accelerator_requests'))

    def test_unbinds_those_of_others(self) -> None:
        cyborg_arqs.fill(self.engine, 20, 0)
        cyborg_arqs.unbind(self.engine)
        arqs = 'extended_accelerator_requests'
        self.assertEqual(20, self.count(arqs))
        self.assertEqual(1, self.count(arqs, 'state', 'instance_uuid'))
        self.assertEqual(1, self.count('attach_handles', 'in_use'))
