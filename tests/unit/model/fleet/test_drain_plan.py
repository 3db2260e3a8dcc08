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

import hypothesis
from hypothesis import strategies as st
import testtools

from nova_accel.model.fleet import drain_plan
from nova_accel.model.fleet import room_guest

Resize = drain_plan.Resize
Way = drain_plan.Way

_STATUSES = (
    'ACTIVE',
    'PAUSED',
    'SHUTOFF',
    'SUSPENDED',
    'RESCUE',
    'ERROR',
    'BUILD',
    'SHELVED',
    'VERIFY_RESIZE',
    'SOFT_DELETED',
    'MIGRATING',
    'UNKNOWN',
)

_SERVERS = st.builds(
    drain_plan.DrainedServer,
    st.just('uuid'),
    st.just('name'),
    st.sampled_from(_STATUSES),
    st.sampled_from((None, 'migrating', 'powering-off')),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(Resize),
)

_ALLOWED = st.builds(
    drain_plan.Allowed,
    st.booleans(),
    st.sampled_from((None, 'no room')),
    st.dictionaries(
        st.sampled_from((Way.LIVE, Way.COLD, Way.CONFIRM)), st.just('refused')
    ),
)


def server(
    status: str = 'ACTIVE', **fields: object
) -> drain_plan.DrainedServer:
    made = drain_plan.DrainedServer(
        'uuid', 'name', status, None, True, True, False
    )
    return made._replace(**fields)  # type: ignore[arg-type]


def way(
    found: drain_plan.DrainedServer | None,
    *failed: Way,
    cold: bool = False,
    left_for_s: float = 0,
) -> Way:
    return drain_plan.decide(
        found,
        drain_plan.Allowed(cold, failed=dict.fromkeys(failed, 'refused')),
        left_for_s,
    ).way


class TestDecide(testtools.TestCase):
    def test_running(self) -> None:
        for is_mediated in (True, False):
            running = server(is_mediated=is_mediated)
            for cold in (True, False):
                self.assertIs(Way.LIVE, way(running, cold=cold))
            self.assertIs(Way.NOT, way(running, Way.LIVE))
            self.assertIs(Way.COLD, way(running, Way.LIVE, cold=True))
            self.assertIs(Way.NOT, way(running, Way.LIVE, Way.COLD, cold=True))

    def test_what_is_told_of_pci_devices(self) -> None:
        running = server(is_mediated=False)
        for cold, end in ((True, 'cold'), (False, 'not at all')):
            self.assertTrue(
                drain_plan.decide(
                    running, drain_plan.Allowed(cold)
                ).why.endswith(f'otherwise {end}')
            )
        told = drain_plan.decide(
            running, drain_plan.Allowed(False, failed={Way.LIVE: 'no driver'})
        ).why
        self.assertIn('no driver', told)
        self.assertIn('--cold', told)

    def test_stopped(self) -> None:
        """It goes cold without a word of the administrator."""
        self.assertIs(Way.COLD, way(server('SHUTOFF')))
        self.assertIs(Way.NOT, way(server('SHUTOFF'), Way.COLD))

    def test_paused(self) -> None:
        """A reboot would lose what was paused."""
        self.assertIs(Way.LIVE, way(server('PAUSED')))
        self.assertIs(Way.NOT, way(server('PAUSED'), Way.LIVE, cold=True))

    def test_other_states(self) -> None:
        for status, cure in (
            ('SUSPENDED', 'resume'),
            ('RESCUE', 'unrescue'),
            ('ERROR', 'hard reboot'),
            ('SHELVED', 'offload'),
            ('SOFT_DELETED', 'restore'),
            ('VERIFY_RESIZE', 'confirm or revert'),
            ('UNHEARD_OF', 'UNHEARD_OF'),
        ):
            step = drain_plan.decide(server(status), drain_plan.Allowed(True))
            self.assertIs(Way.NOT, step.way)
            self.assertIn(cure, step.why)
        self.assertIs(Way.WAIT, way(server('BUILD')))

    def test_busy(self) -> None:
        step = drain_plan.decide(
            server(task='rebooting'), drain_plan.Allowed(True)
        )
        self.assertEqual((Way.WAIT, 'busy: rebooting'), step)
        for task in ('migrating', 'resize_prep'):
            self.assertEqual(
                (Way.WAIT, f'it is being moved: {task}'),
                drain_plan.decide(server(task=task), drain_plan.Allowed(True)),
            )

    def test_cyborgs_flavor_key(self) -> None:
        for status in ('ACTIVE', 'SHUTOFF'):
            step = drain_plan.decide(
                server(status, has_cyborgs_key=True), drain_plan.Allowed(True)
            )
            self.assertIs(Way.NOT, step.way)
            self.assertIn('shelve', step.why)

    def test_no_room(self) -> None:
        allowed = drain_plan.Allowed(True, 'no room')
        for status in ('ACTIVE', 'SHUTOFF'):
            self.assertEqual(
                (Way.NOT, 'no room'),
                drain_plan.decide(server(status), allowed),
            )
        self.assertIn(
            'resume', drain_plan.decide(server('SUSPENDED'), allowed).why
        )

    def test_it_waits_to_be_confirmed(self) -> None:
        for resize, expected in (
            (Resize.OURS, Way.CONFIRM),
            (Resize.OTHERS, Way.NOT),
            (Resize.ENDING, Way.WAIT),
            (Resize.NONE, Way.WAIT),
        ):
            moved = server('VERIFY_RESIZE', is_here=False, resize=resize)
            self.assertIs(expected, way(moved))
        moved = server('VERIFY_RESIZE', is_here=False, resize=Resize.OURS)
        self.assertIs(Way.NOT, way(moved, Way.CONFIRM))

    def test_devices_that_are_left(self) -> None:
        for found, what in (
            (None, 'no such server'),
            (server(is_here=False), 'on another host'),
        ):
            self.assertIs(Way.WAIT, way(found))
            self.assertIs(
                Way.WAIT, way(found, left_for_s=drain_plan.LEFT_S - 1)
            )
            step = drain_plan.decide(
                found, drain_plan.Allowed(True), drain_plan.LEFT_S
            )
            self.assertIs(Way.NOT, step.way)
            self.assertIn(what, step.why)
            self.assertIn('audit', step.why)


