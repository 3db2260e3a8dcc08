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

"""The contents of regions while no server has them.

A region is cleaned by its blank bitstream, if its guest's circuit has to go. A
region may also hold what servers will probably ask for: the API says what
that is.
"""

import time

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.model import attach_handle
from nova_accel.virt.fpga.programming import programming_job
from nova_accel.virt.fpga.programming import region_loader
from nova_accel.virt.fpga.regions import host_regions
from nova_accel.virt.fpga.regions import region_target
from nova_accel.virt.fpga.regions import region_use

LOG = logging.getLogger(__name__)

#: The faults after which a region is not cleaned by that bitstream again.
_LASTING = (
    exceptions.DeviceError,
    exceptions.BitstreamNotFound,
    exceptions.BitstreamRefused,
)


class Stock:
    """Programs the idle regions of one host.

    :param cleans_with_stock: whether a region may be cleaned by what is in
        demand, instead of its blank bitstream
    :param timeout_s: how long one programming may take
    """

    def __init__(
        self,
        regions: host_regions.Regions,
        use: region_use.RegionUse,
        loader: region_loader.Loader,
        cleans_with_stock: bool,
        timeout_s: float,
    ) -> None:
        self._regions = regions
        self._use = use
        self._loader = loader
        self._cleans_with_stock = cleans_with_stock
        self._timeout_s = timeout_s
        # (Device, region) -> the bitstream that did not get into it.
        self._unfit: dict[tuple[str, str], str] = {}

    def put(self, deployable_uuid: str, bitstream_id: str) -> None:
        """Have an idle region hold a bitstream; it is tried once.

        Does not raise: a region that a server has, or that cannot be used,
        stays as it is.
        """
        try:
            target = self._use.target_of(deployable_uuid, is_shell=False)
            fault = self._regions.known(target).fault
            if fault is not None:
                raise exceptions.DeviceError(f'{target}: {fault}')
            try:
                self._loader.stock(self._job(target), bitstream_id)
            except exceptions.DeviceError:
                self._restore(target)
                raise
        except exceptions.AcceleratorError as error:
            LOG.warning(
                'Deployable %s does not get bitstream %s for later servers: '
                '%s',
                deployable_uuid,
                bitstream_id,
                error,
            )
        except Exception:
            LOG.exception(
                'Deployable %s does not get bitstream %s for later servers',
                deployable_uuid,
                bitstream_id,
            )

    def _restore(self, target: region_target.Target) -> None:
        """Make a region usable again after a bitstream has failed in it."""
        try:
            if self._regions.known(target).fault is not None:
                self._loader.replace(self._job(target))
        except exceptions.AcceleratorError as error:
            LOG.error('%s stays bad: %s', target, error)

    def blank(
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
            target = self._use.target_with(handle)
            if self._is_cleaned_with(target, bitstream_id):
                return
            _method, blank_id = handle.cleaning
            self._loader.blank(self._job(target), blank_id, is_stopped=False)
        except exceptions.DeviceError:
            raise
        except exceptions.AcceleratorError as error:
            raise exceptions.DeviceError(str(error)) from error

    def _is_cleaned_with(
        self, target: region_target.Target, bitstream_id: str | None
    ) -> bool:
        """Whether a region holds a bitstream in demand, newly programmed."""
        key = target.device.name, target.region.name
        if (
            bitstream_id is None
            or not self._cleans_with_stock
            or self._unfit.get(key) == bitstream_id
        ):
            return False
        try:
            self._loader.stock(
                self._job(target), bitstream_id, is_repeated=True
            )
        except exceptions.AcceleratorError as error:
            LOG.warning(
                '%s is cleaned by its blank bitstream, not by %s: %s',
                target,
                bitstream_id,
                error,
            )
            # It may work the next time if only Glance was away.
            if isinstance(error, _LASTING):
                self._unfit[key] = bitstream_id
            return False
        return True

    def _job(self, target: region_target.Target) -> programming_job.Job:
        return programming_job.Job(
            target, region_loader.NOBODY, time.monotonic() + self._timeout_s
        )
