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

"""nova-compute on a host whose devices are made up, see ``fake_hosts``."""

import dataclasses
import json
from typing import Any

from lab import configuration
from lab import fake_hosts
from lab import libvirtd
from lab import processes
from lab import settings

#: What the guide calls a device_spec, for all devices of a fake host.
DEVICE_SPECS: tuple[dict[str, Any], ...] = (
    {
        'vendor_id': '10de',
        'product_id': '20f1',
        'driver': 'mdev',
        'mdev_type': 'nvidia-474',
    },
    {
        'vendor_id': '8086',
        'product_id': '154c',
        'driver': 'pci',
        'type': 'NIC',
    },
    {'vendor_id': '10ee', 'product_id': '5000', 'driver': 'pci'},
    {'vendor_id': '8086', 'product_id': '37c9', 'driver': 'pci'},
    {'vendor_id': '144d', 'product_id': 'a824', 'driver': 'pci'},
)


@dataclasses.dataclass(frozen=True)
class ComputeHost:
    """A host with a libvirtd and a /sys of its own.

    :param name: the name of its nova-compute service and of its node
    """

    name: str

    @property
    def service(self) -> str:
        """The name of its nova-compute among the lab's processes."""
        return f'nova-compute-{self.name}'

    @property
    def libvirt(self) -> libvirtd.Libvirtd:
        return fake_hosts.host(self.name)

    def start(self) -> None:
        """Start all that the host runs."""
        self.libvirt.start()
        self.start_compute()

    def start_compute(self) -> None:
        state = self.libvirt.directory / 'nova'
        # Both hosts see the same disks, as hosts with a shared file system.
        instances = settings.STATE / 'instances'
        for directory in (state, instances):
            directory.mkdir(parents=True, exist_ok=True)
        name = f'{self.service}.conf'
        path = configuration.write(
            name,
            configuration.template('nova.conf'),
            configuration.template(
                'nova-compute.conf',
                host=self.name,
                instances=instances,
                libvirt_uri=self.libvirt.uri,
                virt_type='qemu',
                update_s=10,
            ),
            configuration.template(
                'privsep.conf', file=settings.STATE / 'etc' / name
            ),
            configuration.guide_compute(
                map(json.dumps, DEVICE_SPECS), str(state)
            ),
        )
        processes.start(
            self.service,
            self.libvirt.enter(
                [
                    settings.BIN / 'nova-compute',
                    '--debug',
                    '--config-file',
                    path,
                ]
            ),
        )

    def stop(self) -> None:
        processes.stop(self.service, seconds=3)
        self.libvirt.stop()

    def power_off(self) -> None:
        """End all that the host runs at once, as a power failure does."""
        processes.kill(self.service)
        self.libvirt.stop()

    def mdevs(self) -> list[str]:
        """The uuids of the mediated devices that there are."""
        return [
            path.name
            for path in (
                self.libvirt.directory / 'sys/bus/mdev/devices'
            ).iterdir()
        ]

    def journal(self) -> list[str]:
        """The names of the files in which nova-compute keeps what is held."""
        directory = self.libvirt.directory / 'nova/nova_accel' / self.name
        return [path.name for path in directory.glob('*.json')]


HOSTS = tuple(map(ComputeHost, fake_hosts.MACHINES))
