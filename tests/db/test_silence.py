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

import testscenarios

from db import base
from nova_accel.db import host
from nova_accel.db import host_arqs
from nova_accel.db import silence
from nova_accel.db.sql import schema
from nova_accel.model.units import unit_health
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

#: By which a host is silent as soon as it has reported.
_AT_ONCE = -1


class TestSilence(base.DatabaseTestCase):
    """A host with two servers, of which one has a device that has failed."""

    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(1, 1))
        self.make_profile()
        self.host.report()
        self.servers = [self.hold(self.host, bus) for bus in range(2)]
        self.host = dataclasses.replace(self.host, faults=((1, 'hot'),))
        self.host.report()

    def hold(self, host: reports.SimulatedHost, bus: int = 0) -> str:
        request = self.request(host.allocated(bus), hostname=host.hostname)
        host_arqs.acquire(request)
        return request.instance_uuid

    def find(self, silence_s: int = _AT_ONCE) -> dict[str, list[str]]:
        return {
            hostname: [arq['instance_uuid'] for arq in arqs]
            for hostname, arqs in silence.find(silence_s).items()
        }

    def back(self, told: host.Reported) -> list[tuple[str, str]]:
        return [
            (arq['instance_uuid'], arq['health'].health) for arq in told.turned
        ]

    def test_at_the_second_time_and_once(self) -> None:
        self.assertEqual(
            [{}, {'compute-1': self.servers[:1]}, {}, {}],
            [self.find() for _ in range(4)],
        )

    def test_the_words(self) -> None:
        self.find()
        [[arq]] = silence.find(_AT_ONCE).values()
        self.assertEqual(
            (
                unit_health.Health.UNKNOWN,
                'the host of the server does not report',
            ),
            arq['health'],
        )

    def test_not_if_it_reports_in_between(self) -> None:
        """Also if the report has nothing new."""
        told = self.host.report()
        assert told is not None
        for _ in range(3):
            self.assertEqual({}, self.find())
            self.assertIsNone(self.host.report(told.revision))

    def test_not_while_it_reports(self) -> None:
        for _ in range(3):
            self.assertEqual({}, self.find(180))

    def test_each_host(self) -> None:
        other = reports.SimulatedHost('compute-2')
        other.report()
        server = self.hold(other)
        reports.SimulatedHost('compute-3').report()
        self.find()
        self.assertEqual(
            {'compute-1': self.servers[:1], 'compute-2': [server]}, self.find()
        )

    def test_it_is_back(self) -> None:
        """What works is told once, also if the report has nothing new."""
        told = self.host.report()
        assert told is not None
        works = [(self.servers[0], 'healthy')]
        for _ in range(2):
            self.find()
            self.find()
            self.assertEqual(works, self.back(self.host.tell(told.revision)))
            self.assertEqual([], self.back(self.host.tell(told.revision)))

    def test_it_is_back_with_other_faults(self) -> None:
        self.find()
        self.find()
        changed = dataclasses.replace(self.host, faults=((0, 'hot'),))
        self.assertEqual(
            [(self.servers[0], 'failed'), (self.servers[1], 'healthy')],
            self.back(changed.tell()),
        )

    def test_statements(self) -> None:
        self.assertEqual(
            [2, 3, 1], [len(self.statements(self.find)) for _ in range(3)]
        )
        found = {row['found_silent'] for row in self.rows(schema.HOSTS)}
        self.assertEqual({2}, found)
