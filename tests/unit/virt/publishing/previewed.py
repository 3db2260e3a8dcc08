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

"""A look at an imitated host, as the commands of a compute host take it."""

from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import fixtures
from oslo_config import fixture as config_fixture

from nova_accel import conf
from nova_accel import privileged
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.testing import fake_sysfs
from nova_accel.virt.publishing import host_preview


class Libvirt:
    """In the place of Nova's ``Host``, with no guests."""

    def get_hostname(self) -> str:
        return 'host1'

    def list_guests(self, only_running: bool = True) -> list[Any]:
        return []


class Previewed(fixtures.Fixture):
    """This host has some functions, and the commands look at it.

    :param functions: all of the host
    :param attributes: address -> its attributes in sysfs, see
        :meth:`nova_accel.testing.fake_sysfs.FakeSysfs.set`
    :ivar state: the directory of Nova's state
    """

    def __init__(
        self,
        functions: Iterable[pci_function.PciFunction],
        attributes: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        self._devices = libvirt_devices.HostDevices(
            {each.address: each for each in functions}
        )
        self._attributes = attributes or {}

    def _setUp(self) -> None:
        self.addCleanup(in_daemons)
        conf.CONF(
            [], project='nova', default_config_files=[], default_config_dirs=[]
        )
        self.addCleanup(conf.CONF.reset)
        config = self.useFixture(config_fixture.Config(conf.CONF))
        self.state = self.useFixture(fixtures.TempDir()).path
        config.config(state_path=self.state)
        self.sysfs = self.useFixture(fake_sysfs.FakeSysfs())
        for address, values in self._attributes.items():
            self.sysfs.set(address, **values)
        for target, fake in (
            ('_OneLook.look', lambda _self: self._devices),
            ('of_this_host', self.preview),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova_accel.virt.publishing.host_preview.{target}', fake
                )
            )

    def preview(self) -> host_preview.Preview:
        return host_preview.Preview(Libvirt())  # type: ignore[arg-type]


def in_daemons() -> None:
    """Undo :func:`nova_accel.privileged.stay_in_process`."""
    for context in vars(privileged).values():
        if isinstance(context, privileged.priv_context.PrivContext):
            context.set_client_mode(True)
