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


"""Where what is held of accelerators has drifted from what Nova knows.

Nova has operations that fail without a word to the driver. What they leave is
found by comparing; what may be under way is never touched.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import enum

from nova_accel.model import arq
from nova_accel.model import binding as binding_model

Binding = binding_model.Binding

#: The states of Nova's migrations that can still end in one way or another.
#: "finished" waits for its owner to confirm or revert it.
UNFINISHED = frozenset({
    'accepted', 'queued', 'preparing', 'pre-migrating', 'migrating',
    'running', 'running (post-copy)', 'post-migrating', 'finished',
    'confirming', 'reverting'})

#: Those of a live migration.
LIVE = frozenset({
    'accepted', 'queued', 'preparing', 'running', 'running (post-copy)'})

#: Nova's ``vm_state`` from the record of an instance to its first guest.
_BUILDING = 'building'

#: Its ``task_state`` until the source of a reverted resize has it again.
_REVERTING = 'resize_reverting'


@dataclasses.dataclass(frozen=True)
class Server:
    """An instance of Nova's that exists.

    ``host`` is the service host that it is on, None if it is on none;
    ``is_migrating`` says that a migration of it is unfinished; ``is_resized``
    that Nova remembers the flavor that it had before.
    """

    host: str | None
    vm_state: str | None = None
    task_state: str | None = None
    is_migrating: bool = False
    is_resized: bool = False

    @property
    def is_busy(self) -> bool:
        """Whether an operation of it is under way."""
        return self.task_state is not None or self.vm_state == _BUILDING


class Step(enum.Enum):
    """What a host does about a binding."""

    #: Give back what the journal has.
    RELEASE = 'given back'
    #: Give back what only the API has.
    TAKE_BACK = 'given back, which the journal did not know'
    #: Delete what Nova's own Cyborg client has bound.
    DELETE = 'deleted'
    #: Note in the journal what only the API has.
    RECOVER = 'noted in the journal again'
    #: Make it that of the guest.
    ACTIVATE = 'made active'
    #: Nothing can be done here; say so.
    TELL = 'left, somebody has to look'


@dataclasses.dataclass(frozen=True)
class Repair:
    """One step, and the reason for it."""

    step: Step
    binding: Binding
    why: str


def leak(role: arq.Role | None, server: Server | None,
         host: str) -> str | None:
    """Why nobody needs what is held on a host in a role; None: they may.

    :param role: None for what Nova has bound and the host has not adopted
    :param server: None if there is no such instance
    :param host: the host's name in Nova's RPC
    """
    if server is None:
        return 'its instance does not exist'
    if server.is_migrating:
        return None
    # What is only for the time of a migration ends with it; Nova may forget
    # to end the task.
    if role is arq.Role.OLD:
        # Its migration is over before the source has taken up the server.
        if server.task_state == _REVERTING:
            return None
        return 'no migration of its instance can be confirmed or reverted'
    if server.is_busy and role is not arq.Role.INCOMING:
        return None
    if server.host != host:
        return ('its instance is on no host' if server.host is None
                else f'its instance is on host {server.host}')
    return None


@dataclasses.dataclass(frozen=True)
class Host:
    """What one host and Nova say, each read after the one before.

    In this order nothing that began meanwhile looks like a leak: a guest's
    accelerators are journaled before they are the API's, and Nova has the
    instance on the host, or a migration of it, before they are journaled.

    ``name`` is the host's in Nova's RPC. ``held`` are the complete bindings
    of its journal, ``journaled`` the instance and role of all that it has;
    ``listed`` is what the API has of this host, ``servers`` the instances of
    all these that exist, ``guests`` the uuids of those that libvirt knows.
    """

    name: str
    held: Collection[Binding]
    journaled: Collection[tuple[str, arq.Role]]
    listed: Collection[Binding]
    servers: Mapping[str, Server]
    guests: Collection[str]

    def repairs(self) -> list[Repair]:
        """What is to be done, in this order."""
        return [*self._of_held(), *self._of_listed()]

    def _of_held(self) -> Iterator[Repair]:
        active = {held.instance_uuid: held for held in self.held
                  if held.role is arq.Role.ACTIVE}
        known = {uuid for listed in self.listed for uuid in listed.arq_uuids}
        for held in self.held:
            server = self.servers.get(held.instance_uuid)
            if self._ended_here(held, server):
                yield (Repair(Step.ACTIVATE, held,
                              'its instance came to stay on this host')
                       if _is_the_guests(
                           held, active.get(held.instance_uuid))
                       else Repair(Step.RELEASE, held,
                                   'its guest has others'))
            elif why := self._leak(held):
                yield Repair(Step.RELEASE, held, why)
            elif not known.issuperset(held.arq_uuids) and (
                    server is not None and not server.is_busy):
                yield Repair(Step.TELL, held, 'the accelerator API has not '
                             'all of its ARQs, and may give its devices away')

    def _of_listed(self) -> Iterator[Repair]:
        for listed in self.listed:
            if listed.role is None:
                if why := self._leak(listed):
                    yield Repair(Step.DELETE, listed, why)
            elif (listed.instance_uuid, listed.role) not in self.journaled:
                yield from self._of_unknown(listed)

    def _of_unknown(self, listed: Binding) -> Iterator[Repair]:
        """What the API has and the journal has not."""
        if why := self._leak(listed):
            yield Repair(Step.TAKE_BACK, listed, why)
        elif self._needs(listed):
            if listed.is_whole:
                yield Repair(Step.RECOVER, listed,
                             'the journal does not know it')
            elif listed.instance_uuid not in self.guests:
                yield Repair(Step.TAKE_BACK, listed,
                             'not all of its ARQs have a device')

    def _leak(self, binding: Binding) -> str | None:
        why = leak(binding.role, self.servers.get(binding.instance_uuid),
                   self.name)
        # What has been set aside is no guest's, the rest goes after it: Nova
        # destroys it sooner or later.
        if (binding.role is not arq.Role.OLD
                and binding.instance_uuid in self.guests):
            return None
        return why

    def _ended_here(self, held: Binding, server: Server | None) -> bool:
        """Whether a move ended here although its last step is not done.

        Nova forgets the old flavor at the end of a revert, failed or not, and
        keeps it when a resize fails on the destination.
        """
        if (server is None or server.is_migrating
                or server.host != self.name):
            return False
        return (held.role is arq.Role.INCOMING
                or (held.role is arq.Role.OLD and not server.is_resized))

    def _needs(self, listed: Binding) -> bool:
        """Whether its instance is to have it, and nothing is under way."""
        server = self.servers.get(listed.instance_uuid)
        if server is None or server.is_busy:
            return False
        if listed.role is arq.Role.OLD:
            return server.is_migrating
        return server.host == self.name and not server.is_migrating


def _is_the_guests(held: Binding, active: Binding | None) -> bool:
    """Whether the guest of a server that has moved has it, or has the active.

    A guest that came live has what was acquired last.
    """
    if active is None:
        return True
    return (held.role is arq.Role.INCOMING
            and (held.attempt or 0) > (active.attempt or 0))


def orphans(ours: Iterable[str], *held: Collection[str]) -> list[str]:
    """The devices of ours that nobody has, or may have.

    :param ours: the uuids of attach handles whose devices exist
    :param held: the uuids of those that are somebody's
    """
    return [uuid for uuid in ours
            if not any(uuid in some for some in held)]


def stale_consumers(host: Host, consumers: Iterable[str]) -> list[str]:
    """Instances that Placement gives units of a host's that is not theirs.

    What is no instance may be a migration, or a server that Nova has claimed
    for and not made yet: that is left to Nova's own audit.
    """
    bound = {binding.instance_uuid for binding in (*host.held, *host.listed)}
    bound.update(instance_uuid for instance_uuid, _role in host.journaled)
    return [uuid for uuid in consumers
            if uuid in host.servers and uuid not in bound
            and uuid not in host.guests
            and leak(arq.Role.ACTIVE, host.servers[uuid], host.name)]
