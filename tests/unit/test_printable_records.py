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

import io
import logging
import traceback

import fixtures
from oslo_config import cfg
from oslo_log import formatters
from oslo_log import log
import testtools

from nova_accel import printable_records

_HOSTILE = '\x1b[2J\x9b2J\x85\x0b\r\nCRITICAL forged\u2028\u202e\u2066\ud800'


class TestPrintableRecords(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.output = io.StringIO()
        self.handler = logging.StreamHandler(self.output)
        logging.getLogger().addHandler(self.handler)
        self.addCleanup(logging.getLogger().removeHandler, self.handler)
        self.log = logging.getLogger('nova_accel.of_a_test')

    @property
    def lines(self) -> list[str]:
        return self.output.getvalue().split('\n')

    def assert_harmless(self) -> None:
        for line in self.lines:
            self.assertTrue(line.isprintable(), ascii(line))
            self.assertFalse(line.startswith('CRITICAL'), line)
        self.assertIn('forged', self.output.getvalue())

    def test_texts_and_arguments(self) -> None:
        for arguments in (
            ('a host says %s', _HOSTILE),
            (f'a host says {_HOSTILE}',),
            ('a host says %(what)s', {'what': _HOSTILE}),
            (ValueError(_HOSTILE),),
        ):
            self.log.warning(*arguments)
        self.assertEqual(4, len(self.lines) - 1)
        self.assert_harmless()

    def test_what_is_printable_stays(self) -> None:
        self.log.warning('100 %% of %s: %d zu heiß\\n', 'gpu 1', 105)
        self.log.warning('50 % off')
        self.assertEqual(
            ['100 % of gpu 1: 105 zu heiß\\n', '50 % off', ''], self.lines
        )

    def raise_and_tell(self, words: str, cause: Exception | None) -> None:
        try:
            raise OSError(words) from cause
        except OSError:
            self.log.exception('It failed')

    def test_tracebacks(self) -> None:
        for cause in (None, ValueError(_HOSTILE)):
            self.raise_and_tell(_HOSTILE, cause)
        try:
            raise ValueError('well said') from OSError(_HOSTILE)
        except ValueError:
            self.log.exception('It failed')
        try:
            try:
                raise LookupError(_HOSTILE)
            finally:
                raise OSError('while it was handled')
        except OSError:
            self.log.exception('It failed')
        self.assert_harmless()
        text = self.output.getvalue()
        for name in (
            'OSError: ',
            'ValueError: well said',
            'LookupError: ',
            'raise_and_tell',
        ):
            self.assertIn(name, text)

    def test_a_traceback_of_oslo(self) -> None:
        config = cfg.ConfigOpts()
        log.register_options(config)
        config([], default_config_files=[], default_config_dirs=[])
        self.handler.setFormatter(formatters.ContextFormatter(config=config))
        self.raise_and_tell(_HOSTILE, None)
        self.assert_harmless()

    def test_a_fault_that_is_printable_stays(self) -> None:
        with fixtures.FakeLogger() as told_to:
            try:
                raise OSError('away') from ValueError('no')
            except OSError as error:
                self.log.exception('It failed')
                told = ''.join(traceback.format_exception(error))
        self.assertEqual(f'It failed\n{told}', told_to.output)

    def test_a_cause_that_never_ends(self) -> None:
        first, second = ValueError(_HOSTILE), OSError(_HOSTILE)
        first.__cause__, second.__cause__ = second, first
        self.log.error('It failed', exc_info=first)
        self.assert_harmless()

    def test_others_records_are_theirs(self) -> None:
        for name in ('nova.compute', 'nova_accelerated'):
            logging.getLogger(name).warning('a\nb')
        self.assertEqual(['a', 'b', 'a', 'b', ''], self.lines)

    def test_arguments_that_do_not_match(self) -> None:
        """Python's logging tells where, as it does for others."""
        told = []
        self.handler.handleError = told.append
        self.log.propagate = False
        self.addCleanup(setattr, self.log, 'propagate', True)
        self.log.addHandler(self.handler)
        self.addCleanup(self.log.removeHandler, self.handler)
        self.log.warning('%d of', 'x')
        self.assertEqual(['x'], [record.args[0] for record in told])

    def test_it_is_installed_once(self) -> None:
        before = logging.getLogRecordFactory()
        printable_records.install()
        self.assertIs(before, logging.getLogRecordFactory())

    def test_a_record_of_another_process(self) -> None:
        """oslo.privsep makes one without a name first."""
        made = logging.makeLogRecord({'name': 'x', 'msg': 'y'})
        self.assertEqual('y', made.getMessage())
