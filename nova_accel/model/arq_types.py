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

"""Accelerator requests (ARQs): their states, roles and attach handles."""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import enum
from typing import Any

from nova_accel import exceptions
from nova_accel.model import attach_handle
from nova_accel.model import decoding


class State(enum.StrEnum):
    """The wire's states: Cyborg's, and two that the vGPU spec asks for."""

    INITIAL = 'Initial'
    BIND_STARTED = 'BindStarted'
    BOUND = 'Bound'
    BIND_FAILED = 'BindFailed'
    #: Being re-created after a reboot of the host; then Bound again.
    PROVISIONING = 'Provisioning'
    UNBOUND = 'Unbound'
    UNBIND_FAILED = 'UnbindFailed'
    DELETING = 'Deleting'
    #: Derived, never stored: the ARQ's host is silent.
    UNKNOWN = 'Unknown'


#: State -> the states that may follow it. Total: every state has its row.
TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.INITIAL: frozenset(
        {
            State.BIND_STARTED,
            State.BOUND,
            State.BIND_FAILED,
            State.UNBOUND,
            State.DELETING,
        }
    ),
    State.BIND_STARTED: frozenset(
        {State.BOUND, State.BIND_FAILED, State.UNBOUND, State.DELETING}
    ),
    State.BOUND: frozenset(
        {
            State.PROVISIONING,
            State.BIND_FAILED,
            State.UNBOUND,
            State.UNBIND_FAILED,
            State.DELETING,
        }
    ),
    State.BIND_FAILED: frozenset({State.UNBOUND, State.DELETING}),
    State.PROVISIONING: frozenset(
        {
            State.BOUND,
            State.BIND_FAILED,
            State.UNBOUND,
            State.UNBIND_FAILED,
            State.DELETING,
        }
    ),
    State.UNBOUND: frozenset(
        {State.BIND_STARTED, State.BOUND, State.BIND_FAILED, State.DELETING}
    ),
    State.UNBIND_FAILED: frozenset({State.UNBOUND, State.DELETING}),
    State.DELETING: frozenset(),
    State.UNKNOWN: frozenset(),
}

#: The highest number of a device profile's group: that of its column.
MAX_GROUP_ID = 2**31 - 1

#: The states in which Nova no longer waits for an ARQ.
RESOLVED = frozenset({State.BOUND, State.BIND_FAILED, State.DELETING})


def sources(wanted: State) -> frozenset[State]:
    """The states from which ``wanted`` may be reached, for a WHERE clause."""
    return frozenset(
        state
        for state, following in TRANSITIONS.items()
        if wanted in following
    )


def check_transition(uuid: str, present: State, wanted: State) -> None:
    """:raises InvalidTransition: the table has no such step."""
    if wanted not in TRANSITIONS[present]:
        raise exceptions.InvalidTransition(
            f'ARQ {uuid} is {present} and cannot become {wanted}'
        )


def resource_class(group: Mapping[str, str]) -> str:
    """The resource class of the ARQs of a device profile's group.

    A group has only one class, because each of our providers has only one. It
    is empty if a group that was imported has none.
    """
    return next(
        (
            key.removeprefix('resources:')
            for key in group
            if key.startswith('resources:')
        ),
        '',
    )


class Role(enum.StrEnum):
    """Why an instance has an ARQ on a host."""

    ACTIVE = 'active'
    #: Held by the source of a resize or cold migration until its end.
    OLD = 'old'
    #: Held by the destination of a live migration until its end.
    INCOMING = 'incoming'
    #: Held for ports that have a device profile: their devices go into the
    #: guest as network interfaces, which Nova makes.
    PORT = 'port'


#: The roles of what the guest has. The others are of a move that goes on.
OF_GUEST = (Role.ACTIVE, Role.PORT)


@dataclasses.dataclass(frozen=True)
class Arq:
    """A bound accelerator request, as a compute host sees it.

    ``group`` is the device profile's group as it was when the ARQ was made:
    later edits of the profile do not touch running guests.
    """

    uuid: str
    state: State
    device_profile_name: str
    device_profile_group_id: int
    group: Mapping[str, str]
    device_rp_uuid: str
    handle: attach_handle.AttachHandle

    @property
    def resource_class(self) -> str:
        return resource_class(self.group)

    @classmethod
    def from_dict(cls, value: Any) -> 'Arq':
        """The reverse of :meth:`to_dict`.

        :raises Malformed: the value is no ARQ.
        """
        field = decoding.Fields(value)
        return cls(
            uuid=field('uuid', decoding.uuid),
            state=field('state', decoding.one_of(State)),
            device_profile_name=field('device_profile_name', decoding.text),
            device_profile_group_id=field(
                'device_profile_group_id', decoding.integer(0, MAX_GROUP_ID)
            ),
            group=field(
                'group', decoding.mapped(decoding.text, decoding.words)
            ),
            device_rp_uuid=field('device_rp_uuid', decoding.uuid),
            handle=field('attach_handle', attach_handle.from_dict),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, for the journal and between the planes."""
        return {
            'uuid': self.uuid,
            'state': str(self.state),
            'device_profile_name': self.device_profile_name,
            'device_profile_group_id': self.device_profile_group_id,
            'group': dict(self.group),
            'device_rp_uuid': self.device_rp_uuid,
            'attach_handle': self.handle.to_dict(),
        }


@dataclasses.dataclass(frozen=True)
class WantedArq:
    """An ARQ that is to be made and bound.

    ``group`` is a group of the device profile in its stored form, of which the
    ARQ is one unit. ``device_rp_uuid`` is that of the unit's provider.
    """

    device_profile_name: str
    device_profile_group_id: int
    group: Mapping[str, str]
    device_rp_uuid: str

    @property
    def resource_class(self) -> str:
        return resource_class(self.group)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, for the API."""
        return {
            'device_profile_name': self.device_profile_name,
            'device_profile_group_id': self.device_profile_group_id,
            'group': dict(self.group),
            'device_rp_uuid': self.device_rp_uuid,
        }


def in_words(arqs: Iterable[Arq]) -> str:
    """The devices of the ARQs, such as ``FPGA 0000:3b:00.1``."""
    return ', '.join(
        f'{arq.resource_class} {arq.handle.address}'
        + (f' ({arq.handle.mdev_type})' if arq.handle.mdev_type else '')
        for arq in arqs
    )
