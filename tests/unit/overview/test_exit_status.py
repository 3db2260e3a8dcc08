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

import argparse
import io
import types

import testtools

from nova_accel.overview import exit_status


class _Command(exit_status.Answering):
    fault: Exception | None = None

    def answer(self, parsed_args: argparse.Namespace) -> int:
        if self.fault is not None:
            raise self.fault
        return 7

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Not called."""


class TestAnswering(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.options = types.SimpleNamespace(debug=False)
        self.stderr = io.StringIO()
        self.command = _Command(
            types.SimpleNamespace(stderr=self.stderr, options=self.options),
            None,
        )

    def test_the_answer_is_the_exit_status(self) -> None:
        self.assertEqual(7, self.command.run(argparse.Namespace()))
        self.assertEqual('', self.stderr.getvalue())

    def test_no_answer(self) -> None:
        self.command.fault = ValueError('no answer')
        self.assertEqual(
            exit_status.UNKNOWN, self.command.run(argparse.Namespace())
        )
        self.assertEqual('no answer\n', self.stderr.getvalue())

    def test_with_debug_the_fault_is_seen(self) -> None:
        self.command.fault = ValueError('no answer')
        self.options.debug = True
        self.assertRaises(ValueError, self.command.run, argparse.Namespace())
