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


import contextlib
import sys
import types

import ddt
import fixtures
import testtools

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.api.compute import waiting

CONF = conf.CONF


@ddt.ddt
class TestPlace(testtools.TestCase):
    def served_by_uwsgi(
        self, threads: int, processes: int = 1, idle: int = 0
    ) -> None:
        """:param idle: how many of the other processes are"""
        busy = processes - idle
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.api.compute.waiting.sys',
                types.SimpleNamespace(
                    modules={
                        **sys.modules,
                        'uwsgi': types.SimpleNamespace(
                            cores=threads,
                            numproc=processes,
                            workers=lambda: (
                                [{'status': b'busy'}] * busy
                                + [{'status': b'idle'}] * idle
                            ),
                        ),
                    }
                ),
            )
        )

    def places(self) -> int:
        """How many calls get one at the same time."""
        with contextlib.ExitStack() as waiting_calls:
            for number in range(100):
                try:
                    waiting_calls.enter_context(waiting.place())
                except exceptions.TooBusy:
                    return number
        return 100

    @ddt.data((1, 1), (2, 1), (3, 1), (4, 2), (8, 4), (9, 4))
    @ddt.unpack
    def test_threads_are_left(self, threads: int, expected: int) -> None:
        self.served_by_uwsgi(threads)
        # They are given back.
        self.assertEqual([expected] * 2, [self.places(), self.places()])

    def test_a_call_that_fails_gives_its_own_back(self) -> None:
        with contextlib.suppress(ZeroDivisionError), waiting.place():
            1 / 0  # noqa: B018
        self.assertEqual(1, self.places())

    def test_another_server(self) -> None:
        self.assertEqual(1, self.places())

    def test_one_thread_waits_while_another_process_is_idle(self) -> None:
        for processes, idle, expected in (
            (2, 1, 1),
            (2, 0, 0),
            (4, 2, 1),
            (4, 0, 0),
        ):
            self.served_by_uwsgi(1, processes, idle)
            self.assertEqual(expected, self.places())

    def test_processes_with_threads_look_at_no_other(self) -> None:
        self.served_by_uwsgi(8, processes=2, idle=0)
        self.assertEqual(4, self.places())

    @ddt.data(0, 1, 6)
    def test_as_it_is_configured(self, most: int) -> None:
        self.served_by_uwsgi(8)
        CONF.set_override('waiting_calls', most, group='nova_accel')
        self.addCleanup(
            CONF.clear_override, 'waiting_calls', group='nova_accel'
        )
        self.assertEqual(most, self.places())

    def test_the_refusal_names_the_option(self) -> None:
        with waiting.place():
            fault = self.assertRaises(
                exceptions.TooBusy, waiting.place().__enter__
            )
        self.assertIn('[nova_accel] waiting_calls', str(fault))
        self.assertNotIn('nova_accel', fault.public)
