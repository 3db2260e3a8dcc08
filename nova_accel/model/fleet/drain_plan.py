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

"""How the servers of a drained host leave it: live, cold or not at all."""

from collections.abc import Collection
from collections.abc import Mapping
import enum
from typing import NamedTuple

#: Seconds that a host has to give devices back that no one needs there: by
#: default, it compares what it has each 300 s.
LEFT_S = 700

#: The tasks by which Nova moves a server.
_MOVING = frozenset(
    {
        'migrating',
        'resize_prep',
        'resize_migrating',
        'resize_migrated',
        'resize_finish',
    }
)


class Way(enum.StrEnum):
    """The next step with a server."""

    LIVE = 'live'
    COLD = 'cold'
    #: Its cold migration is confirmed, so that it leaves for good.
    CONFIRM = 'confirm'
    WAIT = 'wait'
    NOT = 'not at all'


class Resize(enum.Enum):
    """The resize or cold migration of a server that left the host."""

    #: There is none, or it is over.
    NONE = enum.auto()
    #: A cold migration that has begun since the host is drained.
    OURS = enum.auto()
    #: It is being confirmed or reverted.
    ENDING = enum.auto()
    #: Somebody else has to confirm or revert it.
    OTHERS = enum.auto()


class DrainedServer(NamedTuple):
    """A server that has devices of the host, as Nova and the API know it.

    ``is_here`` says that Nova has it on the host. ``is_mediated`` says that
    all its devices are mediated, so that it can be migrated live if the
    vendor's driver can. Only an attempt shows whether another device can.
    ``has_cyborgs_key`` is for a server that has them by Cyborg's flavor key.
    ``alternatives`` are the device profiles that its flavor names.
    """

    uuid: str
    name: str
    status: str
    task: str | None
    is_here: bool
    is_mediated: bool
    has_cyborgs_key: bool
    resize: Resize = Resize.NONE
    alternatives: tuple[str, ...] = ()

    @property
    def is_moving(self) -> bool:
        return self.task in _MOVING


class Allowed(NamedTuple):
    """The ways that the administrator and the cloud allow for a server.

    ``cold`` says that a running guest may be shut down, and booted on another
    host. ``no_room`` says why no other host can have it, None if one may.
    ``failed`` are the ways that were tried in vain, with Nova's words.
    """

    cold: bool
    no_room: str | None = None
    failed: Mapping[Way, str] = {}


class DrainStep(NamedTuple):
    """A way, and why it is taken."""

    way: Way
    why: str


#: Status -> what its owner or an administrator can do.
_CURES: Mapping[str, str] = {
    'SUSPENDED': 'resume it, or shelve it',
    'RESCUE': 'unrescue it',
    'ERROR': 'mend it, for example by a hard reboot, or delete it',
    'SHELVED': 'offload it: openstack server shelve --offload',
    'SOFT_DELETED': 'delete it for good, or restore it',
}


def decide(
    server: DrainedServer | None, allowed: Allowed, left_for_s: float = 0
) -> DrainStep:
    """The next step with a server that has devices of the host.

    :param server: None if Nova has no such server
    :param left_for_s: for how long its devices alone have been left there
    """
    if server is None:
        return _left('Nova has no such server', left_for_s)
    if server.task is not None:
        what = 'it is being moved' if server.is_moving else 'busy'
        return DrainStep(Way.WAIT, f'{what}: {server.task}')
    if server.status == 'BUILD':
        return DrainStep(Way.WAIT, 'it is being built')
    if not server.is_here:
        return _elsewhere(server, allowed, left_for_s)
    if server.has_cyborgs_key:
        return DrainStep(
            Way.NOT,
            "Nova migrates no server that has Cyborg's flavor key: shelve it "
            'and unshelve it',
        )
    step = _here(server, allowed)
    if allowed.no_room is not None and step.way in (Way.LIVE, Way.COLD):
        return DrainStep(Way.NOT, allowed.no_room)
    return step


def trouble(server: DrainedServer, step: DrainStep) -> int | None:
    """How much trouble the step gives, None if the server does not move.

    A stopped server gives least, and one of which only an attempt shows
    whether it goes live gives most.
    """
    if step.way is Way.COLD:
        return 0
    if step.way is Way.LIVE:
        return 1 if server.is_mediated else 2
    return None


def is_over(steps: Collection[DrainStep]) -> bool:
    """Whether nothing more can be done for any of the servers."""
    return all(step.way is Way.NOT for step in steps)


def _left(what: str, left_for_s: float) -> DrainStep:
    if left_for_s < LEFT_S:
        return DrainStep(
            Way.WAIT, f'{what}: its host gives the devices back soon'
        )
    return DrainStep(
        Way.NOT,
        f'{what}, and its host does not give the devices back: '
        '"nova-accel-manage audit" says more',
    )


def _elsewhere(
    server: DrainedServer, allowed: Allowed, left_for_s: float
) -> DrainStep:
    """The step of a server that has left, and whose devices have not."""
    if server.status != 'VERIFY_RESIZE':
        return _left('it is on another host', left_for_s)
    if server.resize in (Resize.NONE, Resize.ENDING):
        return DrainStep(
            Way.WAIT, 'its migration is being confirmed or reverted'
        )
    if server.resize is Resize.OTHERS:
        return DrainStep(Way.NOT, _OTHERS)
    if Way.CONFIRM in allowed.failed:
        return DrainStep(
            Way.NOT, f'it is not confirmed: {allowed.failed[Way.CONFIRM]}'
        )
    return DrainStep(Way.CONFIRM, 'it runs on another host')


_OTHERS = (
    'its resize or migration is not ended: its owner has to confirm or revert '
    'it'
)


def _here(server: DrainedServer, allowed: Allowed) -> DrainStep:
    if server.status in ('ACTIVE', 'PAUSED'):
        return _running(server, allowed)
    if server.status == 'SHUTOFF':
        return _cold(allowed, 'it is stopped')
    if server.status == 'VERIFY_RESIZE':
        return DrainStep(Way.NOT, _OTHERS)
    cure = _CURES.get(server.status)
    return DrainStep(
        Way.NOT,
        f'it is {server.status}' + ('' if cure is None else f': {cure}'),
    )


def _running(server: DrainedServer, allowed: Allowed) -> DrainStep:
    refusal = allowed.failed.get(Way.LIVE)
    if refusal is None and not server.is_mediated:
        return DrainStep(
            Way.LIVE,
            'if the host\'s driver of its PCI devices can; otherwise '
            + ('cold' if _may_go_cold(server, allowed) else 'not at all'),
        )
    if refusal is None:
        return DrainStep(Way.LIVE, 'its mediated devices go along')
    if server.status == 'PAUSED':
        return DrainStep(
            Way.NOT,
            f'it does not go live: {refusal}; it can go cold when it is '
            'unpaused',
        )
    if not allowed.cold:
        return DrainStep(
            Way.NOT,
            f'it does not go live: {refusal}; with --cold its guest is shut '
            'down, and boots on another host',
        )
    return _cold(allowed, f'it does not go live: {refusal}')


def _may_go_cold(server: DrainedServer, allowed: Allowed) -> bool:
    return allowed.cold and server.status == 'ACTIVE'


def _cold(allowed: Allowed, why: str) -> DrainStep:
    refusal = allowed.failed.get(Way.COLD)
    if refusal is None:
        return DrainStep(Way.COLD, why)
    return DrainStep(Way.NOT, f'it does not go cold: {refusal}')
