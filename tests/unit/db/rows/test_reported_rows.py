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

import dataclasses
from typing import Any

import testtools

from nova_accel.db.rows import reported_rows
from nova_accel.db.sql import schema
from nova_accel.testing import reports

HOST = reports.SimulatedHost(regions=(2,), serials=((0, 'S1'),))


class TestReportedRows(testtools.TestCase):
    def rows(self, devices: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """One row of each table."""
        found = reported_rows.rows('compute-1', devices)
        return [next(iter(rows.values())) for rows in found.values()]

    def test_each_row_has_exactly_the_columns(self) -> None:
        for table, rows in reported_rows.rows(
            'compute-1', HOST.reported()
        ).items():
            for uuid, row in rows.items():
                self.assertEqual(uuid, row['uuid'])
                self.assertEqual(set(reported_rows.COLUMNS[table]), row.keys())
                self.assertLessEqual(row.keys(), set(table.columns.keys()))

    def test_parents_come_first(self) -> None:
        found = reported_rows.rows('compute-1', HOST.reported())
        self.assertEqual(
            [schema.DEVICES, schema.DEPLOYABLES, schema.ATTACH_HANDLES],
            list(found),
        )
        self.assertEqual([1, 2, 2], [len(rows) for rows in found.values()])

    def test_each_row_names_its_parent(self) -> None:
        device, deployable, handle = self.rows(HOST.reported())
        self.assertEqual(
            ('compute-1', device['uuid'], deployable['uuid'], True),
            (
                device['hostname'],
                deployable['device_uuid'],
                handle['deployable_uuid'],
                handle['present'],
            ),
        )

    def test_what_a_nova_compute_says_is_kept(self) -> None:
        device, _deployable, handle = self.rows(HOST.reported())
        self.assertEqual(
            ({'firmware': '1.2.3'}, 'S1'),
            (device['attributes'], handle['identity']),
        )

    def test_link_sets(self) -> None:
        host = dataclasses.replace(HOST, link_sets=('four', 'two'))
        device, _deployable, _handle = self.rows(host.reported())
        self.assertEqual(['four', 'two'], device['link_sets'])
