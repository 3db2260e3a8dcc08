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

"""Two hosts: servers move from one to the other, also when one dies."""

from lab import compute_host
from lab import processes
from lab.checks import cloud
from lab.checks import registry

_A, _B = compute_host.HOSTS


@registry.check('e2e', quick=False)
def cold_migration(evidence: registry.Evidence) -> None:
    """A server without accelerators is migrated to the other host."""
    with cloud.server(cloud.plain_flavor(), '--host', _A.name) as server:
        cloud.expect_active(server)
        cloud.openstack('server', 'migrate', '--wait', server['id'])
        moved = cloud.wait_for_server(server['id'], ('VERIFY_RESIZE', 'ERROR'))
        registry.expect(moved['status'] == 'VERIFY_RESIZE', cloud.fault(moved))
        cloud.openstack('server', 'migration', 'confirm', server['id'])
        moved = cloud.wait_for_server(server['id'])
        cloud.expect_active(moved)
        registry.expect(cloud.host(moved) == _B.name, cloud.host(moved))
        evidence(f'from {cloud.host(server)} to {cloud.host(moved)}')
        cloud.wait_for_console(server['id'], 'LAB-GUEST-END')


@registry.check('e2e', quick=False)
def evacuation(evidence: registry.Evidence) -> None:
    """A host dies, its server is evacuated, the host comes back."""
    with cloud.server(cloud.plain_flavor(), '--host', _A.name) as server:
        cloud.expect_active(server)
        _A.power_off()
        try:
            cloud.openstack(
                'compute', 'service', 'set', '--down', _A.name, 'nova-compute'
            )
            cloud.openstack('server', 'evacuate', server['id'])
            # Nova leaves it to its owner to start it.
            moved = cloud.wait_for_server(server['id'], ('SHUTOFF', 'ERROR'))
            registry.expect(moved['status'] == 'SHUTOFF', cloud.fault(moved))
            registry.expect(cloud.host(moved) == _B.name, cloud.host(moved))
            cloud.openstack('server', 'start', server['id'])
            cloud.expect_active(
                cloud.wait_for_server(server['id'], ('ACTIVE', 'ERROR'))
            )
            evidence(f'from {cloud.host(server)} to {cloud.host(moved)}')
        finally:
            _A.start()
            # Not before the host has seen what was evacuated from it.
            processes.wait_for(
                f'{_A.name} to be used again',
                90,
                lambda: cloud.succeeds(
                    'compute',
                    'service',
                    'set',
                    '--up',
                    _A.name,
                    'nova-compute',
                ),
            )
        cloud.wait_for_compute(_A.name)
        cloud.expect_active(cloud.show_server(server['id']))
        domains = _A.libvirt.virsh('list', '--all', '--name').split()
        registry.expect(not domains, f'{_A.name} has {domains} still')
        evidence(f'{_A.name} is back, without the guest')
