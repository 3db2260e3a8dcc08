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

"""The programmer of FPGA regions, for new servers and for the API.

Workers program a server's regions while Nova downloads its image. Nova waits
for them where it makes the guest. Only one region of a card is programmed at
a time, and never one that another server has.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from concurrent import futures
import time
from typing import Any

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.bitstreams import store
from nova_accel.model import arq_types
from nova_accel.model import fpga_bitstream
from nova_accel.model import programmable
from nova_accel.model import programming_record
from nova_accel.virt.fpga.programming import programming_job
from nova_accel.virt.fpga.programming import region_loader
from nova_accel.virt.fpga.programming import region_request
from nova_accel.virt.fpga.regions import host_regions
from nova_accel.virt.fpga.regions import region_target
from nova_accel.virt.fpga.regions import region_use

LOG = logging.getLogger(__name__)

#: The number of worker threads. Regions of one card wait for each other.
_WORKERS = 16

_Job = programming_job.Job


class Programmer:
    """Programs the regions of one host.

    :param timeout_s: how long a server waits for its regions, and how long
        one programming may take
    """

    def __init__(
        self,
        regions: host_regions.Regions,
        use: region_use.RegionUse,
        bitstreams: store.Store,
        loader: region_loader.Loader,
        timeout_s: float,
    ) -> None:
        self._regions = regions
        self._use = use
        self._bitstreams = bitstreams
        self._loader = loader
        self._timeout_s = timeout_s
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
        try:
            for job in jobs:
                job.wait()
        finally:
            programming_job.abandon(jobs)

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
        wanted: fpga_bitstream.Wanted,
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
        is_shell = (
            wanted.bitstream_id is not None
            and self._bitstreams.is_shell(wanted.bitstream_id, context)
        )
        if is_shell:
            _check_shell_loading(shell_loading, wanted)
        target = self._use.target_of(deployable_uuid, is_shell)
        self._use.check_free(target, asker, is_stopped=False)
        job = _Job(target, asker, self._deadline())
        return self._loader.put(job, wanted, context, is_stopped=False)

    def _begin(
        self,
        arqs: Iterable[arq_types.Arq],
        asker: programming_record.Asker,
        image_properties: Mapping[str, Any],
        context: Any,
        is_new: bool,
    ) -> list[_Job]:
        deadline = self._deadline()
        jobs = []
        for request in region_request.of(
            arqs, self._regions.targets(), image_properties
        ):
            # Nothing is known of other regions but what the driver says.
            if request.wanted is not None or self._regions.is_journaled(
                request.target
            ):
                job = _Job(request.target, asker, deadline)
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
        request: region_request.Request,
        context: Any,
        is_new: bool,
    ) -> None:
        """Have a region hold what a server asks of it."""
        wanted = request.wanted
        with self._loader.card_locked(job.target):
            known = self._regions.known(job.target)
            last = (
                None
                if is_new
                else self._regions.served(job.target, job.asker.instance_uuid)
            )
            if last is not None and known.contents is not None:
                return
            # The region has lost its contents in a boot of the host.
            is_lost = last is not None and known.fault is None
            if (
                wanted is None
                and not is_lost
                and (
                    known.fault is not None
                    or known.unclean_for(job.asker.project_id) is None
                )
            ):
                self._give(job, request)
                return
        try:
            if last is not None and is_lost:
                self._loader.load_again(job, last)
            elif wanted is None:
                self._loader.replace(job)
                with self._loader.card_locked(job.target):
                    self._give(job, request)
            else:
                self._loader.put(job, wanted, context, is_stopped=True)
        except exceptions.BitstreamUnusable:
            self._executor.submit(self._repair, job.target, job.asker)
            raise

    def _give(self, job: _Job, request: region_request.Request) -> None:
        """Give a region to a server as it is, while the card is locked.

        :raises DeviceError: its contents are not for that server.
        """
        request.check(self._regions.known(job.target), job.asker.project_id)
        self._loader.serve(job)

    def _repair(
        self, target: region_target.Target, asker: programming_record.Asker
    ) -> None:
        """Make a region usable again after a bitstream has failed in it.

        If this works, the bitstream was at fault, and not the card.
        """
        try:
            unclean = self._regions.known(target).unclean
            if (
                unclean is not None
                and unclean.owner == programmable.UNKNOWN_OWNER
            ):
                self._loader.replace(_Job(target, asker, self._deadline()))
        except exceptions.AcceleratorError as error:
            LOG.error('%s stays unclean: %s', target, error)

    def _deadline(self) -> float:
        return time.monotonic() + self._timeout_s


def _check_shell_loading(
    shell_loading: programming_record.ShellLoading,
    wanted: fpga_bitstream.Wanted,
) -> None:
    """:raises NotAllowed, Conflict: the shell may not be loaded."""
    if shell_loading is programming_record.ShellLoading.FORBIDDEN:
        raise exceptions.NotAllowed(
            f'{wanted} is a shell, which this caller may not load'
        )
    if shell_loading is programming_record.ShellLoading.IN_USE:
        raise exceptions.Conflict(
            f'{wanted} is a shell, and somebody has something of the card'
        )


def _key(arqs: Iterable[arq_types.Arq]) -> frozenset[str]:
    return frozenset(arq.uuid for arq in arqs)
