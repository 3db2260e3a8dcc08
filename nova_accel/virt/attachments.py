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

"""What instances hold of this host's accelerators, from acquire to release.

On the host the journal rules what goes into a guest; in the cloud the API
rules who owns an attach handle. Each step writes its intent first, so that a
step cut short is finished or undone later by :meth:`Attachments.retry`.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import dataclasses
import time

from oslo_concurrency import lockutils
from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.drivers import base
from nova_accel.model import arq
from nova_accel.model import attach_handle
from nova_accel.model import matching
from nova_accel.virt import journal as journal_module

LOG = logging.getLogger(__name__)

_Step = journal_module.Step
_Entry = journal_module.Entry


class Attachments:
    """The bindings of one host.

    :param drivers: name -> device driver
    :param driver_names: attach handle uuid -> the name of its driver, as
        discovery has it at the moment
    """

    def __init__(self, nodename: str, journal: journal_module.Journal,
                 api: accelerator_api.AcceleratorApi,
                 drivers: Mapping[str, base.Driver],
                 driver_names: Callable[[], Mapping[str, str]]) -> None:
        self._nodename = nodename
        self._journal = journal
        self._api = api
        self._drivers = drivers
        self._driver_names = driver_names

    def acquire(self, instance_uuid: str, project_id: str,
                device_profile_name: str,
                providers: Iterable[matching.Provider],
                role: arq.Role = arq.Role.ACTIVE) -> None:
        """Bind an instance's ARQs; those that it holds already are kept.

        :raises AcceleratorError: it holds no more than it did before.
        """
        with self._locked(instance_uuid):
            before = self._journal.read(instance_uuid, role)
            entry = _begun(instance_uuid, role, before)
            self._journal.write(entry)
            try:
                arqs = self._api.acquire(
                    instance_uuid, role, entry.attempt, project_id,
                    device_profile_name, tuple(providers))
            except Exception as error:
                self._give_up(entry, before, error)
                raise
            self._journal.write(dataclasses.replace(
                entry, step=_Step.HELD, arqs=arqs))
            kept = {request.handle.uuid for request in arqs}
            self._unplug(request for request in entry.arqs
                         if request.handle.uuid not in kept)

    def holds(self, instance_uuid: str,
              role: arq.Role = arq.Role.ACTIVE) -> bool:
        """Whether the binding is complete.

        :raises DeviceError: its journal is damaged.
        """
        entry = self._journal.read(instance_uuid, role)
        return entry is not None and entry.step is _Step.HELD

    def holds_pci(self, instance_uuid: str) -> bool:
        """Whether the instance's guest has a PCI function of the host."""
        entry = self._journal.read(instance_uuid, arq.Role.ACTIVE)
        return entry is not None and any(
            request.handle.type is attach_handle.HandleType.PCI
            for request in entry.arqs)

    def plug(self, instance_uuid: str) -> tuple[arq.Arq, ...]:
        """Make the instance's devices ready to go into its guest.

        :returns: its ARQs, none if it holds no accelerators
        :raises DeviceError: a device is gone, or refused.
        """
        with self._locked(instance_uuid):
            entry = self._journal.read(instance_uuid, arq.Role.ACTIVE)
            if entry is None or entry.step is not _Step.HELD:
                return ()
            for request in entry.arqs:
                driver = self._driver_of(request.handle.uuid)
                if driver is None:
                    raise exceptions.DeviceError(
                        f'device {request.handle.address} of ARQ '
                        f'{request.uuid} is gone from {self._nodename}')
                driver.plug(request.handle)
            return entry.arqs

    def release(self, instance_uuid: str,
                role: arq.Role = arq.Role.ACTIVE) -> None:
        """Give back what the binding holds; what fails is retried later.

        Does not raise: a server can be deleted whatever its devices do.
        """
        try:
            with self._locked(instance_uuid):
                entry = self._journal.read(instance_uuid, role)
                if entry is not None:
                    self._release(entry)
        except exceptions.AcceleratorError as error:
            LOG.warning('The accelerators of instance %s (%s) are not '
                        'released yet, trying again later: %s',
                        instance_uuid, role, error)

    def undo_interrupted(self) -> None:
        """Have what a dead nova-compute was acquiring released by retry."""
        for entry in self._journal.entries():
            if entry.step is _Step.ACQUIRING:
                self._journal.write(
                    dataclasses.replace(entry, step=_Step.RELEASING))

    def retry(self) -> None:
        """Finish the releases that failed."""
        for entry in self._journal.entries():
            if entry.step is _Step.RELEASING:
                self.release(entry.instance_uuid, entry.role)

    def held_arqs(self) -> list[arq.Arq]:
        """All that instances hold, or that is not yet given back."""
        return [request for entry in self._journal.entries()
                for request in entry.arqs]

    def _give_up(self, entry: journal_module.Entry,
                 before: journal_module.Entry | None,
                 error: Exception) -> None:
        """Journal what is held after a failed acquire."""
        refused = (isinstance(error, exceptions.AcceleratorError)
                   and not isinstance(error, exceptions.ServiceUnavailable))
        if refused and before is not None:
            self._journal.write(before)
        elif refused:
            self._journal.remove(entry)
        elif entry.step is _Step.ACQUIRING:
            # The answer may have been lost: the API may hold something.
            self._journal.write(
                dataclasses.replace(entry, step=_Step.RELEASING))

    def _release(self, entry: journal_module.Entry) -> None:
        self._journal.write(
            dataclasses.replace(entry, step=_Step.RELEASING))
        # A handle is free for the next tenant only when its device is.
        self._unplug(entry.arqs)
        try:
            self._api.release(entry.instance_uuid, entry.role, entry.attempt)
        except exceptions.StaleAttempt as error:
            LOG.info('Nothing to release for instance %s (%s): %s',
                     entry.instance_uuid, entry.role, error)
        self._journal.remove(entry)

    def _unplug(self, arqs: Iterable[arq.Arq]) -> None:
        """:raises DeviceError: a device refused."""
        for request in arqs:
            driver = self._driver_of(request.handle.uuid)
            # A device that is gone took what was made of it along.
            if driver is not None:
                driver.unplug(request.handle)

    def _driver_of(self, handle_uuid: str) -> base.Driver | None:
        name = self._driver_names().get(handle_uuid)
        return None if name is None else self._drivers[name]

    def _locked(
        self, instance_uuid: str,
    ) -> contextlib.AbstractContextManager[object]:
        return lockutils.lock(f'nova_accel-{self._nodename}-{instance_uuid}')


def _begun(instance_uuid: str, role: arq.Role,
           before: journal_module.Entry | None) -> journal_module.Entry:
    """The entry of an acquire that begins.

    Its attempt is later than every one before it, also after the journal was
    lost. A binding that is held stays so whatever becomes of the attempt.
    """
    if before is None:
        return _Entry(instance_uuid, role, time.time_ns(), _Step.ACQUIRING)
    return dataclasses.replace(
        before, attempt=max(time.time_ns(), before.attempt + 1),
        step=_Step.HELD if before.step is _Step.HELD else _Step.ACQUIRING)
