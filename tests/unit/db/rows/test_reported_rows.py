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

from nova_accel import exceptions
from nova_accel.db.rows import reported_rows
from nova_accel.db.sql import schema
from nova_accel.model.cards import card_slice
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

    def test_a_unit_of_a_card_of_many_shapes(self) -> None:
        host = reports.SimulatedHost(regions=(1,), cards=1)
        found = reported_rows.rows('compute-1', host.reported())
        [fpga, card] = found[schema.DEVICES].values()
        half = card_slice.WHOLE_CARD // 2
        expected = {
            ('pci_0002_00_00_0', 'mig', 0, half),
            ('pci_0002_00_00_0', 'mig', half, 2 * half),
        }
        names = {fpga['uuid']: fpga['name'], card['uuid']: card['name']}
        slices = {
            (
                row['info'].get('slice', {}).get('shape'),
                names.get(row['card_uuid']),
                row['slice_mode'],
                row['slice_start'],
                row['slice_end'],
            )
            for row in found[schema.ATTACH_HANDLES].values()
        }
        self.assertEqual(
            expected,
            {tuple(each) for shape, *each in slices if shape == reports.HALF},
        )
        self.assertEqual(
            {(None, None, None, None)},
            {tuple(each) for shape, *each in slices if shape is None},
        )

    def test_a_slice_that_no_card_has(self) -> None:
        host = dataclasses.replace(HOST, cards=1)
        reported = host.reported()
        deployable = reported[-1]['deployables'][-1]
        deployable['attach_handles'][-1]['info']['slice']['size'] = 2**21
        error = self.assertRaises(
            exceptions.InvalidRequest,
            reported_rows.rows,
            host.hostname,
            reported,
        )
        self.assertIn(reported[-1]['uuid'], str(error))
        self.assertIn('size', str(error))
