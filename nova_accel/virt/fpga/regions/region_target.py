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

"""The regions and shells that can be programmed, and who uses them."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import dataclasses
import pathlib
import time

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.host import all_guests
from nova_accel.model import attach_handle
from nova_accel.model.devices import hardware
from nova_accel.model.devices import programmable
from nova_accel.model.fpga import programming_record
from nova_accel.model.units import failure_cause
from nova_accel.virt.holding import holdings

LOG = logging.getLogger(__name__)

#: For tenants, who learn nothing of the card and its other users.
_NO_REGION = 'its accelerator is in no region that can be programmed'
_IN_USE = (
    'it is not programmed: not only this server uses its region. Ask an '
    'administrator'
)


@dataclasses.dataclass(frozen=True)
class Target:
    """A region or the shell of a card, with the driver that programs it."""

    device: hardware.Device
    region: programmable.Region
    driver: base.Driver

    @property
    def key(self) -> tuple[str, str]:
        """The names of the device and the region."""
        return self.device.name, self.region.name

    @property
    def deployables(self) -> Iterator[hardware.Deployable]:
        """The deployables of the region, or of the whole card for a shell."""
        return (
            deployable
            for deployable in self.device.deployables
            if self.region.is_shell or deployable.region == self.region.name
        )

    @property
    def handles(self) -> Iterator[attach_handle.AttachHandle]:
        """All units that guests can get of it."""
        return (
            handle
            for deployable in self.deployables
            for handle in deployable.handles
        )

    @property
    def tells_contents(self) -> bool:
        """Whether the device says a different text for each bitstream."""
        return (
            self.driver.tells_contents
            or self.region.is_shell
            or self.region.contents_attribute is not None
        )

    @property
    def blank(self) -> str | None:
        """The id of the operator's bitstream that cleans it, if any."""
        return next(
            (
                handle.cleaning[1]
                for handle in self.handles
                if handle.cleaning[:1] == ('program',)
            ),
            None,
        )

    def loaded(self) -> str:
        """The contents, as the device tells them.

        :raises DeviceError: the device does not say, or has an error.
        """
        return (
            self.driver.loaded_shell(self.device)
            if self.region.is_shell
            else self.driver.loaded(self.device, self.region)
        )

    def loaded_if_any(self) -> str | None:
        """The contents, None if the device does not tell them."""
        try:
            return self.loaded()
        except exceptions.DeviceError as error:
            LOG.info('%s does not say what it holds: %s', self, error)
            return None

    def program(self, path: pathlib.Path, deadline: float) -> str:
        """Program it with the bytes of a file, and read it back.

        After a failure it is programmed once more if its driver allows that.

        :param deadline: of ``time.monotonic()``
        :returns: the contents, as the device tells them
        :raises DeviceError: it failed, also the second time if there was one.
        """
        try:
            self._program(path, deadline)
        except exceptions.DeviceError as error:
            if (
                not self.driver.repeats_programming
                or self.region.is_shell
                or deadline <= time.monotonic()
            ):
                raise
            LOG.warning('%s is programmed once more: %s', self, error)
            self._program(path, deadline)
        return self.loaded()

    def _program(self, path: pathlib.Path, deadline: float) -> None:
        if self.region.is_shell:
            self.driver.load_shell(self.device, path, left_s(deadline))
        else:
            self.driver.program(
                self.device, self.region, path, left_s(deadline)
            )

    def __str__(self) -> str:
        return self.device.place(self.region)


def left_s(deadline: float) -> float:
    """How long it is to a deadline of ``time.monotonic()``.

    :raises DeviceError: no time is left.
    """
    left = deadline - time.monotonic()
    if left <= 0:
        raise exceptions.DeviceError(failure_cause.NO_TIME)
    return left


def of_deployable(
    targets: Iterable[Target], node_uuid: str, deployable_uuid: str
) -> Target:
    """The first target that a deployable is in.

    :raises NotFound: it is in none.
    """
    for target in targets:
        for deployable in target.deployables:
            if deployable_uuid == hardware.deployable_uuid(
                node_uuid, target.device.name, deployable.name
            ):
                return target
    raise exceptions.NotFound(
        f'this host has no deployable {deployable_uuid} that can be '
        'programmed',
        public=_NO_REGION,
    )


def of_handle(
    targets: Iterable[Target], handle: attach_handle.AttachHandle
) -> Target:
    """The first target that an attach handle is in.

    :raises NotFound: it is in none.
    """
    for target in targets:
        if any(found.uuid == handle.uuid for found in target.handles):
            return target
    raise exceptions.NotFound(
        f'{handle.address} is in no region that can be programmed',
        public=_NO_REGION,
    )


class Users:
    """The users of the regions of one host.

    :param server: returns what Nova knows of an instance, by its uuid, see
        :func:`nova_accel.client.servers.holder`
    """

    def __init__(
        self,
        held: holdings.Holdings,
        guests: all_guests.AllGuests,
        server: Callable[[str], programming_record.Holder],
    ) -> None:
        self._held = held
        self._guests = guests
        self._server = server

    def check_free(
        self,
        target: Target,
        asker: programming_record.Asker,
        is_stopped: bool,
    ) -> None:
        """Make sure that a region may be programmed.

        :param is_stopped: whether it is known that the guest of the asker
            does not run, because the host is about to start it
        :raises Conflict: a guest has a part of the region. The guest is not
            the asker's, or may run.
        :raises DeviceError: libvirt does not list its guests.
        :raises ServiceUnavailable: Nova does not say whether the guest runs.
        """
        holders = self._holders()
        for deployable in target.deployables:
            for handle in deployable.handles:
                for name in (handle.uuid, *map(str, handle.functions)):
                    holder = holders.get(name)
                    if holder is None:
                        continue
                    if holder != asker.instance_uuid or target.region.is_shell:
                        raise exceptions.Conflict(
                            f'{target} is not programmed: a server has '
                            f'{deployable.name} of it',
                            public=_IN_USE,
                        )
                    if not is_stopped:
                        self._check_own(target, asker, holder)

    def _check_own(
        self,
        target: Target,
        asker: programming_record.Asker,
        instance_uuid: str,
    ) -> None:
        """:raises Conflict: the server is another project's, or may run."""
        # Somebody may have started the guest without Nova.
        runs = instance_uuid in self._guests.running()
        server = self._server(instance_uuid)
        if server.project_id != asker.project_id:
            raise exceptions.Conflict(
                f'{target} is not programmed: a server of another project '
                'has it',
                public=_IN_USE,
            )
        if (runs or not server.is_stopped) and not (
            target.driver.programs_under_guest
        ):
            raise exceptions.Conflict(
                f'{target} is not programmed: driver {target.device.driver} '
                'cannot do it under a guest, stop the server first',
                public=(
                    'it is not programmed: that cannot be done under a '
                    'guest, stop the server first'
                ),
            )

    def _holders(self) -> dict[str, str]:
        """Attach handle uuid, or PCI address -> the instance that has it.

        It includes guests whose journal is lost.

        :raises DeviceError: libvirt does not list its guests.
        """
        return {
            device: uuid
            for uuid, found in self._guests.devices().items()
            for device in found
        } | self._held.holders()
