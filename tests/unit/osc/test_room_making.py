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

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from osc_lib import exceptions
import testtools

from nova_accel.model.fleet import drain_plan
from nova_accel.osc import drain_cloud
from nova_accel.osc import host_emptying
from nova_accel.osc import room_cloud
from nova_accel.osc import room_making

Way = drain_plan.Way

_HOLDING = drain_cloud.Holding(frozenset({'MDEV'}), frozenset({'gold'}))


def planned(server: str, source: str, target: str) -> dict[str, Any]:
    """A move as the API plans it."""
    return {
        'server_uuid': server,
        'from': source,
        'to': target,
        'devices': [],
    }


def resident(uuid: str, **fields: Any) -> room_cloud.Resident:
    """A server that can go live.

    :param fields: those of the server, and of the resident
    """
    of_resident = {
        name: fields.pop(name)
        for name in ('is_locked', 'is_pinned', 'is_split')
        if name in fields
    }
    server = drain_plan.DrainedServer(
        uuid, f'name of {uuid}', 'ACTIVE', None, True, True, False
    )
    return room_cloud.Resident(
        server._replace(**fields),
        'host',
        **{
            'is_locked': False,
            'is_pinned': False,
            'is_split': False,
            **of_resident,
        },
    )


class _Clock:
    """Time passes by sleeping."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: Callable[[], None] = lambda: None

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept()


class _Moves:
    """Some moves of a cloud, each of which takes a moment."""

    def __init__(self, cloud: '_Cloud', uuids: Iterable[str]) -> None:
        self._cloud = cloud
        self._uuids = [*uuids]

    def holdings(self) -> dict[str, drain_cloud.Holding]:
        return {
            uuid: _HOLDING
            for uuid in self._uuids
            if uuid not in self._cloud.gone
        }

    def no_room(self, profile: str) -> str | None:
        """There is."""

    def server(
        self, uuid: str, _holding: drain_cloud.Holding
    ) -> drain_plan.DrainedServer | None:
        return self._cloud.servers[uuid].server

    def act(self, uuid: str, way: Way) -> None:
        self._cloud.acted.append((uuid, way))
        self._cloud.change(uuid, task='migrating')

    def why_failed(self, uuid: str) -> str:
        return self._cloud.stuck[uuid]


class _Cloud:
    """The servers, and plans that are told one after the other.

    :ivar plans: the moves, or None; the last one is told again and again
    :ivar stuck: server -> why it does not move
    :ivar slow: servers whose moves do not end
    :ivar begun_before: servers whose moves have begun before
    :ivar gone: servers that have left
    :ivar asked: the troubles of each time that a plan was asked for
    :ivar acted: what was begun
    """

    def __init__(
        self,
        servers: Iterable[room_cloud.Resident],
        *plans: list[dict[str, Any]] | None,
    ) -> None:
        self.servers = {each.server.uuid: each for each in servers}
        self.plans = [*plans]
        self.stuck: dict[str, str] = {}
        self.slow: set[str] = set()
        self.begun_before: list[str] = []
        self.gone: set[str] = set()
        self.asked: list[tuple[str, int, Mapping[str, int]]] = []
        self.acted: list[tuple[str, Way]] = []
        self.steps: list[list[str]] = []
        self.is_proven = True

    def change(self, uuid: str, **fields: Any) -> None:
        found = self.servers[uuid]
        self.servers[uuid] = found._replace(
            server=found.server._replace(**fields)
        )

    def pass_time(self) -> None:
        """What has begun comes to its end."""
        for uuid, _way in self.acted:
            if uuid not in self.slow:
                self.change(uuid, task=None)
                if uuid not in self.stuck:
                    self.gone.add(uuid)

    def residents(self) -> dict[str, room_cloud.Resident]:
        return dict(self.servers)

    def plan(
        self, profile: str, count: int, troubles: Mapping[str, int]
    ) -> dict[str, Any]:
        self.asked.append((profile, count, troubles))
        moves = self.plans[0] if len(self.plans) == 1 else self.plans.pop(0)
        return {'moves': moves, 'is_proven': self.is_proven}

    def moves(self, planned: Iterable[Mapping[str, Any]]) -> _Moves:
        self.steps.append([move['server_uuid'] for move in planned])
        return _Moves(self, self.steps[-1])

    def begun(self) -> _Moves:
        return _Moves(self, self.begun_before)


class MakingTestCase(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.clock = _Clock()
        self.told: list[host_emptying.Progress] = []

    def making(
        self, cloud: _Cloud, concurrency: int = 2, **allowed: Any
    ) -> room_making.RoomMaking:
        self.clock.slept = cloud.pass_time
        return room_making.RoomMaking(
            cloud,
            'gold',
            3,
            room_making.Allowed(**allowed),
            concurrency=concurrency,
            clock=self.clock,
            sleep=self.clock.sleep,
        )

    def passed(self) -> float:
        return self.clock.now - 1000


class TestPlan(MakingTestCase):
    def staying(self, *residents: Any, **allowed: Any) -> dict[str, int]:
        """Why servers stay, and how many."""
        cloud = _Cloud(residents, None)
        found = self.making(cloud, **allowed).plan()
        [(_profile, _count, troubles)] = cloud.asked
        self.assertEqual(
            len(residents), len(troubles) + sum(found.staying.values())
        )
        return dict(found.staying)

    def test_what_the_api_is_asked(self) -> None:
        cloud = _Cloud(
            [
                resident('live'),
                resident('function', is_mediated=False),
                resident('stopped', status='SHUTOFF'),
                resident('busy', task='rebooting'),
            ],
            [],
        )
        self.making(cloud).plan()
        self.assertEqual(
            [('gold', 3, {'live': 1, 'function': 2, 'stopped': 0})],
            cloud.asked,
        )

    def test_the_moves(self) -> None:
        told = [
            planned('stopped', 'host', 'other'),
            planned('live', 'host', 'other'),
        ]
        stopped = resident('stopped', status='SHUTOFF')
        cloud = _Cloud([resident('live'), stopped], told)
        for is_proven in (True, False):
            cloud.is_proven = is_proven
            found = self.making(cloud).plan()
            self.assertIs(is_proven, found.is_proven)
            assert found.moves is not None
            self.assertEqual(told, [move.told for move in found.moves])
            self.assertEqual(
                [('cold', 'planned'), ('live', 'planned')],
                [(move.way, move.result) for move in found.moves],
            )
            self.assertEqual(stopped.server, found.moves[0].server)
        self.assertEqual([], cloud.acted)

    def test_no_moves(self) -> None:
        for moves, expected in ((None, None), ([], ())):
            cloud = _Cloud([resident('a')], moves)
            self.assertEqual(expected, self.making(cloud).plan().moves)

    def test_locked(self) -> None:
        locked = resident('a', is_locked=True)
        [(why, number)] = self.staying(locked).items()
        self.assertEqual(1, number)
        self.assertIn('--locked', why)
        self.assertEqual({}, self.staying(locked, locked=True))

    def test_pinned(self) -> None:
        pinned = resident('a', is_pinned=True)
        [why] = self.staying(pinned)
        self.assertIn('nova_accel:pinned', why)
        self.assertIn('--pinned', why)
        self.assertEqual({}, self.staying(pinned, pinned=True))

    def test_kept(self) -> None:
        """In any case."""
        kept = resident('a', is_locked=True, is_pinned=True)
        self.assertEqual(
            {'--keep names it': 1},
            self.staying(
                kept,
                resident('b'),
                locked=True,
                pinned=True,
                kept=frozenset({'a', 'unknown'}),
            ),
        )

    def test_locked_and_pinned(self) -> None:
        """Each option is for one of them."""
        both = resident('a', is_locked=True, is_pinned=True)
        self.assertEqual(1, len(self.staying(both, locked=True)))
        self.assertEqual(1, len(self.staying(both, pinned=True)))
        self.assertEqual({}, self.staying(both, locked=True, pinned=True))

    def test_how_many_stay(self) -> None:
        found = self.staying(
            resident('a', is_locked=True),
            resident('b', is_locked=True),
            resident('c', status='SUSPENDED'),
            resident('d'),
        )
        self.assertEqual([1, 2], sorted(found.values()))

    def test_early(self) -> None:
        """Nova does something, or a host has still to give devices back."""
        for is_early, fields in (
            (True, {'task': 'rebooting'}),
            (True, {'task': 'migrating'}),
            (True, {'status': 'BUILD'}),
            (True, {'is_split': True}),
            (False, {'status': 'SUSPENDED'}),
            (False, {}),
            # It stays whatever Nova does.
            (False, {'task': 'rebooting', 'is_locked': True}),
            (False, {'is_split': True, 'is_pinned': True}),
        ):
            cloud = _Cloud([resident('a', **fields), resident('b')], None)
            self.assertIs(is_early, self.making(cloud).plan().is_early)

    def test_split(self) -> None:
        [why] = self.staying(resident('a', is_split=True))
        self.assertIn('another host', why)


class TestRun(MakingTestCase):
    def run_making(
        self, cloud: _Cloud, timeout_s: float = 3600, **kwargs: Any
    ) -> tuple[room_making.RoomMaking, Any]:
        making = self.making(cloud, **kwargs)
        return making, making.run(timeout_s, self.told.append)

    def results(
        self, making: room_making.RoomMaking
    ) -> list[tuple[str, str, str]]:
        return [
            (move.server.uuid, move.way, move.result) for move in making.done
        ]

    def test_there_is_room(self) -> None:
        cloud = _Cloud([resident('a', task='rebooting')], [])
        making, left = self.run_making(cloud)
        self.assertEqual((), left.moves)
        self.assertEqual([], making.done)
        self.assertEqual((0, 1), (self.passed(), len(cloud.asked)))

    def test_no_moves_make_room(self) -> None:
        cloud = _Cloud([resident('a', status='SUSPENDED')], None)
        _making, left = self.run_making(cloud)
        self.assertIsNone(left.moves)
        self.assertEqual((0, 1), (self.passed(), len(cloud.asked)))

    def test_servers_move(self) -> None:
        cloud = _Cloud(
            [resident('a'), resident('b', status='SHUTOFF')],
            [planned('a', 'h1', 'h3'), planned('b', 'h2', 'h3')],
            [],
        )
        making, left = self.run_making(cloud)
        self.assertEqual((), left.moves)
        self.assertEqual(
            [('a', 'live', 'moved'), ('b', 'cold', 'moved')],
            self.results(making),
        )
        self.assertEqual([('a', Way.LIVE), ('b', Way.COLD)], cloud.acted)
        self.assertEqual(2, self.told[-1].left)

    def test_the_rest_is_planned_again(self) -> None:
        """A move waits for the one before it, and may be another one then."""
        cloud = _Cloud(
            [resident('a'), resident('b'), resident('c')],
            [planned('a', 'h1', 'h2'), planned('b', 'h3', 'h1')],
            [planned('c', 'h3', 'h1')],
            [],
        )
        making, _left = self.run_making(cloud)
        self.assertEqual([['a'], ['c'], []], cloud.steps)
        self.assertEqual(3, len(cloud.asked))
        self.assertEqual(
            [('a', 'live', 'moved'), ('c', 'live', 'moved')],
            self.results(making),
        )

    def test_as_many_at_a_time_as_are_allowed(self) -> None:
        for concurrency, expected in ((1, 3), (2, 2), (3, 1)):
            cloud = _Cloud(
                [resident(name) for name in 'abc'],
                [planned(name, 'h1', 'h2') for name in 'abc'],
                [],
            )
            self.clock.now = 1000
            self.run_making(cloud, concurrency=concurrency)
            self.assertEqual(expected * 2, self.passed())

    def test_a_busy_server_is_waited_for(self) -> None:
        cloud = _Cloud([resident('a', task='rebooting')], None)
        making = self.making(cloud)

        def settle() -> None:
            if self.passed() == 10:
                cloud.change('a', task=None)
                cloud.plans = [[planned('a', 'h1', 'h2')], []]
            cloud.pass_time()

        self.clock.slept = settle
        self.assertEqual((), making.run(3600, self.told.append).moves)
        self.assertEqual([('a', 'live', 'moved')], self.results(making))
        self.assertEqual({}, cloud.asked[0][2])
        self.assertEqual({'a': 1}, cloud.asked[-2][2])

    def test_its_end_is_not_enough(self) -> None:
        """Then there is nothing more to wait for."""
        cloud = _Cloud([resident('a', task='rebooting')], None)
        making = self.making(cloud)

        def settle() -> None:
            if self.passed() == 10:
                cloud.change('a', task=None)

        self.clock.slept = settle
        self.assertIsNone(making.run(3600, self.told.append).moves)
        self.assertEqual(10, self.passed())

    def test_a_busy_server_is_waited_for_no_longer_than_a_minute(
        self,
    ) -> None:
        cloud = _Cloud([resident('a', task='rebooting')], None)
        _making, left = self.run_making(cloud)
        self.assertIsNone(left.moves)
        self.assertTrue(left.is_early)
        self.assertEqual(60, self.passed())

    def test_a_busy_server_is_waited_for_until_the_time_is_over(self) -> None:
        cloud = _Cloud([resident('a', task='rebooting')], None)
        _making, left = self.run_making(cloud, timeout_s=10)
        self.assertIsNone(left.moves)
        self.assertEqual(10, self.passed())

    def test_a_busy_server_is_not_waited_for_if_others_make_room(
        self,
    ) -> None:
        cloud = _Cloud(
            [resident('a'), resident('busy', task='rebooting')],
            [planned('a', 'h1', 'h2')],
            [],
        )
        making, _left = self.run_making(cloud)
        self.assertEqual([('a', 'live', 'moved')], self.results(making))
        self.assertEqual(2, self.passed())

    def test_a_server_that_does_not_move(self) -> None:
        """It is not asked to move again, and another plan is made."""
        cloud = _Cloud(
            [resident('a'), resident('b')],
            [planned('a', 'h1', 'h2')],
            [planned('b', 'h1', 'h2')],
            [],
        )
        cloud.stuck['a'] = 'no driver'
        making, left = self.run_making(cloud)
        self.assertEqual((), left.moves)
        self.assertEqual(
            [('a', 'not at all', 'remains'), ('b', 'live', 'moved')],
            self.results(making),
        )
        self.assertIn('no driver', making.done[0].why)
        self.assertEqual('', making.done[1].why)
        self.assertEqual(
            [{'a': 1, 'b': 1}, {'b': 1}, {'b': 1}],
            [troubles for _profile, _count, troubles in cloud.asked],
        )
        self.assertEqual([('a', Way.LIVE), ('b', Way.LIVE)], cloud.acted)

    def test_why_a_server_has_not_moved_is_why_it_stays(self) -> None:
        cloud = _Cloud([resident('a')], [planned('a', 'h1', 'h2')], None)
        cloud.stuck['a'] = 'no driver'
        making, left = self.run_making(cloud)
        self.assertIsNone(left.moves)
        [(why, number)] = left.staying.items()
        self.assertIn('no driver', why)
        self.assertEqual(1, number)
        self.assertEqual(why, making.done[0].why)

    def test_cold_if_it_does_not_go_live(self) -> None:
        cloud = _Cloud([resident('a')], [planned('a', 'h1', 'h2')], [])
        cloud.stuck['a'] = 'no driver'
        making = self.making(cloud, cold=True)

        def settle() -> None:
            if cloud.acted[-1][1] is Way.COLD:
                cloud.stuck.clear()
            cloud.pass_time()

        self.clock.slept = settle
        making.run(3600, self.told.append)
        self.assertEqual([('a', Way.LIVE), ('a', Way.COLD)], cloud.acted)
        self.assertEqual([('a', 'cold', 'moved')], self.results(making))

    def test_one_that_has_left_before(self) -> None:
        cloud = _Cloud([resident('a')], [planned('a', 'h1', 'h2')], [])
        cloud.gone.add('a')
        making, _left = self.run_making(cloud)
        self.assertEqual([('a', 'live', 'moved')], self.results(making))
        self.assertEqual('', making.done[0].why)
        self.assertEqual([], cloud.acted)

    def test_the_time_is_over(self) -> None:
        """A move that goes on is told, and what is left of the plan."""
        cloud = _Cloud(
            [resident('a'), resident('b')],
            [planned('a', 'h1', 'h2'), planned('b', 'h3', 'h1')],
            [planned('b', 'h3', 'h1')],
        )
        cloud.slow.add('a')
        making, left = self.run_making(cloud, timeout_s=20)
        self.assertEqual(20, self.passed())
        self.assertEqual([('a', 'live', 'remains')], self.results(making))
        self.assertIn('goes on', making.done[0].why)
        self.assertEqual(['b'], [move.server.uuid for move in left.moves])
        self.assertEqual([('a', Way.LIVE)], cloud.acted)

    def test_what_has_begun_before_is_waited_for_first(self) -> None:
        cloud = _Cloud(
            [resident('old', task='migrating'), resident('a')],
            [planned('a', 'h1', 'h2')],
            [],
        )
        cloud.begun_before.append('old')
        making = self.making(cloud)

        def settle() -> None:
            if self.passed() == 100:
                cloud.gone.add('old')
                del cloud.servers['old']
            cloud.pass_time()

        self.clock.slept = settle
        making.run(3600, self.told.append)
        self.assertEqual([('gold', 3, {'a': 1})] * 2, cloud.asked)
        self.assertEqual([('a', 'live', 'moved')], self.results(making))
        self.assertEqual(102, self.passed())

    def test_the_minute_begins_when_that_has_ended(self) -> None:
        cloud = _Cloud(
            [resident('old', task='migrating'), resident('a', status='BUILD')],
            None,
        )
        cloud.begun_before.append('old')
        making = self.making(cloud)

        def settle() -> None:
            if self.passed() == 100:
                cloud.gone.add('old')
                del cloud.servers['old']

        self.clock.slept = settle
        making.run(3600, self.told.append)
        self.assertEqual(160, self.passed())

    def test_the_api_is_in_trouble(self) -> None:
        class Away(_Cloud):
            def plan(self, *_arguments: Any) -> dict[str, Any]:
                raise exceptions.CommandError('away')

        self.assertRaises(
            exceptions.CommandError, self.run_making, Away([resident('a')])
        )


class TestFirstMoves(testtools.TestCase):
    def first(self, *pairs: str) -> int:
        """How many of the moves can be made at once.

        :param pairs: the source and the target of each
        """
        moves = [
            room_making.PlannedMove(
                resident(str(number)).server,
                planned(str(number), pair[0], pair[1]),
                'live',
                '',
            )
            for number, pair in enumerate(pairs)
        ]
        found = room_making.first_moves(moves)
        self.assertEqual(moves[: len(found)], found)
        return len(found)

    def test_no_moves(self) -> None:
        self.assertEqual(0, self.first())

    def test_those_that_need_not_wait(self) -> None:
        self.assertEqual(3, self.first('ab', 'ab', 'cd'))
        # What comes to a host makes no room there.
        self.assertEqual(2, self.first('ab', 'bc'))

    def test_one_needs_the_room_of_an_earlier_one(self) -> None:
        self.assertEqual(1, self.first('ab', 'ca'))
        self.assertEqual(2, self.first('ab', 'cd', 'ea'))
        # Those after it are left for the next plan.
        self.assertEqual(1, self.first('ab', 'ca', 'de'))
