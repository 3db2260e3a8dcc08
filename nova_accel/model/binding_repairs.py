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


"""The repairs of a host where it holds what Nova does not know.

Some of Nova's operations fail without telling the driver. Comparing finds the
leftovers; whatever an unfinished operation may still need is never touched.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import enum

from nova_accel.model import arq_types
from nova_accel.model import host_binding
from nova_accel.model import nova_server

Binding = host_binding.Binding

#: Nova's ``task_state`` until the source of a reverted resize has the instance
#: again.
_REVERTING = 'resize_reverting'


class RepairStep(enum.Enum):
    """The ways in which a host repairs a binding."""

    #: Release what the journal has.
    RELEASE = 'given back'
    #: Release what only the API has.
    TAKE_BACK = 'given back, unknown to the journal'
    #: Delete what Nova's own Cyborg client bound.
    DELETE = 'deleted'
    #: Note in the journal what only the API has.
    RECOVER = 'noted in the journal again'
    #: Give it the role of the guest's own.
    ACTIVATE = 'made active'
    #: Only log it: the host cannot repair it.
    TELL = 'left for an administrator'


@dataclasses.dataclass(frozen=True)
class Repair:
    """One step, and the reason for it."""

    step: RepairStep
    binding: Binding
    why: str


def why_unneeded(
    role: arq_types.Role | None, server: nova_server.Server | None, host: str
) -> str | None:
    """Why no one needs a binding any more, None if somebody may.

    :param role: None for ARQs that Nova bound and the host has not adopted
    :param server: None if there is no such instance
    :param host: the host's name in Nova's RPC
    """
    if server is None:
        return 'its instance does not exist'
    if server.is_migrating:
        return None
    # A role for the time of a migration ends with it, even if Nova has not
    # reset the task.
    if role is arq_types.Role.OLD:
        # A reverted migration ends before the source has taken over the
        # server.
        if server.task_state == _REVERTING:
            return None
        return 'no migration of its instance can be confirmed or reverted'
    if server.is_busy and role is not arq_types.Role.INCOMING:
        return None
    if server.host != host:
        return (
            'its instance is on no host'
            if server.host is None
            else f'its instance is on host {server.host}'
        )
    return None


def remedy(is_silent: bool) -> str:
    """The way to free the accelerators of a host that no one needs any more.

    :param is_silent: whether the host has stopped reporting
    """
    return (
        'nova-accel-manage host forget, if the host will not come back'
        if is_silent
        else 'the host will unplug and free them'
    )


@dataclasses.dataclass(frozen=True)
class HostBindings:
    """The state of one host and of its instances in Nova, read in this order.

    The order matters: nothing that began meanwhile looks unneeded. Nova has
    the instance on the host, or a migration of it, before the journal has its
    accelerators. The journal has them before the API does.

    ``name`` is the host's name in Nova's RPC. ``held`` are the complete
    bindings of its journal, ``journaled`` the instance and role of each of its
    entries. ``listed`` are the API's bindings of this host. ``servers`` are
    the existing instances of all these, ``guests`` the uuids of libvirt's
    guests.
    """

    name: str
    held: Collection[Binding]
    journaled: Collection[tuple[str, arq_types.Role]]
    listed: Collection[Binding]
    servers: Mapping[str, nova_server.Server]
    guests: Collection[str]

    @property
    def awaits_adoption(self) -> bool:
        """Whether ARQs that Nova bound wait for a server or their end."""
        return any(
            listed.role is None
            and (
                (server := self.servers.get(listed.instance_uuid)) is None
                or server.is_busy
            )
            for listed in self.listed
        )

    def repairs(self) -> list[Repair]:
        """The repairs to make, in this order."""
        return [*self._of_held(), *self._of_listed()]

    def _of_held(self) -> Iterator[Repair]:
        active = {
            held.instance_uuid: held
            for held in self.held
            if held.role is arq_types.Role.ACTIVE
        }
        known = {uuid for listed in self.listed for uuid in listed.arq_uuids}
        for held in self.held:
            server = self.servers.get(held.instance_uuid)
            if self._ended_here(held, server):
                yield (
                    Repair(
                        RepairStep.ACTIVATE,
                        held,
                        'its instance stays on this host now',
                    )
                    if _is_the_guests(held, active.get(held.instance_uuid))
                    else Repair(
                        RepairStep.RELEASE,
                        held,
                        'its guest has other accelerators',
                    )
                )
            elif why := self._why_unneeded(held):
                yield Repair(RepairStep.RELEASE, held, why)
            elif not known.issuperset(held.arq_uuids) and (
                server is not None and not server.is_busy
            ):
                yield Repair(
                    RepairStep.TELL,
                    held,
                    'the accelerator API lacks '
                    'some of its ARQs, and may give its devices away',
                )

    def _of_listed(self) -> Iterator[Repair]:
        for listed in self.listed:
            if listed.role is None:
                if why := self._why_unneeded(listed):
                    yield Repair(RepairStep.DELETE, listed, why)
            elif (listed.instance_uuid, listed.role) not in self.journaled:
                yield from self._of_unknown(listed)

    def _of_unknown(self, listed: Binding) -> Iterator[Repair]:
        """The repair of a binding that only the API has."""
        if why := self._why_unneeded(listed):
            yield Repair(RepairStep.TAKE_BACK, listed, why)
        elif self._needs(listed):
            if listed.is_whole:
                yield Repair(
                    RepairStep.RECOVER, listed, 'the journal does not know it'
                )
            elif listed.instance_uuid not in self.guests:
                yield Repair(
                    RepairStep.TAKE_BACK,
                    listed,
                    'not all of its ARQs have a device',
                )

    def _why_unneeded(self, binding: Binding) -> str | None:
        why = why_unneeded(
            binding.role, self.servers.get(binding.instance_uuid), self.name
        )
        # Nova destroys the guest sooner or later, and then its bindings are
        # released. An old one belongs to no guest.
        if (
            binding.role is not arq_types.Role.OLD
            and binding.instance_uuid in self.guests
        ):
            return None
        return why

    def _ended_here(
        self, held: Binding, server: nova_server.Server | None
    ) -> bool:
        """Whether a move ended on this host without its last step.

        At the end of a revert, even a failed one, Nova forgets the old flavor.
        When a resize fails on the destination, Nova keeps it.
        """
        if server is None or server.is_migrating or server.host != self.name:
            return False
        return held.role is arq_types.Role.INCOMING or (
            held.role is arq_types.Role.OLD and not server.is_resized
        )

    def _needs(self, listed: Binding) -> bool:
        """Whether its instance should have it, and is not busy."""
        server = self.servers.get(listed.instance_uuid)
        if server is None or server.is_busy:
            return False
        if listed.role is arq_types.Role.OLD:
            return server.is_migrating
        return server.host == self.name and not server.is_migrating


def _is_the_guests(held: Binding, active: Binding | None) -> bool:
    """Whether a moved server's guest has this binding, not the active one.

    After a live migration the guest has the binding that was acquired last.
    """
    if active is None:
        return True
    return held.role is arq_types.Role.INCOMING and (held.attempt or 0) > (
        active.attempt or 0
    )


def orphans(ours: Iterable[str], *held: Collection[str]) -> list[str]:
    """Our devices that belong to no one.

    :param ours: the uuids of attach handles whose devices exist on the host
    :param held: collections of uuids of attach handles that have, or may have,
        an owner
    """
    return [uuid for uuid in ours if not any(uuid in some for some in held)]
