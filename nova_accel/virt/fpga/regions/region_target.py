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

"""A region or a shell that can be programmed, with its driver."""

from collections.abc import Iterator
import dataclasses
import pathlib

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.model import hardware
from nova_accel.model import programmable

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Target:
    """A region or the shell of a card, with the driver that programs it."""

    device: hardware.Device
    region: programmable.Region
    driver: base.Driver

    @property
    def deployables(self) -> Iterator[hardware.Deployable]:
        """The deployables of the region, or of the whole card for a shell."""
        return (
            deployable
            for deployable in self.device.deployables
            if self.region.is_shell or deployable.region == self.region.name
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
                for deployable in self.deployables
                for handle in deployable.handles
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

    def program(self, path: pathlib.Path, timeout_s: float) -> None:
        """Program it with the bytes of a file.

        :raises DeviceError: it failed.
        """
        if self.region.is_shell:
            self.driver.load_shell(self.device, path, timeout_s)
        else:
            self.driver.program(self.device, self.region, path, timeout_s)

    def __str__(self) -> str:
        return f'{self.region.name} of {self.device.address}'
