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

"""The ways in which an instance comes to hold accelerators on this host.

Each attempt has a number, on which the host and the API agree.
The host takes the next number after those of its journal. The API may know
greater ones, after a release or if the journal was lost. It then answers with
the newest number, and the host continues from there.

Only a thread that has the instance's lock may do that. No other thread of
this host asks for anything of the instance meanwhile, so its request is the
newest. A request may reach the API late. Its sender has then stopped waiting,
told the API so with the same number, and released the lock. So no one reads
the answer, nor the newest number in it.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
import dataclasses
from typing import TypeVar

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.model import arq_types
from nova_accel.model import host_binding
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import provider_allocation
from nova_accel.virt.holding import attach_journal

_ACTIVE = arq_types.Role.ACTIVE

_R = TypeVar('_R')

_Step = attach_journal.AttachStep

#: How often the host continues from the number that the API says. Once is
#: enough, unless the API also finds the host's number too far ahead.
_TIMES = 2


@dataclasses.dataclass(frozen=True)
class Intent:
    """The ARQs that an instance is to hold on this host in a role.

    ``ask`` asks the API with a journal entry, which has the number of the
    attempt and what the instance holds until then. It returns what the
    instance holds from then on. ``arqs`` are those that the guest may have
    already. ``listed_attempt`` is the number by which the API has listed them
    in this role, None if it has not.
    """

    instance_uuid: str
    role: arq_types.Role
    ask: Callable[
        [accelerator_api.AcceleratorApi, attach_journal.AttachEntry],
        tuple[arq_types.Arq, ...],
    ]
    arqs: tuple[arq_types.Arq, ...] = ()
    listed_attempt: int | None = None

    @property
    def is_listed(self) -> bool:
        """Whether the API has it already, so that nothing is to be undone."""
        return self.listed_attempt is not None

    def begin(
        self, before: attach_journal.AttachEntry | None, attempt: int
    ) -> attach_journal.AttachEntry:
        """The entry of an attempt that begins.

        A crash must not undo what a guest may have: that is "held", whatever
        becomes of the attempt.

        :param before: what the instance holds, None for nothing
        """
        known = {arq.uuid: arq for arq in before.arqs} if before else {}
        known |= {arq.uuid: arq for arq in self.arqs}
        return attach_journal.AttachEntry(
            self.instance_uuid,
            self.role,
            # A binding that was acquired later still has the greater number.
            attempt
            if self.listed_attempt is None
            else self.listed_attempt + 1,
            _Step.HELD if known else _Step.ACQUIRING,
            tuple(known.values()),
        )


def acquire(
    instance_uuid: str,
    project_id: str,
    asked: device_profile.Asked,
    allocations: Iterable[provider_allocation.ProviderAllocation],
    role: arq_types.Role = _ACTIVE,
    numa_nodes: frozenset[int] = frozenset(),
    is_new: bool = False,
) -> Intent:
    """Bind ARQs to an instance; it keeps those that it holds already.

    :param numa_nodes: those of the guest's cells, none if no matter
    :param is_new: whether the limits of the project matter
    """
    wanted = project_id, asked, tuple(allocations), numa_nodes, is_new
    return Intent(
        instance_uuid,
        role,
        lambda api, entry: api.acquire(
            instance_uuid, role, entry.attempt, *wanted
        ),
    )


def adopt(
    instance_uuid: str,
    arq_uuids: Collection[str],
    role: arq_types.Role = _ACTIVE,
    is_new: bool = False,
) -> Intent:
    """Hold ARQs that Nova's own Cyborg client has bound to an instance.

    :param is_new: whether the limits of the project matter
    """
    return Intent(
        instance_uuid,
        role,
        lambda api, entry: _adopt(api, entry, arq_uuids, is_new),
    )


def take_over(
    instance_uuid: str,
    arqs: Iterable[arq_types.Arq],
    role: arq_types.Role = _ACTIVE,
) -> Intent:
    """Hold ARQs that a guest may have, beside what the instance holds.

    Nova's own Cyborg client has bound them, as for :func:`adopt`, and they may
    have been imported.
    """
    return Intent(
        instance_uuid,
        role,
        lambda api, entry: _adopt(
            api, entry, [arq.uuid for arq in entry.arqs]
        ),
        tuple(arqs),
    )


def recover(binding: host_binding.Binding) -> Intent:
    """Hold again a binding that the API has and the journal has lost.

    :raises Conflict: the binding is not adopted, so no host holds it.
    """
    listed = attach_journal.of_binding(binding)
    return Intent(
        listed.instance_uuid,
        listed.role,
        lambda api, entry: _adopt(api, entry, binding.arq_uuids),
        listed.arqs,
        listed.attempt,
    )


def _adopt(
    api: accelerator_api.AcceleratorApi,
    entry: attach_journal.AttachEntry,
    arq_uuids: Collection[str],
    is_new: bool = False,
) -> tuple[arq_types.Arq, ...]:
    return api.adopt(
        entry.instance_uuid, entry.role, entry.attempt, arq_uuids, is_new
    )


def agree(
    journal: attach_journal.AttachJournal,
    entry: attach_journal.AttachEntry,
    ask: Callable[[attach_journal.AttachEntry], _R],
) -> tuple[attach_journal.AttachEntry, _R]:
    """Ask the API with a number that is newer than all that it knows.

    The caller must have the instance's lock.

    :param entry: is journaled already. Each further number is journaled
        before it is used, and stays so when this raises
    :param ask: asks the API, with the number of the entry
    :returns: the entry with the number that was admitted, and the answer
    """
    for _again in range(_TIMES):
        try:
            return entry, ask(entry)
        except (exceptions.StaleAttempt, exceptions.FarAttempt) as fault:
            last = entry.attempt if fault.newest is None else fault.newest
            entry = dataclasses.replace(entry, attempt=last + 1)
            journal.write(entry)
    return entry, ask(entry)
