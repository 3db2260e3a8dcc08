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


"""Make room for servers: plan, move some servers, and plan again.

Nothing is remembered but which servers did not move. So a run that is cut
short is continued by the next one, and a cloud that changes gets another plan.
"""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any
from typing import NamedTuple
from typing import Protocol

from nova_accel.model.fleet import drain_plan
from nova_accel.osc import host_emptying
from nova_accel.osc import room_cloud

#: Seconds after the last move in which an API may be in trouble, or servers
#: with which Nova does something may be needed. A busy cloud always has some.
_PATIENCE_S = 60.0

_POLL_S = 2.0


class Cloud(Protocol):
    """The calls that are needed: :class:`room_cloud.RoomCloud`."""

    def residents(self) -> dict[str, room_cloud.Resident]: ...

    def plan(
        self, profile: str, count: int, troubles: Mapping[str, int]
    ) -> dict[str, Any]: ...

    def moves(
        self, planned: Iterable[Mapping[str, Any]]
    ) -> host_emptying.Cloud: ...

    def begun(self) -> host_emptying.Cloud: ...


class Allowed(NamedTuple):
    """The servers that the administrator lets move, and how.

    ``cold`` is as in :class:`drain_plan.Allowed`. ``kept`` are the uuids of
    servers that stay in any case.
    """

    cold: bool = False
    locked: bool = False
    pinned: bool = False
    kept: frozenset[str] = frozenset()


class PlannedMove(NamedTuple):
    """A move, as it is planned or has ended.

    ``told`` is the move as the API has planned it.
    """

    server: drain_plan.DrainedServer
    told: Mapping[str, Any]
    way: str
    why: str
    result: str = 'planned'


class PlannedRoom(NamedTuple):
    """The moves, None if none make room; and why servers stay.

    ``is_proven`` says that no fewer moves are enough, or that none are.
    ``staying`` has why -> how many servers. ``is_early`` says that Nova does
    something with one of these now.
    """

    moves: tuple[PlannedMove, ...] | None
    is_proven: bool
    staying: Mapping[str, int]
    is_early: bool


class RoomMaking:
    """One run of a command.

    :param cloud: both APIs
    :param profile: name or uuid of the device profile
    :param count: of servers that need room
    """

    def __init__(
        self,
        cloud: Cloud,
        profile: str,
        count: int,
        allowed: Allowed,
        *,
        concurrency: int = 2,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._cloud = cloud
        self._profile = profile
        self._count = count
        self._allowed = allowed
        self._concurrency = concurrency
        self._clock = clock
        self._sleep = sleep
        # Uuid -> why the server did not move.
        self._failed: dict[str, str] = {}
        #: The moves that have ended, in one way or the other.
        self.done: list[PlannedMove] = []

    def run(
        self, timeout_s: float, tell: Callable[[host_emptying.Progress], None]
    ) -> PlannedRoom:
        """Move servers until there is room, or nothing more can be done.

        Moves that the same user has begun before are waited for.

        :param timeout_s: after so many seconds the rest is left as it is
        :param tell: called after each look
        :returns: the plan that is left; it has no moves if there is room
        :raises CommandError, ClientException: an API is in trouble.
        """
        end = self._clock() + timeout_s
        self._move(self._cloud.begun(), end, tell)
        patient_until = min(end, self._clock() + _PATIENCE_S)
        while True:
            is_patient = self._clock() < patient_until
            try:
                plan = self.plan()
                now = first_moves(plan.moves or ())
                moves = self._cloud.moves(move.told for move in now)
            except host_emptying.TROUBLE:
                # A mistyped command is refused at once.
                if not (is_patient and self.done):
                    raise
                self._sleep(_POLL_S)
                continue
            if plan.moves is None and plan.is_early and is_patient:
                self._sleep(_POLL_S)
                continue
            if not plan.moves or self._clock() >= end:
                return plan
            rows = self._move(moves, end, tell)
            patient_until = min(end, self._clock() + _PATIENCE_S)
            self._failed |= host_emptying.remaining(rows)
            ended = {row.uuid: row for row in rows}
            self.done += [
                _ended(move, ended.get(move.server.uuid)) for move in now
            ]

    def _move(
        self,
        moves: host_emptying.Cloud,
        end: float,
        tell: Callable[[host_emptying.Progress], None],
    ) -> list[host_emptying.ServerRow]:
        return host_emptying.HostEmptying(
            moves,
            allows_cold=self._allowed.cold,
            concurrency=self._concurrency,
            clock=self._clock,
            sleep=self._sleep,
        ).run(end - self._clock(), tell)

    def plan(self) -> PlannedRoom:
        """The moves that make room now.

        :raises CommandError, ClientException: an API is in trouble.
        """
        residents = self._cloud.residents()
        steps = {uuid: self._step(each) for uuid, each in residents.items()}
        troubles = {
            uuid: trouble
            for uuid, step in steps.items()
            if (trouble := drain_plan.trouble(residents[uuid].server, step))
            is not None
        }
        found = self._cloud.plan(self._profile, self._count, troubles)
        moves = None
        if found['moves'] is not None:
            moves = tuple(
                PlannedMove(residents[uuid].server, move, *steps[uuid])
                for move in found['moves']
                for uuid in [move['server_uuid']]
            )
        return PlannedRoom(
            moves,
            found['is_proven'],
            collections.Counter(
                steps[uuid].why for uuid in steps.keys() - troubles.keys()
            ),
            any(step.way is drain_plan.Way.WAIT for step in steps.values()),
        )

    def _step(self, resident: room_cloud.Resident) -> drain_plan.DrainStep:
        why = self._why_not(resident)
        if why is not None:
            return drain_plan.DrainStep(drain_plan.Way.NOT, why)
        if resident.is_split:
            return drain_plan.DrainStep(
                drain_plan.Way.WAIT, 'it has devices of another host, too'
            )
        return drain_plan.decide(
            resident.server, drain_plan.Allowed(self._allowed.cold)
        )

    def _why_not(self, resident: room_cloud.Resident) -> str | None:
        uuid = resident.server.uuid
        if uuid in self._allowed.kept:
            return '--keep names it'
        if resident.is_locked and not self._allowed.locked:
            return 'it is locked: --locked lets it move'
        if resident.is_pinned and not self._allowed.pinned:
            return (
                f'its metadata has {room_cloud.PINNED}: --pinned lets it move'
            )
        return self._failed.get(uuid)


def first_moves(moves: Sequence[PlannedMove]) -> list[PlannedMove]:
    """The moves that need not wait for others that come before them."""
    found: list[PlannedMove] = []
    left: set[str] = set()
    for move in moves:
        if move.told['to'] in left:
            break
        left.add(move.told['from'])
        found.append(move)
    return found


def _ended(
    move: PlannedMove, row: host_emptying.ServerRow | None
) -> PlannedMove:
    """A move, and how it has ended.

    :param row: None if the server had left before
    """
    if row is None:
        return move._replace(result='moved', why='')
    return move._replace(
        way=row.way or move.way,
        result='moved' if row.is_left else 'remains',
        why=row.why,
    )
