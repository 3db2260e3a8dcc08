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

"""How long a server takes to boot, with and without accelerators."""

import statistics
import time

import openstack

from lab import glance
from lab import keystone
from lab import processes
from lab.checks import cloud
from lab.checks import real_servers
from lab.checks import registry
from lab.device_vm import machine

_TIMES = 10

_GROUPS = (
    'lab-vm-both',
    'resources:VGPU=1,trait:CUSTOM_1234_11E8_LABGPU_1=required',
    'resources:CUSTOM_NIC=1,trait:CUSTOM_NIC_INTEL_82576_VF=required',
)


@registry.check('latency')
def boot(evidence: registry.Evidence) -> None:
    """Ten boots without accelerators, and ten with a VF and an mdev, in turn.

    From the request to ACTIVE, in the device VM, one server at a time.
    """
    real_servers.start()
    flavors = (cloud.plain_flavor(), cloud.accelerated_flavor(*_GROUPS))
    seconds: dict[str, list[float]] = {flavor: [] for flavor in flavors}
    with keystone.connection() as connection:
        for number in range(_TIMES + 1):
            for flavor, found in seconds.items():
                taken = _boot(connection, flavor)
                # The first of each makes caches, of images for one.
                if number:
                    found.append(taken)
    plain, accelerated = map(statistics.median, seconds.values())
    for flavor, found in seconds.items():
        evidence(
            f'{flavor}: median of {len(found)} boots '
            f'{statistics.median(found):.1f} s, from {min(found):.1f} s '
            f'to {max(found):.1f} s'
        )
    evidence(
        f'with accelerators {accelerated - plain:+.1f} s, '
        f'{accelerated / plain:.2f} times as long'
    )


def _boot(connection: openstack.connection.Connection, flavor: str) -> float:
    """Boot a server, and delete it.

    :returns: the seconds from the request to ACTIVE
    """
    compute_api = connection.compute
    begin = time.monotonic()
    server = compute_api.create_server(
        name=flavor,
        flavor_id=compute_api.find_flavor(flavor).id,
        image_id=connection.image.find_image(glance.IMAGE).id,
        networks='none',
        host=machine.A.name,
    )
    try:
        processes.wait_for(
            f'server {server.id}',
            300,
            lambda: (
                compute_api.get_server(server).status in ('ACTIVE', 'ERROR')
            ),
        )
        taken = time.monotonic() - begin
        status = compute_api.get_server(server).status
        registry.expect(status == 'ACTIVE', f'server {server.id}: {status}')
    finally:
        compute_api.delete_server(server)
        compute_api.wait_for_delete(server, interval=1)
    return taken
