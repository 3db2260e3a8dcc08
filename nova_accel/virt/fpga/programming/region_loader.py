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

"""The choice of the bitstream that is loaded into a region.

Each way to choose has its own right to the bitstream, and its own source of
the file: Glance for whoever asks, the cache for what a region held before.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import dataclasses
from typing import Any

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.bitstreams import bitstream_cache
from nova_accel.bitstreams import store
from nova_accel.model.devices import programmable
from nova_accel.model.fpga import fpga_bitstream
from nova_accel.model.fpga import programming_record
from nova_accel.model.fpga import region_request
from nova_accel.virt.fpga.programming import programming_job
from nova_accel.virt.fpga.regions import host_regions

LOG = logging.getLogger(__name__)

#: The asker of a programming that no server and no user asks for.
NOBODY = programming_record.Asker()

#: The faults after which a region is not cleaned by that bitstream again.
_LASTING = (
    exceptions.DeviceError,
    exceptions.BitstreamNotFound,
    exceptions.BitstreamRefused,
)

_Job = programming_job.Job


class _NotKeptError(Exception):
    """The file of a circuit is not in the cache any more."""


class Loader:
    """Loads bitstreams into the regions of one host.

    :param service_context: the service's own context, for programmings that
        no user asks for
    """

    def __init__(
        self,
        regions: host_regions.Regions,
        jobs: programming_job.Jobs,
        bitstreams: store.Store,
        service_context: Callable[[], Any],
    ) -> None:
        self._regions = regions
        self._jobs = jobs
        self._bitstreams = bitstreams
        self._service_context = service_context
        # Device and region -> the bitstream that did not get into it.
        self._unfit: dict[tuple[str, str], str] = {}

    def ensure(
        self,
        job: _Job,
        request: region_request.RegionRequest,
        context: Any,
        is_new: bool,
    ) -> None:
        """Have a region hold what a server asks of it, and give it the region.

        :param context: as for :meth:`put`
        :param is_new: whether the server has not had the region before
        :raises AcceleratorError: the region does not hold it.
        """
        with self._jobs.card_locked(job):
            known = self._regions.known(job.target)
            last = None if is_new else self._regions.last(job.target)
            had = last.circuit_of(job.asker.instance_uuid) if last else None
            if had is not None and known.contents is not None:
                return
            # The region has lost its contents in a boot of the host.
            is_lost = had is not None and known.fault is None
            if (
                request.wanted is None
                and not is_lost
                and known.unclean_for(job.asker.project_id) is None
            ):
                self._give(job, request)
                return
        if had is not None and is_lost:
            self.load_again(job, had)
        elif request.wanted is not None:
            self.put(job, request.wanted, context)
        else:
            self.replace(job)
            with self._jobs.card_locked(job):
                self._give(job, request)

    def _give(self, job: _Job, request: region_request.RegionRequest) -> None:
        """Give a region to a server as it is, while the card is locked.

        :raises DeviceError: its contents are not for that server.
        """
        request.check(self._regions.known(job.target), job.asker.project_id)
        self._regions.serve(job.target, job.asker.instance_uuid)

    def is_shell(
        self, wanted: fpga_bitstream.WantedBitstream, context: Any
    ) -> bool:
        """See :meth:`.store.Store.is_shell`."""
        return self._bitstreams.is_shell(wanted, context)

    def put_if_free(
        self, job: _Job, wanted: fpga_bitstream.WantedBitstream, context: Any
    ) -> programmable.Contents:
        """Have a region hold a bitstream if no one else uses the region.

        :raises AcceleratorError: as :meth:`put`, also if others use it.
        """
        self._jobs.check_free(job)
        return self.put(job, wanted, context)

    def put(
        self,
        job: _Job,
        wanted: fpga_bitstream.WantedBitstream,
        context: Any,
        recorded: programming_record.Asker | None = None,
    ) -> programmable.Contents:
        """Have a region hold a bitstream.

        :param context: whose rights in Glance count; None for the service's
        :param recorded: as for :meth:`.programming_job.Jobs.do`
        :raises AcceleratorError: the region does not hold it.
        """
        target = job.target
        if context is None:
            context = self._service_context()
        bitstream = self._bitstreams.resolve(
            wanted, target.device, target.region, context
        )
        with self._jobs.card_locked(job):
            contents = self._jobs.held(job, bitstream)
            if contents is not None:
                LOG.info('%s holds %s already', target, bitstream)
                return contents
        with _blamed(bitstream):
            return self._jobs.do(
                job,
                bitstream,
                lambda: self._bitstreams.fetched(bitstream, context),
                recorded=recorded,
            )

    def load_again(
        self,
        job: _Job,
        circuit: programmable.Circuit,
        recorded: programming_record.Asker | None = None,
    ) -> None:
        """Program a region with a circuit that it held before.

        The file is taken from this host, if it is still here.

        :param recorded: as for :meth:`.programming_job.Jobs.do`
        :raises AcceleratorError: the region does not hold it.
        """
        try:
            self._jobs.do(
                job,
                fpga_bitstream.from_circuit(circuit),
                lambda: self._kept(circuit),
                recorded=recorded,
            )
        except _NotKeptError:
            wanted = fpga_bitstream.WantedBitstream(circuit.bitstream_id)
            self.put(job, wanted, None, recorded)

    def blank(self, job: _Job, bitstream_id: str) -> None:
        """Program a region with the blank bitstream of the operator.

        A region that holds it already is programmed, too.

        :raises AcceleratorError: the region does not hold it afterwards.
        """
        context = self._service_context()
        bitstream = self._bitstreams.resolve(
            fpga_bitstream.WantedBitstream(bitstream_id),
            job.target.device,
            job.target.region,
            context,
        )
        self._jobs.do(
            job,
            # The operator's line names it, so no project owns it.
            dataclasses.replace(bitstream, owner=None),
            lambda: self._bitstreams.fetched(bitstream, context),
            is_repeated=True,
            recorded=NOBODY,
        )

    def stock(
        self, job: _Job, bitstream_id: str, is_repeated: bool = False
    ) -> None:
        """Have a region hold a bitstream that no server has asked for yet.

        :param is_repeated: as for :meth:`.programming_job.Jobs.do`
        :raises AcceleratorError: the region does not hold it, or not every
            project may use it.
        """
        context = self._service_context()
        bitstream = self._bitstreams.resolve_for_all(
            bitstream_id, job.target.device, job.target.region, context
        )
        self._jobs.do(
            job,
            bitstream,
            lambda: self._bitstreams.fetched(bitstream, context),
            is_repeated=is_repeated,
        )

    def clean_with(self, job: _Job, bitstream_id: str) -> bool:
        """Clean a region by a bitstream in demand.

        :returns: whether the region holds it, newly programmed
        """
        key = job.target.key
        if self._unfit.get(key) == bitstream_id:
            return False
        try:
            self.stock(job, bitstream_id, is_repeated=True)
        except exceptions.AcceleratorError as error:
            LOG.warning(
                '%s is cleaned by its blank bitstream, not by %s: %s',
                job.target,
                bitstream_id,
                error,
            )
            # It may work the next time if only Glance was away.
            if isinstance(error, _LASTING):
                self._unfit[key] = bitstream_id
            return False
        return True

    def replace(self, job: _Job) -> None:
        """Program a region with a bitstream that every project may get.

        It is the operator's blank bitstream. Without one, it is the last
        bitstream of the operator that the region held. If there is neither,
        the region stays as it is.

        :raises AcceleratorError: it failed.
        """
        if job.target.blank is not None:
            self.blank(job, job.target.blank)
            return
        last = self._regions.last(job.target)
        if last is not None and last.operators is not None:
            self.load_again(job, last.operators, recorded=NOBODY)

    @contextlib.contextmanager
    def _kept(
        self, circuit: programmable.Circuit
    ) -> Iterator[bitstream_cache.Fetched]:
        """:raises _NotKeptError: it is not here any more."""
        with self._bitstreams.kept(circuit.sha256) as file:
            if file is None:
                raise _NotKeptError
            yield file


@contextlib.contextmanager
def _blamed(bitstream: fpga_bitstream.Bitstream) -> Iterator[None]:
    """:raises BitstreamUnusable: every host would refuse its bytes."""
    try:
        yield
    except exceptions.BitstreamUnusable:
        raise
    except exceptions.BitstreamRefused as error:
        raise exceptions.BitstreamUnusable(
            str(error),
            bitstream.id,
            public=f'upload it again, or ask for another: {error.public}',
        ) from error