class TestTrouble(testtools.TestCase):
    def trouble(
        self, found: drain_plan.DrainedServer, *failed: Way, cold: bool = False
    ) -> int | None:
        allowed = drain_plan.Allowed(
            cold, failed=dict.fromkeys(failed, 'refused')
        )
        return drain_plan.trouble(found, drain_plan.decide(found, allowed))

    def test_a_stopped_server_gives_least(self) -> None:
        stopped, mediated, function = (
            self.trouble(found)
            for found in (
                server('SHUTOFF'),
                server(is_mediated=True),
                server(is_mediated=False),
            )
        )
        assert stopped is not None
        assert mediated is not None and function is not None
        self.assertLess(stopped, mediated)
        # Only an attempt shows whether it goes live.
        self.assertLess(mediated, function)

    def test_paused(self) -> None:
        for is_mediated in (True, False):
            self.assertEqual(
                self.trouble(server(is_mediated=is_mediated)),
                self.trouble(server('PAUSED', is_mediated=is_mediated)),
            )

    def test_in_the_bounds_of_a_plan(self) -> None:
        for status in _STATUSES:
            for is_mediated in (True, False):
                found = self.trouble(server(status, is_mediated=is_mediated))
                if found is not None:
                    self.assertTrue(0 <= found <= room_guest.MAX_TROUBLE)

    def test_a_server_that_does_not_move(self) -> None:
        for found in (
            server('ERROR'),
            server('SUSPENDED'),
            server('VERIFY_RESIZE'),
            server('BUILD'),
            server(task='rebooting'),
            server(task='migrating'),
            server(has_cyborgs_key=True),
            server(is_here=False),
        ):
            self.assertIsNone(self.trouble(found, cold=True))
        for resize in Resize:
            self.assertIsNone(
                self.trouble(
                    server('VERIFY_RESIZE', is_here=False, resize=resize)
                )
            )

    def test_a_way_that_was_tried_in_vain(self) -> None:
        self.assertIsNone(self.trouble(server(), Way.LIVE))
        self.assertIsNone(self.trouble(server('SHUTOFF'), Way.COLD))
        self.assertIsNotNone(self.trouble(server(), Way.LIVE, cold=True))


class TestProperties(testtools.TestCase):
    @hypothesis.given(_SERVERS, _ALLOWED, st.floats(0, 1000))
    def test_any(
        self,
        found: drain_plan.DrainedServer,
        allowed: drain_plan.Allowed,
        left_for_s: float,
    ) -> None:
        step = drain_plan.decide(found, allowed, left_for_s)
        # There is always a word for the administrator.
        self.assertTrue(step.why)
        # Nothing is tried twice, so that there is an end.
        self.assertNotIn(step.way, allowed.failed)
        if found.task is not None:
            self.assertIs(Way.WAIT, step.way)
        if step.way in (Way.LIVE, Way.COLD):
            self.assertTrue(found.is_here)
            self.assertIsNone(allowed.no_room)
            self.assertFalse(found.has_cyborgs_key)
        if step.way is Way.COLD and found.status != 'SHUTOFF':
            # No guest is shut down that was not to be, or could go live.
            self.assertTrue(allowed.cold)
            self.assertEqual('ACTIVE', found.status)
            self.assertIn(Way.LIVE, allowed.failed)
        if step.way is Way.CONFIRM:
            self.assertFalse(found.is_here)
            self.assertIs(Resize.OURS, found.resize)

    @hypothesis.given(_SERVERS, _ALLOWED)
    def test_every_wait_of_the_host_has_an_end(
        self, found: drain_plan.DrainedServer, allowed: drain_plan.Allowed
    ) -> None:
        """Only Nova's own tasks are waited for without an end here."""
        step = drain_plan.decide(found, allowed, drain_plan.LEFT_S)
        if step.way is Way.WAIT:
            self.assertTrue(
                found.task is not None
                or found.status in ('BUILD', 'VERIFY_RESIZE')
            )

    @hypothesis.given(_SERVERS, _ALLOWED)
    def test_refusals_come_to_an_end(
        self, found: drain_plan.DrainedServer, allowed: drain_plan.Allowed
    ) -> None:
        """A cloud that refuses everything is asked three times at most."""
        failed = dict(allowed.failed)
        for _attempt in range(4):
            step = drain_plan.decide(found, allowed._replace(failed=failed))
            if step.way not in (Way.LIVE, Way.COLD, Way.CONFIRM):
                return
            failed[step.way] = 'refused'
        self.fail('there is no end')

    def test_is_over(self) -> None:
        never = drain_plan.DrainStep(Way.NOT, 'why')
        self.assertTrue(drain_plan.is_over([never]))
        self.assertTrue(drain_plan.is_over([]))
        for step in set(Way) - {Way.NOT}:
            self.assertFalse(
                drain_plan.is_over([never, drain_plan.DrainStep(step, 'why')])
            )
