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

"""Changes of the role that a binding's ARQs have on this host.

No one else can take the ARQs meanwhile, so the journal decides and the API is
told: at once, or when it is back. Everything here runs under the instance's
lock.
"""

from collections.abc import Callable
from collections.abc import Iterable
import dataclasses

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.model import arq
from nova_accel.virt import journal as journal_module

LOG = logging.getLogger(__name__)

_Step = journal_module.Step


class RoleMoves:
    """The moves of one host's bindings.

    :param unplug: makes devices free of their guest, or raises DeviceError
    """

    def __init__(self, journal: journal_module.Journal,
                 api: accelerator_api.AcceleratorApi,
                 unplug: Callable[[Iterable[arq.Arq]], None]) -> None:
        self._journal = journal
        self._api = api
        self._unplug = unplug

    def move(self, instance_uuid: str, source: arq.Role,
             target: arq.Role) -> None:
        """Journal the move, if the source holds anything, and tell the API.

        :raises DeviceError: what the target has is stuck, or a journal
            damaged; nothing has moved.
        """
        entry = self._journal.read(instance_uuid, source)
        if entry is None or entry.step is not _Step.HELD:
            return
        replaced = self._journal.read(instance_uuid, target)
        if replaced is not None:
            moving = {request.handle.uuid for request in entry.arqs}
            self._unplug(request for request in replaced.arqs
                         if request.handle.uuid not in moving)
        # Cut short between the two, finish_interrupted() does the second.
        # An API that has not heard of the last move knows the role before it.
        known = (source if entry.moved_from in (None, target)
                 else entry.moved_from)
        self._journal.write(dataclasses.replace(
            entry, role=target, moved_from=known,
            attempt=journal_module.next_attempt(entry, replaced)))
        self._journal.remove(entry)
        self.tell_or_warn(instance_uuid)

    def tell(self, instance_uuid: str) -> None:
        """Have the API know of the instance's moves.

        :raises AcceleratorError: it does not know of one yet.
        """
        for entry in self._journal.entries():
            if (entry.instance_uuid == instance_uuid
                    and entry.moved_from is not None):
                self._api.move(
                    instance_uuid, entry.moved_from, entry.role,
                    entry.attempt, [request.uuid for request in entry.arqs])
                self._journal.write(
                    dataclasses.replace(entry, moved_from=None))

    def tell_or_warn(self, instance_uuid: str) -> None:
        """As :meth:`tell`; what fails is left for the next time."""
        try:
            self.tell(instance_uuid)
        except exceptions.AcceleratorError as error:
            LOG.warning('The accelerator API does not know yet which role '
                        'the accelerators of instance %s have, trying again '
                        'later: %s', instance_uuid, error)

    def finish_interrupted(self) -> None:
        """Remove what a move that was cut short has left behind."""
        for entry in self._journal.entries():
            if entry.moved_from is None:
                continue
            left = self._journal.read(entry.instance_uuid, entry.moved_from)
            if left is not None and left.attempt < entry.attempt:
                self._journal.remove(left)
