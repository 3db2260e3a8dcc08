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

import os
import pathlib
import time

import fixtures
from oslo_concurrency import processutils
import testtools

from nova_accel.privileged import vendor_tool


class TestRun(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def run_script(self, script, timeout_s=20, **how):
        return vendor_tool.run(('sh', '-c', script, 'it'), timeout_s, **how)

    def test_both_outputs_and_the_status(self):
        answer = self.run_script('cat; echo no >&2; exit 3', text='said')
        self.assertEqual((3, b'said', b'no\n'), answer)
        self.assertEqual('no', answer.said)
        error = self.assertRaises(
            processutils.ProcessExecutionError, answer.check, ('a', 'b')
        )
        self.assertEqual((3, 'a b'), (error.exit_code, error.cmd))

    def test_what_is_no_text(self):
        answer = self.run_script(r"printf '<p>\377\000\033[2J</p>'")
        self.assertEqual('<p>\ufffd\0\x1b[2J</p>', answer.text)
        self.assertIs(answer, answer.check(('it',)))

    def test_a_failure_that_is_no_text(self):
        answer = self.run_script(r"printf 'no \377' >&2; exit 1")
        self.assertEqual('no \ufffd', answer.said)
        error = self.assertRaises(
            processutils.ProcessExecutionError, answer.check, ('it',)
        )
        self.assertEqual('no \ufffd', error.stderr)

    def test_output_without_end(self):
        for stream in ('1', '2'):
            began = time.monotonic()
            self.assertRaises(
                ValueError, self.run_script, f'exec yes >&{stream}'
            )
            self.assertLess(time.monotonic() - began, 15)

    def test_only_the_end_is_kept(self):
        answer = self.run_script('yes | head -c 3000000; echo end', most=None)
        self.assertLess(len(answer.output), 100_000)
        self.assertTrue(answer.output.endswith(b'y\nend\n'))

    def test_without_end(self):
        began = time.monotonic()
        self.assertIn(
            self.run_script('sleep 60', 1).status, vendor_tool.TIMED_OUT
        )
        self.assertLess(time.monotonic() - began, 8)

    def test_what_leaves_its_output_open(self):
        """As a daemon does that a tool starts."""
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.vendor_tool._KILL_AFTER_S', 0.2
            )
        )
        self.assertRaises(
            TimeoutError, self.run_script, 'setsid sleep 5 & exit', 1
        )

    def test_no_such_program(self):
        answer = vendor_tool.run(('/nowhere/tool',), 5)
        self.assertEqual(127, answer.status)
        self.assertIn('/nowhere/tool', answer.said)

    def test_a_lock_is_for_its_owner(self):
        lock = self.directory / 'lock'
        self.assertEqual(0, self.run_script('exit', lock=lock).status)
        self.assertEqual(0o600, lock.stat().st_mode & 0o777)
        lock.unlink()
        os.symlink('/etc/passwd', lock)
        self.assertRaises(OSError, self.run_script, 'exit', lock=lock)
