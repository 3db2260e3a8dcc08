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

"""Programs FPGA regions: for servers in time, and for whoever asks.

A server's regions are programmed by workers while Nova downloads its image;
where its guest is made, its end is awaited. Only one region of a card is
programmed at a time, and none that another server has.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import pathlib
import time
from typing import Any
from typing import Protocol

import futurist
from oslo_concurrency import lockutils
from oslo_log import log as logging
from oslo_utils import uuidutils

from nova_accel import exceptions
from nova_accel.model import arq
from nova_accel.model import attach_handle
from nova_accel.model import bitstream as bitstream_model
from nova_accel.model import device as device_model
from nova_accel.model import naming
from nova_accel.model import programming
from nova_accel.model import region as region_model
from nova_accel.virt import programming_job
from nova_accel.virt import region_request
from nova_accel.virt import regions as regions_module

LOG = logging.getLogger(__name__)

#: Regions that are seen to at a time; those of one card wait for each other.
_WORKERS = 16

_Job = programming_job.Job

_NOBODY = programming.Asker()


class Fetched(Protocol):
    """A bitstream on this host, verified, with the hash of its bytes."""

    @property
    def path(self) -> pathlib.Path:
        """Of a file that nobody changes."""

    @property
    def sha256(self) -> str:
        """In hexadecimal."""


class Bitstreams(Protocol):
    """What is used of :class:`nova_accel.bitstreams.store.Store`."""

    def resolve(self, wanted: bitstream_model.Wanted,
                device: device_model.Device, region: region_model.Region,
                context: Any) -> bitstream_model.Bitstream:
        """The one that fits; see there for the errors."""

    def is_shell(self, bitstream_id: str, context: Any) -> bool:
        """Whether it is not for a region; see there for the errors."""

    def fetched(self, bitstream: bitstream_model.Bitstream, context: Any,
                ) -> contextlib.AbstractContextManager[Fetched]:
        """As long as the body runs it stays on this host."""


class Programmer:
    """Programs the regions of one host.

    :param holders: attach handle uuid, or PCI address -> the instance whose
        guest has it, or may soon
    :param note: is told of each programming, when it begins and when it ends
    :param changed: is called when a region holds something else
    :param service_context: the service's own, for servers that are started
        again, when no user is there
    :param timeout_s: how long a server waits for its regions, and a
        programming may take
    """

    def __init__(self, node_uuid: str, regions: regions_module.Regions,
                 bitstreams: Bitstreams,
                 holders: Callable[[], Mapping[str, str]],
                 note: Callable[[programming.Record], None],
                 changed: Callable[[], None],
                 service_context: Callable[[], Any],
                 timeout_s: float) -> None:
        self._node_uuid = node_uuid
        self._regions = regions
        self._bitstreams = bitstreams
        self._holders = holders
        self._note = note
        self._changed = changed
        self._service_context = service_context
        self._timeout_s = timeout_s
        self._executor = futurist.ThreadPoolExecutor(_WORKERS)
        self._begun: dict[frozenset[str], Sequence[_Job]] = {}

    def start(self, arqs: Iterable[arq.Arq], asker: programming.Asker,
              image_properties: Mapping[str, Any], context: Any) -> None:
        """Begin to program what a server that is made asks for.

        How it went says :meth:`ready`; unless that is called for the same
        ARQs, :meth:`abandon` must be.

        :param asker: with the server's instance
        :param image_properties: of the image that the server boots from
        :param context: the user's, who must be allowed to see the bitstreams
        :raises InvalidDeviceProfile: nonsense is asked for.
        :raises DeviceError: a device has nothing to program.
        :raises Conflict: two things are asked of one region.
        """
        arqs = tuple(arqs)
        jobs = self._begin(
            arqs, asker, image_properties, context, is_new=True)
        if jobs:
            self._begun[_key(arqs)] = jobs

    def ready(self, arqs: Iterable[arq.Arq], asker: programming.Asker,
              image_properties: Mapping[str, Any],
              is_new: bool = False) -> None:
        """Wait until a server's regions hold what its guest is to find.

        What :meth:`start` has not begun is now, with the service's rights.

        :param is_new: whether the server has not had them before
        :raises AcceleratorError: one does not, or not in time.
        """
        arqs = tuple(arqs)
        jobs = self._begun.pop(_key(arqs), None)
        if jobs is None:
            jobs = self._begin(arqs, asker, image_properties, None, is_new)
        try:
            for job in jobs:
                job.wait()
        finally:
            programming_job.abandon(jobs)

    def abandon(self, instance_uuid: str) -> None:
        """Stop what :meth:`start` has begun for a server that is given up.

        What cannot be stopped has ended afterwards.
        """
        for key, jobs in list(self._begun.items()):
            if any(job.asker.instance_uuid == instance_uuid for job in jobs):
                self._begun.pop(key, None)
                programming_job.abandon(jobs)

    def program(self, deployable_uuid: str, wanted: bitstream_model.Wanted,
                asker: programming.Asker, context: Any,
                shell_loading: programming.ShellLoading = (
                    programming.ShellLoading.FORBIDDEN),
                ) -> region_model.Contents:
        """Program the region of a deployable, unless it holds that already.

        What is a shell is loaded into its card.

        :param asker: with the instance whose guest has the region, if the
            asker may reprogram it under that
        :param shell_loading: what the API says of that
        :raises NotFound: there is no such deployable with a region, or whose
            card can get another shell.
        :raises BitstreamNotFound, BitstreamRefused: see ``Store.resolve``.
        :raises NotAllowed: it is a shell, and not for this asker.
        :raises Conflict: a guest has it, or of a shell anything of the card.
        :raises DeviceError: it failed.
        """
        is_shell = (wanted.bitstream_id is not None
                    and self._bitstreams.is_shell(
                        wanted.bitstream_id, context))
        if is_shell:
            _check_shell_loading(shell_loading, wanted)
        target = self._target_of(
            deployable_uuid, self._regions.shells() if is_shell
            else self._regions.targets())
        self._check_free(target, asker, is_stopped=False)
        job = _Job(target, asker, self._deadline())
        return self._put(job, wanted, context, is_stopped=False)

    def blank(self, handle: attach_handle.AttachHandle) -> None:
        """Program the region of a handle that was given back.

        Also if it holds that already: what a guest has left in the circuit's
        own memory goes with it.

        :param handle: its ``cleaning`` has the id of the bitstream
        :raises DeviceError: the region does not hold that afterwards.
        """
        _method, bitstream_id = handle.cleaning
        try:
            target = self._target_with(handle)
            context = self._service_context()
            self._load(_Job(target, _NOBODY, self._deadline()),
                       self._bitstreams.resolve(
                           bitstream_model.Wanted(bitstream_id),
                           target.device, target.region, context),
                       context, is_stopped=False, is_repeated=True)
        except exceptions.DeviceError:
            raise
        except exceptions.AcceleratorError as error:
            raise exceptions.DeviceError(str(error)) from error

    def _begin(self, arqs: Iterable[arq.Arq], asker: programming.Asker,
               image_properties: Mapping[str, Any], context: Any,
               is_new: bool) -> list[_Job]:
        deadline = self._deadline()
        jobs = []
        for request in region_request.of(
                arqs, self._regions.targets(), image_properties):
            # Of others the driver says all that is known.
            if (request.wanted is not None
                    or self._regions.is_journaled(request.target)):
                job = _Job(request.target, asker, deadline)
                job.run(self._executor.submit(
                    self._ensure, job, request, context, is_new))
                jobs.append(job)
        return jobs

    def _ensure(self, job: _Job, request: region_request.Request,
                context: Any, is_new: bool) -> None:
        """Have a region hold what a server asks of it."""
        wanted = request.wanted
        with self._card_locked(job.target):
            known = self._regions.known(job.target)
            last = None if is_new else self._regions.served(
                job.target, job.asker.instance_uuid)
            if last is not None and known.contents is not None:
                return
            if last is not None and known.fault is None:
                # The region has lost it when the host was booted.
                wanted = bitstream_model.Wanted(last)
            if wanted is None:
                request.check(known)
                self._serve(job)
                return
        self._put(job, wanted, context, is_stopped=True)

    def _put(self, job: _Job, wanted: bitstream_model.Wanted, context: Any,
             is_stopped: bool) -> region_model.Contents:
        """Have a region hold a bitstream.

        :param is_stopped: whether the guest of the asker does not run
        """
        target = job.target
        if context is None:
            context = self._service_context()
        bitstream = self._bitstreams.resolve(
            wanted, target.device, target.region, context)
        with self._card_locked(target):
            contents = self._held(job, bitstream)
            if contents is not None:
                LOG.info('%s holds %s already', target, bitstream)
                return contents
        return self._load(job, bitstream, context, is_stopped)

    def _load(self, job: _Job, bitstream: bitstream_model.Bitstream,
              context: Any, is_stopped: bool,
              is_repeated: bool = False) -> region_model.Contents:
        """Fetch a bitstream and program a region with it.

        :param is_stopped: as for :meth:`_put`
        :param is_repeated: even if the region holds it by then
        """
        target = job.target
        self._check_free(target, job.asker, is_stopped)
        record = programming.Record(
            uuidutils.generate_uuid(),
            naming.derived_uuid(self._node_uuid, target.device.name),
            target.region.name, bitstream.id, job.asker,
            regions_module.now())
        try:
            with (self._bitstreams.fetched(bitstream, context) as file,
                  self._card_locked(target)):
                # Another thread may have, meanwhile.
                contents = (
                    None if is_repeated else self._held(job, bitstream))
                if contents is not None:
                    return contents
                self._check_free(target, job.asker, is_stopped)
                with job.touching():
                    return self._program(job, record, bitstream, file)
        except exceptions.AcceleratorError as error:
            self._note(regions_module.ended(record, str(error)))
            raise

    def _program(self, job: _Job, record: programming.Record,
                 bitstream: bitstream_model.Bitstream,
                 file: Fetched) -> region_model.Contents:
        self._note(record)
        LOG.info('Programming %s with %s', job.target, bitstream)
        try:
            contents = self._regions.program(
                job.target, record, bitstream.function_uuids, file.path,
                file.sha256, job.deadline, bitstream.provides_shell_id)
        finally:
            self._changed()
        done = regions_module.ended(record, None)
        LOG.info('Programmed %s with %s, %.1f s after it was begun',
                 job.target, bitstream,
                 (regions_module.now() - record.started_at).total_seconds())
        self._note(done)
        return contents

    def _held(self, job: _Job, bitstream: bitstream_model.Bitstream,
              ) -> region_model.Contents | None:
        """What the region holds, if it is the bitstream."""
        contents = self._regions.known(job.target).contents
        if contents is None or contents.bitstream_id != bitstream.id:
            return None
        self._serve(job)
        return contents

    def _serve(self, job: _Job) -> None:
        if job.asker.instance_uuid is not None:
            self._regions.serve(job.target, job.asker.instance_uuid)

    def _check_free(self, target: regions_module.Target,
                    asker: programming.Asker, is_stopped: bool) -> None:
        """:raises Conflict: a guest has something of the region."""
        holders = self._holders()
        for deployable in target.deployables:
            for handle in deployable.handles:
                for name in (handle.uuid, *map(str, handle.functions)):
                    holder = holders.get(name)
                    if holder is None:
                        continue
                    if (holder != asker.instance_uuid
                            or target.region.is_shell):
                        raise exceptions.Conflict(
                            f'{target} is not programmed: a server has '
                            f'{deployable.name} of it')
                    if not (is_stopped or target.driver.programs_under_guest):
                        raise exceptions.Conflict(
                            f'{target} is not programmed: driver '
                            f'{target.device.driver} cannot do it while a '
                            'server has it')

    def _target_of(
        self, deployable_uuid: str, targets: Iterable[regions_module.Target],
    ) -> regions_module.Target:
        for target in targets:
            for deployable in target.deployables:
                if deployable_uuid == naming.derived_uuid(
                        self._node_uuid, target.device.name, 'deployable',
                        deployable.name):
                    return target
        raise exceptions.NotFound(
            f'this host has no deployable {deployable_uuid} that can be '
            'programmed')

    def _target_with(
        self, handle: attach_handle.AttachHandle,
    ) -> regions_module.Target:
        for target in self._regions.targets():
            for deployable in target.deployables:
                if any(found.uuid == handle.uuid
                       for found in deployable.handles):
                    return target
        raise exceptions.NotFound(
            f'{handle.address} is in no region that can be programmed')

    def _card_locked(
        self, target: regions_module.Target,
    ) -> contextlib.AbstractContextManager[object]:
        return lockutils.lock(
            f'nova_accel-{self._node_uuid}-{target.device.name}')

    def _deadline(self) -> float:
        return time.monotonic() + self._timeout_s


def _check_shell_loading(shell_loading: programming.ShellLoading,
                         wanted: bitstream_model.Wanted) -> None:
    """:raises NotAllowed, Conflict: it is refused."""
    if shell_loading is programming.ShellLoading.FORBIDDEN:
        raise exceptions.NotAllowed(
            f'{wanted} is a shell, which this caller may not load')
    if shell_loading is programming.ShellLoading.IN_USE:
        raise exceptions.Conflict(
            f'{wanted} is a shell, and somebody has something of the card')


def _key(arqs: Iterable[arq.Arq]) -> frozenset[str]:
    return frozenset(request.uuid for request in arqs)
