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

import testtools

from nova_accel.model.fleet import fleet
from nova_accel.overview import columns
from nova_accel.testing import simulated_fleet


class TestColumns(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.simulated = simulated_fleet.SimulatedFleet(2000)
        self.simulated.disagree()

    def join(self) -> fleet.Fleet:
        return fleet.join(
            self.simulated.ours, self.simulated.nova, self.simulated.placement
        )

    def test_the_short_list_begins_the_long_one(self) -> None:
        short, long = (columns.names(is_long) for is_long in (False, True))
        self.assertEqual(long[: len(short)], short)
        self.assertEqual(tuple(columns.UNITS), long)

    def test_rows(self) -> None:
        found = self.join()
        rows = [*columns.rows(found, True)]
        self.assertEqual(len(found.rows), len(rows))
        for row, shown in zip(found.rows, rows, strict=True):
            told = dict(zip(columns.names(True), shown, strict=True))
            self.assertEqual(row.device.hostname, told['Host'])
            self.assertEqual((row.arq and row.arq.uuid) or '', told['ARQ'])
            self.assertNotIn(None, shown)

    def test_finding_rows(self) -> None:
        found = self.join()
        rows = [*columns.finding_rows(found)]
        self.assertEqual(8, len({row[0] for row in rows}))
        for row in rows:
            self.assertEqual(len(columns.FINDINGS), len(row))

    def test_the_document_is_json(self) -> None:
        found = self.join()
        document = json.loads(json.dumps(columns.document(found)))
        self.assertTrue(document['is_placement_asked'])
        self.assertEqual(
            [each.whose for each in found.compared],
            [each['whose'] for each in document['drift']],
        )
        self.assertEqual(
            {key for key, _get in columns.UNITS.values()},
            {*document['units'][0]},
        )
