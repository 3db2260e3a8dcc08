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

"""Empty a drained host: move its servers, a few at a time.

All that is known of a server is read from Nova again and again. So a run that
is cut short is continued by the next one.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
from typing import NamedTuple
from typing import Protocol

from keystoneauth1 import exceptions as ks_exceptions
from osc_lib import exceptions

from nova_accel.model.fleet import drain_plan
from nova_accel.osc import drain_cloud
from nova_accel.osc import nova_calls

Way = drain_plan.Way

#: Faults of reading from Nova or the API. The next look may succeed.
TROUBLE = (exceptions.CommandError, ks_exceptions.ClientException)

_POLL_S = 2.0

_GOES_ON = 'it goes on: run the command again to see the end'


class Cloud(Protocol):
    """The calls that are needed: :class:`drain_cloud.DrainCloud`."""

    def holdings(self) -> dict[str, drain_cloud.Holding]: ...

    def no_room(self, profile: str) -> str | None: ...

    def server(
        self, uuid: str, holding: drain_cloud.Holding
    ) -> drain_plan.DrainedServer | None: ...

    def act(self, uuid: str, way: Way) -> None: ...

    def why_failed(self, uuid: str) -> str: ...


class ServerRow(NamedTuple):
    """A server, and how it leaves the host, has left it or why it has not.

    ``is_left`` says that it has no devices of the host any more.
    """

    uuid: str
    name: str
    status: str
    way: str
    is_left: bool
    why: str


class Progress(NamedTuple):
    """How many servers have left, of how many, and what goes on."""

    left: int
    total: int
    now: str


@dataclasses.dataclass
class _Memory:
    """The knowledge of one run of one server.

    ``failed`` are the ways that were tried in vain, ``going`` the one that
    goes on, ``done`` the last one that led away. ``left_since`` is when its
    devices were first seen to be there without it.
    """

    holding: drain_cloud.Holding
    step: drain_plan.DrainStep
    server: drain_plan.DrainedServer | None = None
    failed: dict[Way, str] = dataclasses.field(default_factory=dict)
    going: Way | None = None
    done: Way | None = None
    left_since: float | None = None
    is_gone: bool = False

    def leave(self, way: Way) -> None:
        """Note that it left in this way. A confirmed move was a cold one."""
        self.done = Way.COLD if way is Way.CONFIRM else way
        self.going = None


class HostEmptying:
    """One run.

    :param allows_cold: whether guests that run and do not go live are shut
        down, and booted on other hosts
    :param concurrency: how many servers move at a time
    :param clock: seconds, as ``time.monotonic`` has them
    """

    def __init__(
        self,
        cloud: Cloud,
        *,
        allows_cold: bool = False,
        concurrency: int = 2,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._cloud = cloud
        self._allows_cold = allows_cold
        self._concurrency = concurrency
        self._clock = clock
        self._sleep = sleep
        self._known: dict[str, _Memory] = {}
        self._rooms: dict[str, str | None] = {}

    def look(self) -> list[ServerRow]:
        """See which servers have devices of the host, and decide for each.

        :raises CommandError, ClientException: Nova or the API is in trouble.
        """
        holdings = self._cloud.holdings()
        for uuid, known in self._known.items():
            known.is_gone = uuid not in holdings
            if known.is_gone and known.going is not None:
                known.leave(known.going)
        for uuid, holding in holdings.items():
            self._look_at(uuid, holding)
        return self.rows()

    def run(
        self, timeout_s: float, tell: Callable[[Progress], None]
    ) -> list[ServerRow]:
        """Move the servers until none is left that could be moved.

        :param timeout_s: after so many seconds the rest is left as it is
        :param tell: called after each look
        :raises CommandError, ClientException: Nova or the API was in trouble
            all the time.
        """
        end = self._clock() + timeout_s
        while True:
            trouble = None
            try:
                self.look()
                self._begin()
            except TROUBLE as error:
                trouble = error
            tell(self._progress(trouble))
            if trouble is None and drain_plan.is_over(
                [known.step for known in self._left()]
            ):
                return self.rows()
            if self._clock() >= end:
                if trouble is not None and not self._known:
                    raise trouble
                return self.rows()
            self._sleep(_POLL_S)

    def rows(self) -> list[ServerRow]:
        """All servers that have been seen, those that remain at the end."""
        return sorted(
            (_row(uuid, known) for uuid, known in self._known.items()),
            key=lambda row: (not row.is_left, row.name, row.uuid),
        )

    def _left(self) -> list[_Memory]:
        return [known for known in self._known.values() if not known.is_gone]

    def _look_at(self, uuid: str, holding: drain_cloud.Holding) -> None:
        server = self._cloud.server(uuid, holding)
        known = self._known.get(uuid)
        if known is None:
            known = self._known[uuid] = _Memory(
                holding, drain_plan.DrainStep(Way.WAIT, '')
            )
        known.server, known.holding = server, holding
        if known.going is not None:
            self._follow(uuid, known, known.going)
        if (server is None or not server.is_here) and known.going is None:
            known.left_since = known.left_since or self._clock()
        else:
            known.left_since = None
        known.step = drain_plan.decide(
            server,
            drain_plan.Allowed(
                self._allows_cold, self._no_room(server, holding), known.failed
            ),
            0
            if known.left_since is None
            else self._clock() - known.left_since,
        )

    def _follow(self, uuid: str, known: _Memory, way: Way) -> None:
        """See whether what was begun has ended, and how."""
        server = known.server
        if server is None:
            known.going = None
        elif server.task is not None:
            return
        elif way is Way.CONFIRM:
            if server.status != 'VERIFY_RESIZE':
                known.going = None
        elif not server.is_here:
            known.leave(way)
        else:
            known.failed[way] = self._cloud.why_failed(uuid)
            known.going = None

    def _no_room(
        self,
        server: drain_plan.DrainedServer | None,
        holding: drain_cloud.Holding,
    ) -> str | None:
        """Why no other host can have it; each profile is asked for once."""
        if server is None:
            return None
        for profile in sorted(holding.profiles):
            names = [profile, *server.alternatives]
            for name in names:
                if name not in self._rooms:
                    self._rooms[name] = self._cloud.no_room(name)
                if self._rooms[name] is None:
                    break
            else:
                return self._rooms[profile]
        return None

    def _begin(self) -> None:
        """Begin as many moves as may go on at a time, and all confirmations.

        :raises CommandError, ClientException: Nova is in trouble.
        """
        moving = sum(
            known.going in (Way.LIVE, Way.COLD)
            or (known.server is not None and known.server.is_moving)
            for known in self._left()
        )
        for uuid, known in self._known.items():
            way = known.step.way
            if known.is_gone or known.going is not None:
                continue
            if way in (Way.LIVE, Way.COLD):
                if moving >= self._concurrency:
                    continue
                moving += self._act(uuid, known, way)
            elif way is Way.CONFIRM:
                self._act(uuid, known, way)

    def _act(self, uuid: str, known: _Memory, way: Way) -> bool:
        """Begin it; False if Nova refuses, and the server is not moving.

        Somebody else, who drains the host too, may have begun since the last
        look. Then Nova refuses because of that, and this way is not in vain:
        the server is waited for.

        :raises CommandError, ClientException: Nova is in trouble.
        """
        try:
            self._cloud.act(uuid, way)
        except nova_calls.Refused as error:
            self._look_at(uuid, known.holding)
            if known.step.way is way:
                known.failed[way] = str(error)
            return known.server is not None and known.server.is_moving
        known.going = way
        return True

    def _progress(self, trouble: Exception | None) -> Progress:
        left = sum(known.is_gone for known in self._known.values())
        if trouble is not None:
            now = f'trying again: {nova_calls.words(trouble)}'
        else:
            going = sorted(
                f'{known.server.name} ({known.going})'
                for known in self._left()
                if known.going is not None and known.server is not None
            )
            now = ', '.join(going)
        return Progress(left, len(self._known), now)


def _row(uuid: str, known: _Memory) -> ServerRow:
    server = known.server
    name = '' if server is None else server.name
    if known.is_gone:
        way = '' if known.done is None else str(known.done)
        return ServerRow(uuid, name, '', way, True, '')
    status = '' if server is None else server.status
    if known.going is not None:
        return ServerRow(uuid, name, status, str(known.going), False, _GOES_ON)
    return ServerRow(
        uuid, name, status, str(known.step.way), False, known.step.why
    )


def remaining(rows: list[ServerRow]) -> Mapping[str, str]:
    """Uuid -> why, of each server that still has devices of the host."""
    return {row.uuid: row.why for row in rows if not row.is_left}
