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
from typing import Any

from oslo_utils import uuidutils
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import programming
from nova_accel.db.sql import schema
from nova_accel.model import paging
from nova_accel.model.fpga import programming_record
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

_START = datetime.datetime(2026, 11, 21, 12, tzinfo=datetime.UTC)
_HOST = reports.SimulatedHost(regions=(2,))


def record(number: int = 0, **fields: Any) -> programming_record.Record:
    """One that began so many seconds after the others."""
    return programming_record.Record(
        **{
            'uuid': uuidutils.generate_uuid(),
            'device_uuid': _HOST.device_uuid(),
            'region': 'region0',
            'bitstream_id': uuidutils.generate_uuid(),
            'asker': programming_record.Asker(),
            'started_at': _START + datetime.timedelta(seconds=number),
            **fields,
        }
    )


def ended(
    begun: programming_record.Record, failure: str | None = None
) -> programming_record.Record:
    return dataclasses.replace(
        begun,
        failure=failure,
        finished_at=begun.started_at + datetime.timedelta(seconds=8),
    )


class TestKept(base.DatabaseTestCase):
    """A region's history has an end."""

    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        programming.CONF.set_override('programmings_kept', 3, 'nova_accel')
        self.addCleanup(
            programming.CONF.clear_override, 'programmings_kept', 'nova_accel'
        )

    def test_the_newest_of_each_region(self) -> None:
        other = record(region='region1')
        programming.note('compute-1', other)
        # The clocks of hosts do not matter.
        records = [record(-number) for number in range(5)]
        for begun in records:
            programming.note('compute-1', begun)
            programming.note('compute-1', ended(begun))
        self.assertEqual(
            {other.uuid, *(each.uuid for each in records[2:])},
            {row['uuid'] for row in programming.get_all()},
        )

    def test_many_statements_are_not_needed(self) -> None:
        counts = []
        for kept in (100, 3, 1):
            programming.CONF.set_override(
                'programmings_kept', kept, 'nova_accel'
            )
            for _again in range(5):
                counts.append(
                    len(
                        self.statements(
                            lambda: programming.note('compute-1', record())
                        )
                    )
                )
        self.assertEqual([3] * 5 + [4] * 10, counts)
        self.assertEqual(1, len(programming.get_all()))


class TestAnothersDevice(base.DatabaseTestCase):
    """A host writes no history of a device that another host has."""

    scenarios = database.SCENARIOS

    def test_a_device_that_another_host_has(self) -> None:
        _HOST.report()
        forged = record()
        error = self.assertRaises(
            exceptions.Conflict, programming.note, 'compute-2', forged
        )
        self.assertEqual(
            f'programming {forged.uuid} is of device {forged.device_uuid}, '
            'which belongs to host compute-1',
            str(error),
        )
        self.assertEqual([], programming.get_all())
        programming.note('compute-1', forged)

    def test_a_device_that_is_gone(self) -> None:
        """No one's records are forgotten for those of another host."""
        programming.CONF.set_override('programmings_kept', 1, 'nova_accel')
        self.addCleanup(
            programming.CONF.clear_override, 'programmings_kept', 'nova_accel'
        )
        own = record()
        programming.note('compute-1', own)
        for _number in range(3):
            programming.note('compute-2', record())
        self.assertIn(own.uuid, {row['uuid'] for row in programming.get_all()})


class TestNote(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def only(self) -> dict[str, Any]:
        [row] = programming.get_all()
        return row

    def test_begins_and_ends(self) -> None:
        asker = programming_record.Asker(
            base.PROJECT, 'user', uuidutils.generate_uuid()
        )
        begun = record(asker=asker)
        for _again in range(2):
            programming.note('compute-1', begun)
            row = self.only()
            del row['id']
            self.assertEqual(
                {
                    'hostname': 'compute-1',
                    **{
                        name: value
                        for name, value in dataclasses.asdict(begun).items()
                        if name != 'asker'
                    },
                    **dataclasses.asdict(asker),
                },
                row,
            )
        for _again in range(2):
            programming.note('compute-1', ended(begun, 'CRC error'))
            row = self.only()
            self.assertEqual(
                (datetime.timedelta(seconds=8), 'CRC error'),
                (row['finished_at'] - row['started_at'], row['failure']),
            )

    def test_what_has_ended_stays_so(self) -> None:
        begun = record()
        programming.note('compute-1', ended(begun))
        before = self.only()
        for late in (begun, ended(begun, 'another answer')):
            programming.note('compute-1', late)
            self.assertEqual(before, self.only())

    def test_of_another_host(self) -> None:
        begun = record()
        programming.note('compute-1', begun)
        before = self.only()
        error = self.assertRaises(
            exceptions.Conflict, programming.note, 'compute-2', ended(begun)
        )
        self.assertIn('compute-1', str(error))
        self.assertEqual(before, self.only())

    def test_said_by_many_at_once(self) -> None:
        begun = record()
        self.assertEqual(
            [None] * base.RACERS,
            base.race(
                [lambda: programming.note('compute-1', ended(begun))]
                * base.RACERS
            ),
        )
        self.assertIsNotNone(self.only()['finished_at'])
        self.assertEqual(1, len(self.rows(schema.PROGRAMMINGS)))


class TestGetAll(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def listed(self, *args: Any, **kwargs: Any) -> list[str]:
        return [row['uuid'] for row in programming.get_all(*args, **kwargs)]

    def test_newest_first_in_pages(self) -> None:
        # As they began, whenever they were said; three in one second.
        records = [record(number) for number in (3, 1, 2, 2, 2)]
        for each in records:
            programming.note('compute-1', each)
        expected = [records[place].uuid for place in (0, 4, 3, 2, 1)]
        self.assertEqual(expected, self.listed())
        marker, found = None, []
        while page := self.listed(paging.Page(2, marker)):
            self.assertLessEqual(len(page), 2)
            found += page
            marker = page[-1]
        self.assertEqual(expected, found)

    def test_unknown_marker(self) -> None:
        marker = uuidutils.generate_uuid()
        error = self.assertRaises(
            exceptions.InvalidRequest,
            programming.get_all,
            paging.Page(1, marker),
        )
        self.assertIn(marker, str(error))

    def test_filters(self) -> None:
        _HOST.report()
        deployables = {
            row['name']: row['uuid'] for row in self.rows(schema.DEPLOYABLES)
        }
        asker = programming_record.Asker(
            base.PROJECT, 'user', uuidutils.generate_uuid()
        )
        by_server = record(asker=asker)
        other = record(1, region='region1')
        gone = record(2, device_uuid=uuidutils.generate_uuid())
        for hostname, each in (
            ('compute-1', by_server),
            ('compute-1', other),
            ('compute-2', gone),
        ):
            programming.note(hostname, each)
        for filters, expected in (
            ({'hostname': 'compute-1'}, [other, by_server]),
            ({'hostname': 'compute-2'}, [gone]),
            ({'instance_uuid': asker.instance_uuid}, [by_server]),
            ({'project_id': base.PROJECT}, [by_server]),
            ({'bitstream_id': other.bitstream_id}, [other]),
            ({'device_uuid': gone.device_uuid}, [gone]),
            ({'deployable_uuid': deployables['region0']}, [by_server]),
            ({'deployable_uuid': deployables['region1']}, [other]),
            ({'deployable_uuid': gone.uuid}, []),
            (
                {
                    'hostname': 'compute-2',
                    'deployable_uuid': deployables['region1'],
                },
                [],
            ),
            ({'hostname': None}, [gone, other, by_server]),
        ):
            self.assertEqual(
                [each.uuid for each in expected],
                self.listed(**filters),
                filters,
            )
