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

"""Erase NVMe controllers with nvme-cli, and verify the result.

Fields, bits and commands are from the NVM Express Base Specification 2.0:
Identify Controller (figure 275), Identify Namespace (NVM Command Set 1.0,
figure 97), Format NVM (5.14), Sanitize (5.24) and its log (5.16.1.20). They
are read in raw form, which is the same in all versions of nvme-cli.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import functools
from typing import Any

from oslo_log import log as logging
import tenacity

from nova_accel import exceptions
from nova_accel import privileged
from nova_accel.drivers import nvme_progress
from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address
from nova_accel.privileged import nvme
from nova_accel.privileged import nvme_drive

LOG = logging.getLogger(__name__)

#: How long a drive may take to sanitize itself; overwriting takes hours.
SANITIZE_TIMEOUT_S = 12 * 3600

# SANICAP: the bit of each ability, and the action (SANACT) that uses it. Block
# erase is first, because erased blocks can be told from data.
_ACTIONS = ((1 << 1, 2), (1 << 0, 4), (1 << 2, 3))

# CMIC: its subsystem may have other controllers, or has them, as a VF's.
_MAY_BE_SHARED, _IS_VIRTUAL = 1 << 1, 1 << 2


class NvmeController:
    """A controller that is bound to the host's ``nvme`` driver.

    Each step finds it by its address and serial number, because the kernel
    gives the name of a vanished controller to the next one.

    :param serial: the serial number that it must have, None for any
    :param bound_within_s: how long libvirt and the kernel may take to bind it,
        in seconds
    :param others: the addresses of the drive's other controllers that the
        host's driver has, see :func:`.nvme_subsystem.others`. If they are all
        others of its subsystem, no one else has the drive, and they must tell
        afterwards that it is erased.
    :raises DeviceError: it is not bound, is another controller, or does not
        answer.
    """

    def __init__(
        self,
        sysfs: sysfs_tree.Sysfs,
        address: pci_address.PciAddress,
        serial: str | None = None,
        bound_within_s: float = 30,
        others: Iterable[pci_address.PciAddress] = (),
    ) -> None:
        self._sysfs = sysfs
        self._address = address
        try:
            (self._name,) = tenacity.Retrying(
                retry=tenacity.retry_if_result(lambda names: not names),
                wait=tenacity.wait_fixed(1),
                stop=tenacity.stop_after_delay(bound_within_s),
            )(sysfs.names, address, 'nvme')
        except tenacity.RetryError as error:
            raise exceptions.DeviceError(
                f'{address} is not erased: the driver nvme of the host does '
                'not have it'
            ) from error
        self._serial = serial or self._read('serial')
        self._identity = self._ask(nvme.identify)
        try:
            self._others = tuple(
                NvmeController(sysfs, other, self._serial) for other in others
            )
        except exceptions.DeviceError as error:
            # Then it is shared with what root is not told to touch.
            LOG.info(
                'Another controller of %s is left alone: %s', address, error
            )
            self._others = ()

    def can_be_sanitized(self) -> bool:
        """Whether it can sanitize its subsystem, and no one else has it."""
        return bool(self._action()) and not self._is_shared

    def sanitize(self, is_virtual: bool) -> None:
        """Erase the whole subsystem, or wait for a sanitize that is running.

        :param is_virtual: whether it is a virtual function
        :raises DeviceError: it cannot, or has failed.
        """
        if is_virtual or not self.can_be_sanitized():
            raise exceptions.DeviceError(
                f'{self._address} is not sanitized: it cannot do it, or its '
                'subsystem, all of which would be erased, has controllers '
                "that the host's driver nvme does not have or that no line "
                'offers'
            )
        formats = self._all_formats()
        if (
            nvme_progress.status(self._ask(nvme.sanitize_log))
            != nvme_progress.IN_PROGRESS
        ):
            self._ask(nvme.sanitize, self._action())
        status = self._sanitized()
        if status not in nvme_progress.COMPLETED:
            raise exceptions.DeviceError(
                f'{self._address} has failed to sanitize itself: the status '
                f'in its log is {status}'
            )
        self._check_same_formats(formats)

    def _sanitized(self) -> int:
        """Wait until a sanitize ends.

        :returns: its status
        :raises DeviceError: it does not move, or takes too long.
        """
        stall = nvme_progress.Stall()
        try:
            log = tenacity.Retrying(
                retry=tenacity.retry_if_result(
                    lambda log: (
                        nvme_progress.status(log) == nvme_progress.IN_PROGRESS
                    )
                ),
                wait=tenacity.wait_exponential(min=1, max=60),
                stop=tenacity.stop_any(
                    stall, tenacity.stop_after_delay(SANITIZE_TIMEOUT_S)
                ),
            )(self._ask, nvme.sanitize_log)
        except tenacity.RetryError as error:
            raise exceptions.DeviceError(
                f'{self._address} is still being sanitized: '
                f'{stall.percent} % are done, and it has not got further for '
                f'{stall.limit_s} s. If it stays so, power it off and on, or '
                'exchange it'
                if stall.is_over
                else f'{self._address} is still being sanitized after '
                f'{SANITIZE_TIMEOUT_S} s'
            ) from error
        return nvme_progress.status(log)

    def format(self) -> None:
        """Erase the user data of its namespaces, and verify that by reading.

        :raises DeviceError: it cannot format, would erase other namespaces,
            too, has no namespace, or data are left.
        """
        # OACS bit 1: it can format. FNA bits 0 and 1: formatting erases the
        # whole subsystem.
        if not self._number(256, 2) & 0b10:
            raise exceptions.DeviceError(f'{self._address} cannot format')
        if self._number(524, 1) & 0b11 and self._is_shared:
            raise exceptions.DeviceError(
                f'{self._address} is not formatted: that would erase the '
                'namespaces of the other controllers of its subsystem too'
            )
        all_formats = self._all_formats()
        formats = all_formats[self]
        if not formats:
            raise exceptions.DeviceError(
                f'{self._address} is not formatted: it has no namespace'
            )
        # FNA bit 0: a format is that of all namespaces.
        if self._number(524, 1) & 0b1 and len(set(formats.values())) > 1:
            raise exceptions.DeviceError(
                f'{self._address} is not formatted: its namespaces have '
                'different block formats, and would all get the same. Format '
                'them alike, or use "clean": "sanitize"'
            )
        self._check_none_is_detached(formats)
        for id_, format_ in formats.items():
            self._ask(nvme.format_namespace, id_, *format_)
        self._check_same_formats(all_formats)
        for each, attached in all_formats.items():
            each._check_blank(attached.keys() & formats)

    def _check_blank(self, ids: Iterable[int]) -> None:
        """:raises DeviceError: a namespace has data in it."""
        for id_ in sorted(ids):
            if not self._ask(nvme.is_blank, id_):
                raise exceptions.DeviceError(
                    f'namespace {id_} of {self._address} has data in it '
                    'after it was formatted'
                )

    def _all_formats(
        self,
    ) -> dict['NvmeController', dict[int, tuple[int, int]]]:
        """The namespaces of each controller of the drive, this one first."""
        return {each: each._formats() for each in (self, *self._others)}

    def _formats(self) -> dict[int, tuple[int, int]]:
        """The id and the block format of each attached namespace."""
        ids = [
            int(self._read(f'{name}/nsid') or 0)
            for name in self._sysfs.names(self._address, f'nvme/{self._name}')
            if nvme_drive.NAMESPACE.fullmatch(name)
        ]
        return {id_: tuple(self._ask(nvme.block_format, id_)) for id_ in ids}

    @staticmethod
    def _check_same_formats(
        former: Mapping['NvmeController', Mapping[int, tuple[int, int]]],
    ) -> None:
        """:raises DeviceError: the erasure has changed the namespaces."""
        for controller, formats in former.items():
            present = controller._formats()
            for id_, format_ in formats.items():
                if present.get(id_) != format_:
                    raise exceptions.DeviceError(
                        f'namespace {id_} of {controller._address} is not as '
                        'it was before it was erased: its FLBAS and DPS were '
                        f'{format_} and are {present.get(id_)}'
                    )

    def _check_none_is_detached(self, attached: Collection[int]) -> None:
        """Check for namespaces that a guest detached with its data.

        :raises DeviceError: there is one, or it cannot be known.
        """
        # OACS bit 3: it manages namespaces.
        if not self._number(256, 2) & 0b1000:
            return
        if self._is_shared:
            raise exceptions.DeviceError(
                f'{self._address} is not formatted: its guest could have '
                'detached a namespace, which cannot be told from those of '
                'the other controllers of its subsystem'
            )
        detached = set(self._ask(nvme.allocated_namespaces)).difference(
            attached
        )
        if detached:
            raise exceptions.DeviceError(
                f'{self._address} is not formatted: its namespaces '
                f'{sorted(detached)} are detached'
            )

    def _action(self) -> int | None:
        abilities = self._number(328, 4)
        return next(
            (action for bit, action in _ACTIONS if abilities & bit), None
        )

    @functools.cached_property
    def _is_shared(self) -> bool:
        """Whether its subsystem has controllers that we do not know.

        Many controllers say that there may be others; only the subsystem's
        list says whether there are. A subsystem without such a list is taken
        for shared.
        """
        known = (self, *self._others)
        abilities = {each._number(76, 1) for each in known}
        if any(each & _IS_VIRTUAL for each in abilities):
            return True
        if not self._others and not self._number(76, 1) & _MAY_BE_SHARED:
            return False
        try:
            listed = sorted(self._ask(nvme.controllers))
        except exceptions.DeviceError:
            return True
        # CNTLID is the controller's own id.
        return listed != sorted(each._number(78, 2) for each in known)

    def _number(self, offset: int, length: int) -> int:
        """A field of Identify Controller."""
        return int.from_bytes(
            self._identity[offset : offset + length], 'little'
        )

    def _read(self, attribute: str) -> str | None:
        return self._sysfs.read(
            self._address, f'nvme/{self._name}/{attribute}'
        )

    def _ask(self, what: Callable[..., Any], *arguments: Any) -> Any:
        """:raises DeviceError: it failed."""
        try:
            return what(str(self._address), self._serial or '', *arguments)
        except privileged.ERRORS as error:
            reason = getattr(error, 'stderr', None) or error
            raise exceptions.DeviceError(
                f'{self._address} is not erased: {reason}'
            ) from error
