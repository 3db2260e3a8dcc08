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
import dataclasses
from typing import Any

from nova_accel.model import arq_types
from nova_accel.model import attempt_number
from nova_accel.model import decoding

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


def from_dict(value: Any) -> Binding:
    """A binding as ``GET /hosts/{hostname}/instances`` lists it.

    :raises Malformed: the value is no binding.
    """
    field = decoding.Fields(value)
    arqs = field('arqs', decoding.listed(_listed_arq))
    return Binding(
        instance_uuid=field('instance_uuid', decoding.uuid),
        role=field('role', decoding.optional(decoding.one_of(arq_types.Role))),
        attempt=field('attempt', decoding.optional(attempt_number.from_json)),
        arq_uuids=tuple(uuid for uuid, _arq in arqs),
        arqs=tuple(arq for _uuid, arq in arqs if arq is not None),
    )


def _listed_arq(value: Any) -> tuple[str, arq_types.Arq | None]:
    """The uuid of an ARQ, and the ARQ if it is usable."""
    field = decoding.Fields(value)
    handle = field('attach_handle', decoding.Fields)
    is_usable = (
        field('state', decoding.one_of(arq_types.State)) in HOLDING
        and handle('uuid', decoding.optional(decoding.uuid)) is not None
    )
    return (
        field('uuid', decoding.uuid),
        arq_types.Arq.from_dict(value) if is_usable else None,
    )


def listing(value: Any) -> Listing:
    """The whole answer to ``GET /hosts/{hostname}/instances``.

    :raises Malformed: it is another one.
    """
    field = decoding.Fields(value)
    return Listing(
        list(field('bindings', decoding.listed(from_dict, decoding.MANY))),
        frozenset(
            field('left_mdevs', decoding.listed(decoding.text, decoding.MANY))
        ),
    )
