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
import datetime

import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel.db import findings
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import finding
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

SERVER = '6ba7b810-9dad-11d1-80b4-00c04fd430c8'

GONE = finding.Finding(
    finding.Kind.GUEST_GONE, 'no guest', instance_uuid=SERVER
)
MDEV = finding.Finding(
    finding.Kind.MDEV, 'destroyed', is_repaired=True, device='0000:01:00.0'
)
LONG_AGO = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


class FindingsTestCase(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(2, 1))

    def report(self, *found: finding.Finding) -> None:
        self.host = dataclasses.replace(self.host, findings=found)
        self.host.report()

    def read(self) -> list[tuple[str, finding.Finding]]:
        return [
            (
                found.hostname,
                dataclasses.replace(found, hostname=None, since=None),
            )
            for found in findings.read()
        ]

    def age(self) -> None:
        """As if all had been found long ago."""
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.FINDINGS).values(found_at=LONG_AGO)
            )


class TestReplace(FindingsTestCase):
    def test_each_report_replaces_those_of_its_host(self) -> None:
        reports.SimulatedHost('compute-2', findings=(MDEV,)).report()
        self.report(MDEV, GONE)
        self.assertEqual(
            [('compute-1', GONE), ('compute-1', MDEV), ('compute-2', MDEV)],
            self.read(),
        )
        self.report(GONE)
        self.assertEqual(
            [('compute-1', GONE), ('compute-2', MDEV)], self.read()
        )
        self.report()
        self.assertEqual([('compute-2', MDEV)], self.read())

    def test_since_when(self) -> None:
        """As long as a host finds it, also in other words."""
        self.report(GONE)
        [found] = findings.read()
        now = datetime.datetime.now(datetime.UTC)
        self.assertLess(abs(now - found.since).total_seconds(), 60)
        self.age()
        other = dataclasses.replace(GONE, instance_uuid=self.host.node_uuid)
        again = dataclasses.replace(GONE, words='still none')
        self.report(MDEV, again, other)
        found_at = {
            dataclasses.replace(each, hostname=None, since=None): each.since
            for each in findings.read()
        }
        self.assertEqual(LONG_AGO, found_at[again])
        self.assertLess(LONG_AGO, found_at[other])
        self.assertLess(LONG_AGO, found_at[MDEV])

    def test_they_change_with_the_devices(self) -> None:
        self.report(GONE)
        self.age()
        self.host = dataclasses.replace(self.host, regions=(1, None))
        self.host.report()
        self.assertEqual([LONG_AGO], [each.since for each in findings.read()])

    def test_a_host_of_the_release_before(self) -> None:
        self.report(GONE)
        self.host = dataclasses.replace(self.host, contract=1, findings=())
        self.host.report()
        self.assertEqual([], self.read())

    def test_the_statements_do_not_depend_on_their_number(self) -> None:
        counts = []
        for number in (1, 100):
            found = tuple(
                dataclasses.replace(MDEV, device=str(device))
                for device in range(number)
            )
            self.report(GONE)
            host = dataclasses.replace(self.host, findings=found)
            counts.append(len(self.statements(host.report)))
            self.assertEqual(number, len(self.read()))
            counts.append(len(self.statements(findings.read)))
        self.assertEqual(counts[:2], counts[2:])
        self.assertEqual(1, counts[1])
        self.assertEqual(1, len(self.statements(lambda: host.report(0))))
