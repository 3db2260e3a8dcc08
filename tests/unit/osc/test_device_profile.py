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

import datetime
import types
from typing import Any

import fixtures
from osc_lib import exceptions

from nova_accel.cmd import explain
from nova_accel.db import device_profile as device_profile_db
from nova_accel.db import draining as draining_db
from nova_accel.osc import device_profile
from nova_accel.testing import reports
from unit.osc import base
from unit.osc import test_host_places


class TestExplain(base.CommandTestCase):
    def setUp(self) -> None:
        super().setUp()
        for number in range(2):
            reports.SimulatedHost(f'compute-{number}', regions=(2,)).report()
        device_profile_db.create(
            'gold', [{'resources:FPGA': '1'}, {'resources:FPGA': '2'}]
        )
        device_profile_db.create(
            'joined', [{'resources:FPGA': '2', 'accel:link': 'nvlink'}] * 2
        )

    def test_as_from_the_database(self) -> None:
        for profile in ('gold', 'joined'):
            for options in ((), ('--host', 'compute-1')):
                columns, rows = self.listed(explain.Explain, profile, *options)
                self.assertEqual(4 if options else 8, len(rows))
                self.assertEqual(
                    (columns, rows),
                    self.listed(device_profile.Explain, profile, *options),
                )

    def test_a_class_that_no_host_reports(self) -> None:
        device_profile_db.create(
            'typo', [{'resources:FPGA': '1'}, {'resources:CUSTOM_FPAG': '1'}]
        )
        for command in (explain.Explain, device_profile.Explain):
            _columns, rows = self.listed(command, 'typo')
            self.assertEqual([0, 0, 0, 0, 1], [row[0] for row in rows])
            self.assertEqual(
                (
                    1,
                    '',
                    '',
                    '',
                    'CUSTOM_FPAG',
                    0,
                    0,
                    'no host reports CUSTOM_FPAG',
                ),
                tuple(rows[-1]),
            )

    def test_several_profiles(self) -> None:
        for command in (explain.Explain, device_profile.Explain):
            _columns, rows = self.listed(
                command, 'joined,gold', '--host', 'compute-1'
            )
            self.assertEqual(
                ['joined: 0', 'joined: 1'] * 2 + ['gold: 0', 'gold: 1'] * 2,
                [row[0] for row in rows],
            )

    def test_unknown_profile(self) -> None:
        error = self.assertRaises(
            exceptions.CommandError,
            self.listed,
            device_profile.Explain,
            'no/thing',
        )
        self.assertIn('404', str(error))


class TestSet(base.CommandTestCase):
    def setUp(self) -> None:
        super().setUp()
        reports.SimulatedHost('compute-1', regions=(2,)).report()
        self.created = device_profile_db.create(
            'gold', [{'resources:FPGA': '1'}], description='one'
        )

    def set(self, *arguments: str) -> dict[str, Any]:
        made, parsed = self.parse(device_profile.Set, *arguments)
        return dict(zip(*made.take_action(parsed), strict=True))

    def test_groups(self) -> None:
        groups = [
            {'resources:FPGA': '1', 'trait:CUSTOM_REGION0': 'required'},
            {'resources:FPGA': '1'},
        ]
        changed = self.set(
            'gold',
            '--group',
            'resources:FPGA=1,trait:CUSTOM_REGION0=required',
            '--group',
            'resources:FPGA=1',
        )
        self.assertEqual((groups, 'one'), (changed['groups'], 'one'))
        stored = device_profile_db.get('gold')
        self.assertEqual(
            (groups, 'one', changed['uuid']),
            (stored['groups'], stored['description'], stored['uuid']),
        )
        self.assertEqual('', self.app.stderr.getvalue())

    def test_the_description_alone(self) -> None:
        self.set(self.created['uuid'], '--description', 'two')
        stored = device_profile_db.get('gold')
        self.assertEqual(
            ('two', [{'resources:FPGA': '1'}]),
            (stored['description'], stored['groups']),
        )

    def test_a_doubt_is_shown(self) -> None:
        self.set('gold', '--group', 'resources:CUSTOM_QTA=1')
        self.assertIn(
            'no host reports a device of CUSTOM_QTA',
            self.app.stderr.getvalue(),
        )

    def test_refused(self) -> None:
        for arguments, words in (
            (['gold'], '--group or --description'),
            (['silver', '--description', 'two'], 'name=silver'),
            (['gold', '--group', 'FPGA=1'], ': FPGA'),
        ):
            error = self.assertRaises(
                exceptions.CommandError, self.set, *arguments
            )
            self.assertIn(words, str(error))
        self.assertEqual('one', device_profile_db.get('gold')['description'])


