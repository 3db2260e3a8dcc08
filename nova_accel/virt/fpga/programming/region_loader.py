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

"""Loads bitstreams into the regions of FPGAs.

A bitstream is fetched first. Its card is locked while the region is
programmed, and only then the bitstream is pinned in the cache: programmings
that wait for a card leave the cache to others. The history has how each
programming began and ended.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import dataclasses
from typing import Any

from oslo_concurrency import lockutils
from oslo_log import log as logging
from oslo_utils import uuidutils

from nova_accel import exceptions
from nova_accel.bitstreams import store
from nova_accel.model import fpga_bitstream
from nova_accel.model import naming
from nova_accel.model import programmable
from nova_accel.model import programming_record
from nova_accel.virt.fpga.programming import programming_history
from nova_accel.virt.fpga.programming import programming_job
from nova_accel.virt.fpga.regions import host_regions
from nova_accel.virt.fpga.regions import programming_attempt
from nova_accel.virt.fpga.regions import region_target
from nova_accel.virt.fpga.regions import region_use

LOG = logging.getLogger(__name__)

#: The asker of a programming that no server and no user asks for.
NOBODY = programming_record.Asker()

_Job = programming_job.Job

#: Fetches a bitstream unless it is here; its file is pinned during the body.
_Fetch = Callable[[], contextlib.AbstractContextManager[store.Fetched]]


class _NotKeptError(Exception):
    """The file of a circuit is not in the cache any more."""


class Loader:
    """Loads bitstreams into the regions of one host.

    :param changed: is called when a region holds something else
    :param service_context: the service's own context, for programmings that
        no user asks for
    """

    def __init__(
        self,
        node_uuid: str,
        regions: host_regions.Regions,
        use: region_use.RegionUse,
        bitstreams: store.Store,
        history: programming_history.History,
        changed: Callable[[], None],
        service_context: Callable[[], Any],
    ) -> None:
        self._node_uuid = node_uuid
        self._regions = regions
        self._use = use
        self._bitstreams = bitstreams
        self._history = history
        self._changed = changed
        self._service_context = service_context

    def put(
        self,
        job: _Job,
        wanted: fpga_bitstream.Wanted,
        context: Any,
        is_stopped: bool,
        recorded: programming_record.Asker | None = None,
    ) -> programmable.Contents:
        """Have a region hold a bitstream.

        :param context: whose rights in Glance count; None for the service's
        :param is_stopped: whether the guest of the asker does not run
        :param recorded: as for :meth:`_load`
        :raises AcceleratorError: the region does not hold it.
        """
        target = job.target
        if context is None:
            context = self._service_context()
        bitstream = self._bitstreams.resolve(
            wanted, target.device, target.region, context
        )
        with self.card_locked(target):
            contents = self._held(job, bitstream)
            if contents is not None:
                LOG.info('%s holds %s already', target, bitstream)
                return contents
        return self._load(
            job,
            bitstream,
            lambda: self._fetched(bitstream, context),
            is_stopped,
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

        :param recorded: as for :meth:`_load`
        :raises AcceleratorError: the region does not hold it.
        """
        try:
            self._load(
                job,
                fpga_bitstream.from_circuit(circuit),
                lambda: self._kept(circuit),
                is_stopped=True,
                recorded=recorded,
            )
        except _NotKeptError:
            self.put(
                job,
                fpga_bitstream.Wanted(circuit.bitstream_id),
                None,
                is_stopped=True,
                recorded=recorded,
            )

    def blank(self, job: _Job, bitstream_id: str, is_stopped: bool) -> None:
        """Program a region with the blank bitstream of the operator.

        A region that holds it already is programmed, too.

        :param is_stopped: as for :meth:`put`
        :raises AcceleratorError: the region does not hold it afterwards.
        """
        context = self._service_context()
        bitstream = self._bitstreams.resolve(
            fpga_bitstream.Wanted(bitstream_id),
            job.target.device,
            job.target.region,
            context,
        )
        self._load(
            job,
            # The operator's line names it, so no project owns it.
            dataclasses.replace(bitstream, owner=None),
            lambda: self._bitstreams.fetched(bitstream, context),
            is_stopped,
            is_repeated=True,
            recorded=NOBODY,
        )

    def stock(
        self, job: _Job, bitstream_id: str, is_repeated: bool = False
    ) -> None:
        """Have a region hold a bitstream that no server has asked for yet.

        :param is_repeated: as for :meth:`_load`
        :raises AcceleratorError: the region does not hold it, or not every
            project may use it.
        """
        context = self._service_context()
        bitstream = self._bitstreams.resolve_for_all(
            bitstream_id, job.target.device, job.target.region, context
        )
        self._load(
            job,
            bitstream,
            lambda: self._bitstreams.fetched(bitstream, context),
            is_stopped=False,
            is_repeated=is_repeated,
        )

    def replace(self, job: _Job) -> None:
        """Program a region with a bitstream that every project may get.

        It is the operator's blank bitstream. Without one, it is the last
        bitstream of the operator that the region held. If there is neither,
        the region stays as it is.

        :raises AcceleratorError: it failed.
        """
        if job.target.blank is not None:
            self.blank(job, job.target.blank, is_stopped=True)
            return
        circuit = self._regions.operators(job.target)
        if circuit is not None:
            self.load_again(job, circuit, recorded=NOBODY)

    def serve(self, job: _Job) -> None:
        """Journal that the job's instance is given the region as it is.

        :raises DeviceError: the journal is damaged, or the disk refused.
        """
        if job.asker.instance_uuid is not None:
            self._regions.serve(job.target, job.asker.instance_uuid)

    def card_locked(
        self, target: region_target.Target
    ) -> contextlib.AbstractContextManager[object]:
        """Lock a card, of which only one region is programmed at a time."""
        return lockutils.lock(
            f'nova_accel-{self._node_uuid}-{target.device.name}'
        )

    @contextlib.contextmanager
    def _fetched(
        self, bitstream: fpga_bitstream.Bitstream, context: Any
    ) -> Iterator[store.Fetched]:
        """The file of a bitstream, while the body runs.

        :raises BitstreamUnusable: every host would refuse its bytes.
        """
        with contextlib.ExitStack() as stack:
            try:
                file = stack.enter_context(
                    self._bitstreams.fetched(bitstream, context)
                )
            except exceptions.BitstreamRefused as error:
                raise exceptions.BitstreamUnusable(
                    str(error),
                    bitstream.id,
                    public=(
                        f'upload it again, or ask for another: {error.public}'
                    ),
                ) from error
            yield file

    @contextlib.contextmanager
    def _kept(self, circuit: programmable.Circuit) -> Iterator[store.Fetched]:
        """The file of a circuit, while the body runs.

        :raises _NotKeptError: it is not here any more.
        """
        with self._bitstreams.kept(circuit.sha256) as file:
            if file is None:
                raise _NotKeptError
            yield file

    def _fetch_unpinned(self, job: _Job, fetch: _Fetch) -> None:
        """Fetch a file before its card is locked, for which servers wait.

        For one asker only one is fetched for a region at a time. A file that
        leaves the cache meanwhile is fetched again.

        :raises DeviceError: nobody waits for the job any more.
        """
        target, asker = job.target, job.asker
        with lockutils.lock(
            f'nova_accel-{self._node_uuid}-{target.device.name}-'
            f'{target.region.name}-{asker.project_id}-{asker.instance_uuid}'
        ):
            job.check_wanted()
            programming_attempt.left_s(job.deadline)
            with fetch():
                pass

    def _load(
        self,
        job: _Job,
        bitstream: fpga_bitstream.Bitstream,
        fetch: _Fetch,
        is_stopped: bool,
        is_repeated: bool = False,
        recorded: programming_record.Asker | None = None,
    ) -> programmable.Contents:
        """Fetch a bitstream and program a region with it.

        :param is_stopped: as for :meth:`put`
        :param is_repeated: program the region even if it holds the bitstream
        :param recorded: the asker to record, who is then served with the
            region; by default the job's asker
        """
        target = job.target
        self._use.check_free(target, job.asker, is_stopped)
        record = programming_record.Record(
            uuidutils.generate_uuid(),
            naming.derived_uuid(self._node_uuid, target.device.name),
            target.region.name,
            bitstream.id,
            recorded or job.asker,
            programming_attempt.now(),
        )
        try:
            self._fetch_unpinned(job, fetch)
            with self.card_locked(target):
                # Another thread may have programmed it meanwhile.
                contents = None if is_repeated else self._held(job, bitstream)
                if contents is not None:
                    return contents
                with fetch() as file, job.touching():
                    return self._program(
                        job, record, bitstream, file, is_stopped
                    )
        except exceptions.AcceleratorError as error:
            self._history.note(programming_attempt.ended(record, str(error)))
            raise

    def _program(
        self,
        job: _Job,
        record: programming_record.Record,
        bitstream: fpga_bitstream.Bitstream,
        file: store.Fetched,
        is_stopped: bool,
    ) -> programmable.Contents:
        self._history.note(record)
        LOG.info('Programming %s with %s', job.target, bitstream)
        try:
            contents = self._regions.program(
                job.target,
                record,
                bitstream,
                file.path,
                file.sha256,
                job.deadline,
                lambda: self._use.check_free(
                    job.target, job.asker, is_stopped
                ),
            )
        finally:
            self._changed()
        done = programming_attempt.ended(record, None)
        LOG.info(
            'Programmed %s with %s, %.1f s after it was begun',
            job.target,
            bitstream,
            (programming_attempt.now() - record.started_at).total_seconds(),
        )
        self._history.note(done)
        return contents

    def _held(
        self,
        job: _Job,
        bitstream: fpga_bitstream.Bitstream,
    ) -> programmable.Contents | None:
        """The contents of the region, if it holds the bitstream.

        The job's instance is then served with them.
        """
        contents = self._regions.known(job.target).contents
        if contents is None or contents.bitstream_id != bitstream.id:
            return None
        restated = self._regions.restate(job.target, bitstream)
        if restated != contents:
            self._changed()
        self.serve(job)
        return restated
