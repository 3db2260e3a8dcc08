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

nova-api behind a real ``keystonemiddleware``, conductor, scheduler, computes
over Nova's fake libvirt, Placement, and the accelerator API in nova-api's
paste pipeline. Keystone and Glance are stubs; Neutron and Cinder are Nova's
fixtures.
"""

# Its __init__ decides between eventlet and native threads; anything else of
# Nova imported before it leaves the process half patched.
import nova.tests.functional  # noqa: F401 isort: skip

from collections.abc import Sequence
import pathlib
import secrets
from typing import Any

import fixtures
from nova.tests import fixtures as nova_fixtures
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.tests.functional.libvirt import base
from nova.virt.libvirt import utils as libvirt_utils
from oslo_config import cfg

from nova_accel.testing import accelerator_steps
from nova_accel.testing import clients
from nova_accel.testing import database
from nova_accel.testing import devices
from nova_accel.testing import glance as glance_stub
from nova_accel.testing import keystone as keystone_stub
from nova_accel.testing import libvirt
from nova_accel.testing import libvirt_guest
from nova_accel.testing import nova_conf
from nova_accel.testing import wsgi_server

CONF = cfg.CONF

DEMO_PROJECT = keystone_stub.Project(nova_fixtures.PROJECT_ID, 'demo')
SERVICE_PROJECT = keystone_stub.Project(
    '2f4d7a6c5b1e4f0c8f3b8e7d6a9c0b1d', 'service')


#: As libvirt and Nova write 10.0.0 and 8.2.2.
_LIBVIRT_VERSION = 10_000_000
_QEMU_VERSION = 8_002_002


def _user(number: int, name: str, project: keystone_stub.Project,
          *roles: str) -> keystone_stub.User:
    return keystone_stub.User(f'{number:032x}', name, secrets.token_urlsafe(),
                              project, roles)


def _create_image(_driver: Any, _context: Any, instance: Any,
                  *_args: Any, **_kwargs: Any) -> tuple[bool, bool]:
    """Make the empty disks that a hard reboot looks for."""
    directory = pathlib.Path(libvirt_utils.get_instance_path(instance))
    directory.mkdir(exist_ok=True)
    for disk in ('disk', 'disk.eph0'):
        (directory / disk).touch()
    return False, False


def _migrate_disk(driver: Any, _context: Any, instance: Any,
                  *_args: Any, **_kwargs: Any) -> str:
    """Stop the guest; its disks are on all hosts already."""
    driver.power_off(instance)
    return '[]'


class Cloud(accelerator_steps.AcceleratorSteps, base.ServersTestBase):
    """The base class of functional tests, and the body of the quickstart.

    :cvar PORT: where it listens; 0 takes a free port
    :ivar url: nova-api; ``url/identity`` is Keystone, ``url/image`` Glance
    :ivar state_path: Nova's, with ``nova.conf``; what Nova keeps outside its
        databases is below it
    :ivar api: Nova's test client as the user demo, ``admin_api`` as admin
    :ivar accelerator: the accelerator API as admin, ``demo_accelerator`` as
        demo
    """

    PORT = 0
    STUB_KEYSTONE = False
    microversion = 'latest'

    def setUp(self) -> None:
        # Last of all cleanups, when Nova's fixture has reset the options.
        self.addCleanup(nova_conf.forget_credentials)
        self.state_path = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path)
        super().setUp()
        for name, function in (
                ('_create_image', _create_image),
                ('migrate_disk_and_power_off', _migrate_disk)):
            self.useFixture(fixtures.MonkeyPatch(
                f'nova.virt.libvirt.LibvirtDriver.{name}', function))
        self.useFixture(libvirt.MediatedDevices())
        self.useFixture(libvirt_guest.GuestDevices())

    def start_accelerated_compute(
            self, hostname: str,
            pci_info: fakelibvirt.HostPCIDevicesInfo | None = None,
            device_spec: Sequence[str] = devices.DEVICE_SPEC,
            cell_name: str | None = None) -> Any:
        """Start nova-compute on a host with accelerators.

        :param pci_info: see :func:`nova_accel.testing.devices.pci_info`
        :param cell_name: None is the only cell
        :returns: the service
        """
        self.flags(device_spec=list(device_spec), group='nova_accel')
        self.start_compute(
            hostname, pci_info=pci_info or devices.pci_info(),
            mdev_info=fakelibvirt.HostMdevDevicesInfo(),
            libvirt_version=_LIBVIRT_VERSION, qemu_version=_QEMU_VERSION,
            cell_name=cell_name)
        return self.computes[hostname]

    def _setup_services(self) -> None:
        self.server = self.useFixture(wsgi_server.WsgiServer(self.PORT))
        self.url = self.server.url
        self._setup_identity()
        self._setup_image()
        self.useFixture(database.Database())
        self._setup_configuration()
        super()._setup_services()
        self.server.mount('/', self.api_fixture.app())
        self._setup_clients()

    def _setup_compute_service(self) -> None:
        """Computes are started by the test; the driver is in nova.conf."""

    def _setup_scheduler_service(self) -> Any:
        return self.start_service('scheduler')

    def _setup_identity(self) -> None:
        self.demo = _user(1, 'demo', DEMO_PROJECT, 'member', 'reader')
        self.admin = _user(
            2, 'admin', DEMO_PROJECT, 'admin', 'member', 'reader')
        self.nova = _user(3, 'nova', SERVICE_PROJECT, 'service')
        self.keystone = keystone_stub.Keystone(
            f'{self.url}/identity', (self.demo, self.admin, self.nova))
        self.auth_url = self.server.mount('/identity', self.keystone)
        self.keystone.register('compute', 'nova', f'{self.url}/v2.1')
        # With its version: nova-conductor and nova-compute discover none.
        self.keystone.register(
            'accelerator', 'nova-accel', f'{self.url}/accelerator/v2')

    def _setup_image(self) -> None:
        url = f'{self.url}/image'
        self.server.mount('/image', glance_stub.Glance(url, self.glance))
        self.keystone.register('image', 'glance', url)

    def _setup_configuration(self) -> None:
        self.nova_conf = self.state_path / 'nova.conf'
        nova_conf.write(self.nova_conf, nova_conf.sections(
            self.auth_url, self.nova, str(self.state_path),
            CONF.filter_scheduler.enabled_filters))
        # Keeps the overrides and defaults that Nova's fixtures have set.
        CONF([], project='nova', default_config_files=[str(self.nova_conf)],
             default_config_dirs=[])

    def _setup_clients(self) -> None:
        url = f'{self.url}/v2.1'
        for name, user, roles in (
                ('api', self.demo, None),
                ('alternative_api', self.demo, None),
                ('admin_api', self.admin, None),
                ('alternative_admin_api', self.admin, None),
                ('reader_api', self.demo, ('reader',)),
                ('other_api', self.demo, ('other',))):
            api = clients.ComputeClient(self.keystone, user, url, roles)
            setattr(self.api_fixture, name, api)
        self.admin_api = self.api_fixture.admin_api
        self.api = self.admin_api if self.ADMIN_API else self.api_fixture.api
        self.api.microversion = self.microversion
        self.admin_api.microversion = self.microversion
        self.accelerator, self.demo_accelerator = (
            clients.AcceleratorClient(
                self.keystone, user, f'{self.url}/accelerator/v2')
            for user in (self.admin, self.demo))
