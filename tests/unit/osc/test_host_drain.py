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

from typing import Any

import fixtures
from osc_lib import exceptions

from nova_accel.db import draining as draining_db
from nova_accel.db import host_arqs
from nova_accel.model import iso_time
from nova_accel.osc import host_drain
from nova_accel.osc import host_emptying
from unit.osc import draining

_REASON = ('--reason', 'new fans')


class HostDrainTestCase(draining.DrainTestCase):
    def setUp(self) -> None:
        super().setUp()
        # Time passes by waiting, and Nova does its work then.
        self.useFixture(
            fixtures.MonkeyPatch('time.sleep', self.nova.pass_time)
        )

    def drain(
        self, *arguments: str
    ) -> tuple[int, dict[str, tuple[str, str, str]]]:
        """The exit status; server's name -> way, result, why."""
        status, columns, rows = self.run_list(
            host_drain.Drain, 'compute-1', *arguments
        )
        self.assertEqual(host_drain.COLUMNS, columns)
        return status, {
            name: (way, result, why)
            for _uuid, name, _status, way, result, why in rows
        }


class TestPublished(HostDrainTestCase):
    """Both commands say whether Placement has the change."""

    def test_the_host_has_not_reported(self) -> None:
        words = 'compute-1 has not reported yet'
        self.drain(*_REASON, '--wait', '3')
        self.assertIn(words, self.said)
        made, parsed = self.parse(host_drain.Undrain, 'compute-1')
        made.take_action(parsed)
        self.assertEqual(2, self.said.count(words))

    def test_the_api_is_away_in_the_end(self) -> None:
        """The servers are told of all the same."""
        self.boot('live')
        self.useFixture(
            fixtures.MockPatch(
                'nova_accel.osc.published.devices_of',
                side_effect=exceptions.CommandError('away'),
            )
        )
        status, rows = self.drain(*_REASON)
        self.assertEqual((0, ['live']), (status, [*rows]))
        self.assertIn('away', self.said)

    def test_what_is_only_planned_changes_nothing(self) -> None:
        self.drain(*_REASON, '--dry-run')
        self.assertNotIn('reported', self.said)


class TestDrain(HostDrainTestCase):
    def test_a_host_is_emptied(self) -> None:
        self.boot('live')
        self.boot('stopped', status='SHUTOFF')
        self.assertEqual(
            (
                0,
                {
                    'live': ('live', 'left', ''),
                    'stopped': ('cold', 'left', ''),
                },
            ),
            self.drain(*_REASON, '--until', '2120-01-01T00:00:00+01:00'),
        )
        self.assertIn('stopped: cold: it is stopped\n', self.said)
        [drain] = draining_db.get_all()
        self.assertEqual('new fans', drain['reason'])
        assert drain['until'] is not None
        self.assertEqual(2119, drain['until'].year)

    def test_something_remains(self) -> None:
        self.boot('fixed', fails=draining.NOT_LIVE)
        status, rows = self.drain(*_REASON)
        self.assertEqual(1, status)
        _way, result, why = rows['fixed']
        self.assertEqual('remains', result)
        self.assertIn(draining.REFUSED, why)
        # The next run does what this one may not do.
        self.assertEqual(
            (0, {'fixed': ('cold', 'left', '')}), self.drain('--cold')
        )

    def test_dry_run(self) -> None:
        self.boot('live')
        status, rows = self.drain('--dry-run')
        self.assertEqual(0, status)
        self.assertEqual(('live', 'planned'), rows['live'][:2])
        self.assertEqual([], draining_db.get_all())
        self.assertEqual([], self.nova.asked)

    def test_without_a_reason(self) -> None:
        error = self.assertRaises(exceptions.CommandError, self.drain)
        self.assertIn('--reason', str(error))
        self.assertEqual([], draining_db.get_all())

    def test_reason_and_end_are_kept(self) -> None:
        self.drain(*_REASON, '--until', '2120-01-01T00:00:00Z')
        [first] = draining_db.get_all()
        self.drain()
        self.assertEqual([first], draining_db.get_all())
        self.drain('--reason', 'more fans')
        [again] = draining_db.get_all()
        self.assertEqual({**first, 'reason': 'more fans'}, again)

    def test_it_is_announced(self) -> None:
        self.boot('live')
        status, rows = self.drain(*_REASON, '--from', '2120-01-01T01:00+01:00')
        self.assertEqual(0, status)
        self.assertEqual(('live', 'planned'), rows['live'][:2])
        self.assertEqual([], self.nova.asked)
        self.assertIn(
            'Servers stay where they are. New ones stay away from '
            '2120-01-01T00:00:00+00:00 on. Run the command again then.\n',
            self.said,
        )
        self.assertEqual([], draining_db.get_all())
        # Without the option it begins at once.
        self.assertEqual((0, {'live': ('live', 'left', '')}), self.drain())
        [found] = draining_db.get_all()
        self.assertEqual('new fans', found['reason'])

    def test_a_beginning_that_is_over(self) -> None:
        self.boot('live')
        self.assertEqual(
            (0, {'live': ('live', 'left', '')}),
            self.drain(*_REASON, '--from', '2020-01-01T00:00:00Z'),
        )
        error = self.assertRaises(
            exceptions.CommandError,
            self.drain,
            '--from',
            '2120-01-01T00:00:00Z',
        )
        self.assertIn('is drained already', str(error))

    def test_it_is_interrupted(self) -> None:
        self.boot('live')
        self.boot('next')
        with fixtures.MonkeyPatch('time.sleep', _interrupt):
            status, rows = self.drain(*_REASON, '--concurrency', '1')
        self.assertEqual(130, status)
        self.assertEqual('remains', rows['live'][1])
        self.assertIn('Run the command again', self.said)
        self.nova.pass_time()
        self.assertEqual((0, {'next': ('live', 'left', '')}), self.drain())
        self.assertEqual([], host_arqs.get_of_host('compute-1'))

    def test_arguments(self) -> None:
        for arguments in (
            ('--until', 'tomorrow'),
            ('--until', '2020-01-01T00:00:00Z'),
            ('--until', '2120-01-01T00:00:00'),
            ('--from', 'tomorrow'),
            ('--concurrency', '0'),
            ('--concurrency', '65'),
            ('--timeout', 'forever'),
        ):
            with fixtures.MonkeyPatch('sys.stderr', self.app.stderr):
                self.assertRaises(SystemExit, self.drain, *arguments)
        self.assertIn('is over', self.said)
        self.assertIn('no time zone', self.said)

    def test_the_bar_is_for_terminals(self) -> None:
        with fixtures.MonkeyPatch('sys.stderr', self.app.stderr):
            with host_drain.show_progress() as tell:
                tell(host_emptying.Progress(1, 2, 'a [b] (live)'))
            self.assertEqual('', self.said)
            self.app.stderr.isatty = lambda: True
            with (
                fixtures.EnvironmentVariable('TERM', 'xterm'),
                host_drain.show_progress() as tell,
            ):
                tell(host_emptying.Progress(1, 2, 'a [b] (live)'))
        self.assertIn('a [b] (live)', self.said)
        self.assertIn('1/2', self.said)


