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

from oslo_utils import uuidutils
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import attribute
from nova_accel.db.sql import schema
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios


class TestAttribute(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(2,))
        self.host.report()
        self.first, self.second = self.rows(schema.DEPLOYABLES)

    def listed(self, *args: Any) -> list[tuple[int, str, str]]:
        return [
            (row['deployable_id'], row['key'], row['value'])
            for row in attribute.get_all(*args)
        ]

    def test_of_a_deployable_by_number_or_uuid(self) -> None:
        attribute.create(self.second['id'], 'rack', '7')
        attribute.create(self.first['uuid'], 'slot', 'PCI 3 \u2192 4')
        facts = {
            row['name']: [
                (row['id'], 'traits1', f'CUSTOM_{row["name"].upper()}'),
                (row['id'], 'traits2', 'CUSTOM_NOVA_ACCEL'),
                (row['id'], 'traits3', 'OWNER_CYBORG'),
                (row['id'], 'rc', 'FPGA'),
                (row['id'], 'firmware', '1.2.3'),
            ]
            for row in (self.first, self.second)
        }
        for name in facts:
            facts[name] = [
                fact
                for fact in facts[name]
                if fact[1] not in ('traits2', 'traits3')
            ]
        of_first = [
            *facts['region0'],
            (self.first['id'], 'slot', 'PCI 3 \u2192 4'),
        ]
        of_second = [*facts['region1'], (self.second['id'], 'rack', '7')]
        self.assertEqual(of_first + of_second, self.listed())
        for deployable, found in (
            (self.first, of_first),
            (self.second, of_second),
        ):
            self.assertEqual(found, self.listed(deployable['id']))
            self.assertEqual(found, self.listed(deployable['uuid']))
        self.assertEqual([of_second[-1]], self.listed(None, 'rack'))

    def test_uuids_are_one_s_own(self) -> None:
        attribute.create(self.first['id'], 'rack', '7')
        found = attribute.get_all()
        self.assertEqual(len(found), len({row['uuid'] for row in found}))
        self.assertEqual(found, [attribute.get(row['uuid']) for row in found])

    def test_it_survives_reports(self) -> None:
        attribute.create(self.first['id'], 'rack', '7')
        before = self.rows(schema.ATTRIBUTES)
        for faults in ((), ((0, 'hot'),)):
            dataclasses.replace(self.host, faults=faults).report()
        self.assertEqual(before, self.rows(schema.ATTRIBUTES))

    def test_it_goes_with_its_deployable(self) -> None:
        for deployable in (self.first, self.second):
            attribute.create(deployable['id'], 'rack', '7')
        dataclasses.replace(self.host, regions=(1,)).report()
        self.assertEqual(
            [self.first['uuid']],
            [row['deployable_uuid'] for row in self.rows(schema.ATTRIBUTES)],
        )

    def test_a_key_is_there_once(self) -> None:
        results = base.race(
            [
                lambda: attribute.create(self.first['id'], 'rack', '7'),
            ]
            * base.RACERS
        )
        faults = [
            str(fault)
            for fault in results
            if isinstance(fault, exceptions.Conflict)
        ]
        self.assertEqual(base.RACERS - 1, len(faults))
        self.assertIn('rack', faults[0])
        attribute.create(self.second['id'], 'rack', '7')

    def test_of_a_deployable_that_goes_meanwhile(self) -> None:
        gone = dataclasses.replace(self.host, regions=(None,))
        results = base.race(
            [gone.report, lambda: attribute.create(self.first['id'], 'a', 'b')]
        )
        self.assertNotIsInstance(results[0], Exception)
        self.assertIsInstance(results[1], (dict, exceptions.NotFound))
        self.assertEqual([], self.rows(schema.ATTRIBUTES))

    def test_unknown(self) -> None:
        uuid = uuidutils.generate_uuid()
        for call in (attribute.get, attribute.delete):
            error = self.assertRaises(exceptions.NotFound, call, uuid)
            self.assertEqual(
                f'Attribute not found with uuid={uuid}', str(error)
            )
