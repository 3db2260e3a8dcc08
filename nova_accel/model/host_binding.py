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


"""The ARQs that an instance holds on one host in one role."""

from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
from typing import Any

from nova_accel.model import arq_types

#: The states in which an ARQ holds a device.
HOLDING = frozenset({arq_types.State.BOUND, arq_types.State.PROVISIONING})


@dataclasses.dataclass(frozen=True)
class Binding:
    """The ARQs of an instance on a host.

    ``role`` and ``attempt`` are None for ARQs that Nova's own Cyborg client
    bound and that the host has not adopted. ``arqs`` are the ones of
    ``arq_uuids`` that are usable: they have an attach handle and a state of
    :data:`HOLDING`.
    """

    instance_uuid: str
    role: arq_types.Role | None
    attempt: int | None
    arq_uuids: tuple[str, ...]
    arqs: tuple[arq_types.Arq, ...]

    @property
    def is_whole(self) -> bool:
        """Whether each ARQ holds a device."""
        return len(self.arqs) == len(self.arq_uuids)


@dataclasses.dataclass(frozen=True)
class Listing:
    """The API's answer to a host that asks what its instances hold.

    ``left_mdevs`` are the uuids of mediated devices that a Cyborg may have
    left on the host, before its first report.
    """

    bindings: list[Binding]
    left_mdevs: frozenset[str]


def unjournaled(
    listed: Iterable[Binding],
    journaled: Container[tuple[str, arq_types.Role]],
) -> tuple[Binding, ...]:
    """The bindings that a host's journal lacks, such as all unadopted ones.

    :param listed: those that the API has of the host
    :param journaled: instance and role of each entry of the journal
    """
    return tuple(
        binding
        for binding in listed
        if binding.role is None
        or (binding.instance_uuid, binding.role) not in journaled
    )


def from_dict(value: Mapping[str, Any]) -> Binding:
    """A binding as ``GET /hosts/{hostname}/instances`` lists it."""
    return Binding(
        instance_uuid=value['instance_uuid'],
        role=None if value['role'] is None else arq_types.Role(value['role']),
        attempt=value['attempt'],
        arq_uuids=tuple(arq['uuid'] for arq in value['arqs']),
        arqs=tuple(
            arq_types.Arq.from_dict(arq)
            for arq in value['arqs']
            if arq['state'] in HOLDING
            and arq['attach_handle']['uuid'] is not None
        ),
    )