def _interrupt(_seconds: float) -> None:
    raise KeyboardInterrupt


class TestUndrain(HostDrainTestCase):
    def test_undrain(self) -> None:
        self.drain(*_REASON)
        made, parsed = self.parse(host_drain.Undrain, 'compute-1')
        self.assertEqual(0, made.run(parsed))
        self.assertEqual([], draining_db.get_all())
        error = self.assertRaises(
            exceptions.CommandError, made.take_action, parsed
        )
        self.assertIn('Host compute-1 is not drained', str(error))


class TestShow(HostDrainTestCase):
    def test_list_and_show(self) -> None:
        self.assertEqual(
            (host_drain.DRAIN_COLUMNS, []), self.listed(host_drain.ListDrains)
        )
        draining_db.begin(
            'compute-1',
            'a\x1b[2J',
            iso_time.parse('until', '2020-01-01T00:00:00Z'),
            'ann',
        )
        columns, rows = self.listed(host_drain.ListDrains)
        [row] = rows
        self.assertEqual((columns, [*row]), self._show())
        found: dict[str, Any] = dict(zip(columns, row, strict=True))
        self.assertIsNotNone(found.pop('Since'))
        self.assertEqual(
            {
                'Host': 'compute-1',
                'Reason': 'a\x1b[2J',
                'From': None,
                'Until': '2020-01-01T00:00:00+00:00',
                'Overdue': True,
                'Requested by': 'ann',
                'Disabled devices': 4,
            },
            found,
        )

    def test_an_announced_drain(self) -> None:
        start = iso_time.parse('from', '2120-01-01T00:00:00Z')
        draining_db.begin('compute-1', 'new fans', None, 'ann', start)
        columns, row = self._show()
        found: dict[str, Any] = dict(zip(columns, row, strict=True))
        self.assertEqual('2120-01-01T00:00:00+00:00', found['From'])
        self.assertIsNone(found['Since'])
        self.assertEqual(0, found['Disabled devices'])

    def _show(self) -> Any:
        return self.listed(host_drain.ShowDrain, 'compute-1')

    def test_a_host_that_is_not_drained(self) -> None:
        error = self.assertRaises(exceptions.CommandError, self._show)
        self.assertIn('Host compute-1 is not drained', str(error))