class TestAvailability(base.CommandTestCase):
    def servers(self, profile):
        """The rows for a profile."""
        return self.listed(device_profile.Availability, profile)[1]

    def test_hosts_and_their_sum(self):
        for number in range(2):
            reports.SimulatedHost(f'compute-{number}', regions=(2,)).report()
        reports.SimulatedHost(
            'compute-2', regions=(2, 1), faults=((0, 'dead'),)
        ).report()
        device_profile_db.create('gold', [{'resources:FPGA': '1'}])
        self.assertEqual(
            [
                ('compute-0', '2', ''),
                ('compute-1', '2', ''),
                ('compute-2', '1', ''),
                ('all', '5', '2 FPGA faulty'),
            ],
            list(map(tuple, self.servers('gold'))),
        )

    def test_the_end_of_a_drain(self):
        reports.SimulatedHost(regions=(2,)).report()
        device_profile_db.create('gold', [{'resources:FPGA': '1'}])
        end = datetime.datetime(2120, 1, 1, tzinfo=datetime.UTC)
        draining_db.begin('compute-1', 'fans', end, 'admin')
        self.assertEqual(
            [
                (
                    'all',
                    '0',
                    '2 FPGA disabled; a drain is planned to end at '
                    '2120-01-01T00:00:00+00:00',
                )
            ],
            [tuple(row) for row in self.servers('gold')],
        )

    def test_zones_and_aggregates(self):
        self.app.client_manager.sdk_connection = types.SimpleNamespace(
            compute=test_host_places.simulated().adapter
        )
        for number in range(4):
            reports.SimulatedHost(f'compute-{number}', regions=(2,)).report()
        device_profile_db.create('gold', [{'resources:FPGA': '1'}])
        for by, columns, expected in (
            ('zone', 'Zone', {'east': '4', 'nova': '2', '(none)': '2'}),
            (
                'aggregate',
                'Aggregate',
                {'gpu': '4', 'new': '2', '(none)': '4'},
            ),
        ):
            found, rows = self.listed(
                device_profile.Availability, 'gold', '--by', by
            )
            self.assertEqual((columns, 'Servers', 'Why not more'), found)
            self.assertEqual(
                {**expected, 'all': '8'},
                {place: servers for place, servers, _why in rows},
            )

    def test_several_profiles(self):
        reports.SimulatedHost(regions=(2,), functions=3).report()
        device_profile_db.create('gold', [{'resources:FPGA': '1'}])
        device_profile_db.create('qat', [{'resources:CUSTOM_QAT': '1'}])
        self.assertEqual('5', self.servers('gold,qat')[-1][1])

    def test_what_no_host_can_have(self):
        reports.SimulatedHost(regions=(2,)).report()
        device_profile_db.create('many', [{'resources:FPGA': '9'}])
        [(host, servers, why)] = self.servers('many')
        self.assertEqual(('all', '0'), (host, servers))
        self.assertIn('no pool of devices has FPGA=9', why)

    def test_what_a_tenant_sees(self):
        for *told, text in (
            (0, 0, False, '0'),
            (2, 4, False, '2 to 4'),
            (10, None, False, '10 or more'),
            (1, 1, True, '1, as the quota says'),
        ):
            answer = {
                'availability': dict(
                    zip(
                        ('min_servers', 'max_servers', 'is_limited_by_quota'),
                        told,
                        strict=True,
                    ),
                    obstacle=None,
                )
            }
            self.useFixture(
                fixtures.MonkeyPatch(
                    'nova_accel.osc.accelerator_calls.call',
                    lambda *_arguments, answer=answer: answer,
                )
            )
            self.assertEqual(
                [('all', text, '')], list(map(tuple, self.servers('gold')))
            )
