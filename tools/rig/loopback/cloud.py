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

"""A whole cloud in one process, on loopback, with simulated hosts.

It has nova-api behind a real ``keystonemiddleware``, nova-conductor,
nova-scheduler, nova-computes over Nova's fake libvirt, and Placement. The
accelerator API is in nova-api's paste pipeline. Keystone and Glance are
stubs. Neutron and Cinder are Nova's fixtures.
"""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

from collections.abc import Sequence
import pathlib
from typing import Any

import fixtures
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.tests.functional.libvirt import base
from nova.virt.libvirt import utils as libvirt_utils

from nova_accel.testing import devices
from nova_accel.testing import fake_fpga
from nova_accel.testing import fake_sysfs
from nova_accel.testing import libvirt
from nova_accel.testing import libvirt_guest
from nova_accel.virt import rpc_agent
from rig.loopback import accelerator_steps
from rig.loopback import control_plane
from rig.stubs import glance as glance_stub

#: libvirt and Nova write 10.0.0 and 8.2.2 like this.
_LIBVIRT_VERSION = 10_000_000
_QEMU_VERSION = 8_002_002


def create_image(
    _driver: Any, _context: Any, instance: Any, *_args: Any, **_kwargs: Any
) -> tuple[bool, bool]:
    """Replace Nova's method: make the empty disks that a hard reboot needs."""
    directory = pathlib.Path(libvirt_utils.get_instance_path(instance))
    directory.mkdir(exist_ok=True)
    for disk in ('disk', 'disk.eph0'):
        (directory / disk).touch()
    return False, False


def _migrate_disk(
    driver: Any, _context: Any, instance: Any, *_args: Any, **_kwargs: Any
) -> str:
    """Stop the guest; its disks are on all hosts already, so none moves."""
    driver.power_off(instance)
    return '[]'


class Cloud(
    control_plane.ControlPlane,
    accelerator_steps.AcceleratorSteps,
    base.ServersTestBase,
):
    """The base class of functional tests and of the quickstart's cloud.

    Glance is at ``url/image``. Nova keeps its files below ``state_path``. All
    hosts have the same ``sysfs``, see
    :class:`nova_accel.testing.fake_sysfs.FakeSysfs`.
    """

    STUB_KEYSTONE = False

    def setUp(self) -> None:
        super().setUp()
        # By default Nova waits half an hour.
        self.flags(long_rpc_timeout=60)
        for name, function in (
            ('_create_image', create_image),
            ('migrate_disk_and_power_off', _migrate_disk),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova.virt.libvirt.LibvirtDriver.{name}', function
                )
            )
        start = rpc_agent.RpcAgent.start

        def start_until_the_end(agent: rpc_agent.RpcAgent) -> None:
            # A nova-compute that fails to start exits. Here it is a thread,
            # so its agent has to be stopped.
            self.addCleanup(agent.stop)
            start(agent)

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.virt.rpc_agent.RpcAgent.start',
                start_until_the_end,
            )
        )
        self.useFixture(libvirt.MediatedDevices())
        self.useFixture(libvirt_guest.GuestDevices())
        self.useFixture(fake_fpga.Installed())
        self.sysfs = self.useFixture(fake_sysfs.FakeSysfs())

    def start_accelerated_compute(
        self,
        hostname: str,
        pci_info: fakelibvirt.HostPCIDevicesInfo | None = None,
        device_spec: Sequence[str] = devices.DEVICE_SPEC,
        cell_name: str | None = None,
    ) -> Any:
        """Start nova-compute on a host with accelerators.

        :param pci_info: see :func:`nova_accel.testing.devices.pci_info`
        :param cell_name: None if there is only one cell
        :returns: the service
        """
        self.flags(device_spec=list(device_spec), group='nova_accel')
        self.start_compute(
            hostname,
            pci_info=pci_info or devices.pci_info(),
            mdev_info=fakelibvirt.HostMdevDevicesInfo(),
            libvirt_version=_LIBVIRT_VERSION,
            qemu_version=_QEMU_VERSION,
            cell_name=cell_name,
        )
        return self.computes[hostname]

    def _setup_services(self) -> None:
        self._listen()
        self._setup_image()
        self._setup_configuration()
        # Nova's tests let Nova check its own answers.
        self.flags(response_validation='ignore', group='api')
        super()._setup_services()
        self.server.mount('/', self.api_fixture.app())
        self._setup_clients()

    def _setup_compute_service(self) -> None:
        """Set the driver in nova.conf; the test starts the computes."""

    def _setup_scheduler_service(self) -> Any:
        return self.start_service('scheduler')

    def _setup_image(self) -> None:
        url = f'{self.url}/image'
        self.server.mount('/image', glance_stub.Glance(url, self.glance))
        self.keystone.register('image', 'glance', url)
        # The data of bitstreams is not fetched through Nova's fixture.
        self.flags(api_servers=[url], group='glance')
