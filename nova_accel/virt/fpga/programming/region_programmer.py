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

"""The programmer of FPGA regions, for new servers, the API and later servers.

Workers program a server's regions while Nova downloads its image. Nova waits
for them where it makes the guest. Only one region of a card is programmed at
a time, and never one that another server has.

A region that was given back is cleaned by its blank bitstream. An idle region
may hold what servers will probably ask for: the API says what that is.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from concurrent import futures
import time
from typing import Any

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model.devices import programmable
from nova_accel.model.fpga import fpga_bitstream
from nova_accel.model.fpga import programming_record
from nova_accel.model.fpga import region_request
from nova_accel.virt.fpga.programming import programming_job
from nova_accel.virt.fpga.programming import region_loader
from nova_accel.virt.fpga.regions import host_regions
from nova_accel.virt.fpga.regions import region_target

LOG = logging.getLogger(__name__)

#: The number of worker threads. Regions of one card wait for each other.
_WORKERS = 16

_Job = programming_job.Job


class Programmer:
    """Programs the regions of one host.

    :param timeout_s: how long a server waits for its regions, and how long
        one programming may take
    :param cleans_with_stock: whether a region may be cleaned by what is in
        demand, instead of its blank bitstream
    """

    def __init__(
        self,
        node_uuid: str,
        regions: host_regions.Regions,
        loader: region_loader.Loader,
        timeout_s: float,
        cleans_with_stock: bool,
    ) -> None:
        self._node_uuid = node_uuid
        self._regions = regions
        self._loader = loader
        self._timeout_s = timeout_s
        self._cleans_with_stock = cleans_with_stock
        self._executor = futures.ThreadPoolExecutor(_WORKERS)
        self._begun: dict[frozenset[str], Sequence[_Job]] = {}

    def start(
        self,
        arqs: Iterable[arq_types.Arq],
        asker: programming_record.Asker,
        image_properties: Mapping[str, Any],
        context: Any,
    ) -> None:
        """Begin to program the regions of a new server.

        Then call :meth:`ready` with the same ARQs, or :meth:`abandon`.

        :param asker: with the server's instance
        :param image_properties: of the image that the server boots from
        :param context: the user's, who must be allowed to see the bitstreams
        :raises InvalidDeviceProfile: nonsense is asked for.
        :raises DeviceError: a device has nothing to program.
        :raises Conflict: two things are asked of one region.
        """
        arqs = tuple(arqs)
        jobs = self._begin(arqs, asker, image_properties, context, is_new=True)
        if jobs:
            self._begun[_key(arqs)] = jobs

    def ready(
        self,
        arqs: Iterable[arq_types.Arq],
        asker: programming_record.Asker,
        image_properties: Mapping[str, Any],
        is_new: bool = False,
    ) -> None:
        """Wait until a server's regions hold what is asked of them.

        If :meth:`start` was not called, programming begins now, with the
        service's rights.

        :param is_new: whether the server has not had the regions before
        :raises AcceleratorError: a region does not hold it, or not in time.
        """
        arqs = tuple(arqs)
        jobs = self._begun.pop(_key(arqs), None)
        if jobs is None:
            jobs = self._begin(arqs, asker, image_properties, None, is_new)
        programming_job.wait_for(jobs)

    def abandon(self, instance_uuid: str) -> None:
        """Stop what :meth:`start` has begun for a server that is given up.

        A programming that cannot be stopped has ended when this returns.
        """
        for key, jobs in list(self._begun.items()):
            if any(job.asker.instance_uuid == instance_uuid for job in jobs):
                self._begun.pop(key, None)
                programming_job.abandon(jobs)

    def program(
        self,
        deployable_uuid: str,
        wanted: fpga_bitstream.WantedBitstream,
        asker: programming_record.Asker,
        context: Any,
        shell_loading: programming_record.ShellLoading = (
            programming_record.ShellLoading.FORBIDDEN
        ),
    ) -> programmable.Contents:
        """Program the region of a deployable, unless it holds that already.

        If the bitstream is a shell, it is loaded into the card.

        :param asker: with the instance that has the region, if the asker may
            have it programmed. The instance has to be stopped, unless the
            driver can program under a guest
        :param shell_loading: whether the API lets the asker load a shell
        :raises NotFound: there is no such deployable with a region; or, for
            a shell, none whose card can get another shell.
        :raises BitstreamNotFound, BitstreamRefused: see ``Store.resolve``.
        :raises NotAllowed: it is a shell, which this asker may not load.
        :raises Conflict: a guest has the region; or, for a shell, any part of
            the card.
        :raises DeviceError: it failed.
        """
        is_shell = self._loader.is_shell(wanted, context)
        if is_shell:
            shell_loading.check(wanted)
        job = self._job(self._target(deployable_uuid, is_shell), asker)
        return self._loader.put_if_free(job, wanted, context)

    def stock(self, deployable_uuid: str, bitstream_id: str) -> None:
        """Have an idle region hold a bitstream; it is tried once.

        Does not raise: a region that a server has, or that cannot be used,
        stays as it is.
        """
        try:
            self._stock(self._target(deployable_uuid), bitstream_id)
        except Exception as error:
            is_ours = isinstance(error, exceptions.AcceleratorError)
            LOG.log(
                logging.WARNING if is_ours else logging.ERROR,
                'Deployable %s does not get bitstream %s for later servers: '
                '%s',
                deployable_uuid,
                bitstream_id,
                error,
                exc_info=not is_ours,
            )

    def _stock(self, target: region_target.Target, bitstream_id: str) -> None:
        fault = self._regions.known(target).fault
        if fault is not None:
            raise exceptions.DeviceError(f'{target}: {fault}')
        try:
            self._loader.stock(self._job(target), bitstream_id)
        except exceptions.DeviceError:
            if self._regions.known(target).fault is not None:
                self._repair(self._job(target))
            raise

    def clean(
        self, handle: attach_handle.AttachHandle, bitstream_id: str | None
    ) -> None:
        """Program the region of a handle that was given back.

        A region that holds the bitstream already is programmed, too. That
        clears what a guest has left in the circuit's own memory.

        :param handle: its ``cleaning`` has the id of the blank bitstream
        :param bitstream_id: of a bitstream that is in demand, if there is one
        :raises DeviceError: the region holds neither afterwards.
        """
        try:
            target = region_target.of_handle(self._regions.targets(), handle)
            if (
                bitstream_id is None
                or not self._cleans_with_stock
                or not self._loader.clean_with(self._job(target), bitstream_id)
            ):
                _method, blank_id = handle.cleaning
                self._loader.blank(self._job(target), blank_id)
        except exceptions.DeviceError:
            raise
        except exceptions.AcceleratorError as error:
            raise exceptions.DeviceError(str(error)) from error

    def _begin(
        self,
        arqs: Iterable[arq_types.Arq],
        asker: programming_record.Asker,
        image_properties: Mapping[str, Any],
        context: Any,
        is_new: bool,
    ) -> list[_Job]:
        targets = {each.key: each for each in self._regions.targets()}
        jobs = []
        for request in region_request.of(
            arqs,
            ((each.device, each.region) for each in targets.values()),
            image_properties,
        ):
            job = self._job(targets[request.key], asker, is_stopped=True)
            # Nothing is known of other regions but what the driver says.
            if request.wanted is not None or self._regions.is_journaled(
                job.target
            ):
                job.run(
                    self._executor.submit(
                        self._ensure, job, request, context, is_new
                    )
                )
                jobs.append(job)
        return jobs

    def _ensure(
        self,
        job: _Job,
        request: region_request.RegionRequest,
        context: Any,
        is_new: bool,
    ) -> None:
        try:
            self._loader.ensure(job, request, context, is_new)
        except exceptions.BitstreamUnusable:
            self._executor.submit(self._repair_unclean, job)
            raise

    def _repair_unclean(self, job: _Job) -> None:
        """Repair a region in which a project's bitstream has failed."""
        unclean = self._regions.known(job.target).unclean
        if unclean is not None and unclean.owner == programmable.UNKNOWN_OWNER:
            self._repair(self._job(job.target, job.asker, job.is_stopped))

    def _repair(self, job: _Job) -> None:
        """Make a region usable again after a bitstream has failed in it.

        If this works, the bitstream was at fault, and not the card.
        """
        try:
            self._loader.replace(job)
        except exceptions.AcceleratorError as error:
            LOG.error('%s stays bad: %s', job.target, error)

    def _target(
        self, deployable_uuid: str, is_shell: bool = False
    ) -> region_target.Target:
        """:raises NotFound: it is in no region that can be programmed."""
        return region_target.of_deployable(
            self._regions.targets(is_shell), self._node_uuid, deployable_uuid
        )

    def _job(
        self,
        target: region_target.Target,
        asker: programming_record.Asker = region_loader.NOBODY,
        is_stopped: bool = False,
    ) -> _Job:
        deadline = time.monotonic() + self._timeout_s
        return _Job(target, asker, deadline, is_stopped)


def _key(arqs: Iterable[arq_types.Arq]) -> frozenset[str]:
    return frozenset(arq.uuid for arq in arqs)
