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
import threading
import time

import fixtures
import testtools

from nova_accel.overview import parallel


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class TestAsk(testtools.TestCase):
    def test_each_answer(self) -> None:
        self.assertEqual(
            {number: number**2 for number in range(100)},
            parallel.ask('Asking', lambda number: number**2, range(100)),
        )
        self.assertEqual({}, parallel.ask('Asking', str, []))

    def test_many_at_a_time(self) -> None:
        together = threading.Barrier(parallel.AT_A_TIME, timeout=30)
        parallel.ask(
            'Asking',
            lambda _number: together.wait(),
            range(parallel.AT_A_TIME),
        )

    def test_the_first_error_ends_it(self) -> None:
        asked = []

        def fail(number: int) -> None:
            asked.append(number)
            if number == 0:
                raise ValueError(number)
            time.sleep(0.001)

        error = self.assertRaises(
            ValueError, parallel.ask, 'Asking', fail, range(10_000)
        )
        self.assertEqual('0', str(error))
        self.assertLess(len(asked), 10_000)

    def test_only_a_terminal_shows_progress(self) -> None:
        for stream in (io.StringIO(), _Terminal()):
            with (
                fixtures.MonkeyPatch('sys.stderr', stream),
                fixtures.EnvironmentVariable('TERM', 'xterm'),
                fixtures.EnvironmentVariable('COLUMNS', '80'),
            ):
                parallel.ask('Asking Nova', str, range(3))
            self.assertEqual(
                stream.isatty(), 'Asking Nova' in stream.getvalue()
            )
