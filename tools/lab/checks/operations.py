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

"""Operations of servers in device VMs keep, free and move devices."""

import json

from lab import glance
from lab import nova
from lab import processes
from lab import settings
from lab.checks import cloud
from lab.checks import real_servers
from lab.checks import registry
from lab.device_vm import machine

_ALL, _ALL_SEEN = real_servers.ALL, real_servers.ALL_SEEN


@real_servers.check('operations')
def suspend(evidence: registry.Evidence) -> None:
    """A suspended guest has no devices, and has them again when resumed."""
    free = real_servers.drivers()
    with real_servers.server(evidence, *_ALL) as server:
        server.sees(_ALL_SEEN)
        mdevs = real_servers.mdevs()
        server.act('suspend', status='SUSPENDED')
        registry.expect(
            real_servers.drivers() == free,
            'the host has not got its functions back',
        )
        registry.expect(real_servers.mdevs() == mdevs, 'the mdev is gone')
        server.act('resume')
        server.sees(_ALL_SEEN, restarted=False)


@real_servers.check('operations')
def rescue(evidence: registry.Evidence) -> None:
    """The rescue system has the devices, and the guest after it."""
    with real_servers.server(evidence, *_ALL) as server:
        server.sees(_ALL_SEEN)
        server.act('rescue', status='RESCUE')
        server.sees(_ALL_SEEN)
        server.act('unrescue')
        server.sees(_ALL_SEEN)


@real_servers.check('operations')
def rebuild(evidence: registry.Evidence) -> None:
    """A rebuilt server has the devices that it had."""
    with real_servers.server(evidence, *_ALL) as server:
        server.sees(_ALL_SEEN)
        before = real_servers.mdevs(), real_servers.drivers()
        server.act('rebuild', '--image', glance.IMAGE)
        server.sees(_ALL_SEEN)
        registry.expect(
            (real_servers.mdevs(), real_servers.drivers()) == before,
            'it has others',
        )


@real_servers.check('operations')
def shelve(evidence: registry.Evidence) -> None:
    """An offloaded server has no devices, an unshelved one has."""
    free = real_servers.drivers()
    with real_servers.server(evidence, *_ALL) as server:
        server.sees(_ALL_SEEN)
        server.act('shelve', status='SHELVED_OFFLOADED')
        registry.expect_soon(
            'drivers of the host', real_servers.drivers, free, seconds=120
        )
        registry.expect(not real_servers.mdevs(), 'an mdev is left')
        server.act('unshelve')
        server.sees(_ALL_SEEN)


@real_servers.check('operations')
def resize(evidence: registry.Evidence) -> None:
    """Another device profile: reverted, and then confirmed."""
    other = cloud.accelerated_flavor(*real_servers.MDEVS)
    free = real_servers.drivers()
    with real_servers.server(evidence, *_ALL) as server:
        server.sees(_ALL_SEEN)
        before = real_servers.mdevs(), real_servers.drivers()
        server.act('resize', '--flavor', other, status='VERIFY_RESIZE')
        registry.expect(
            len(real_servers.mdevs()) == 3, f'mdevs: {real_servers.mdevs()}'
        )
        server.sees(real_servers.MDEVS_SEEN)
        server.act('resize', 'revert')
        server.sees(_ALL_SEEN)
        registry.expect(
            (real_servers.mdevs(), real_servers.drivers()) == before,
            'it has others than before',
        )
        server.act('resize', '--flavor', other, status='VERIFY_RESIZE')
        server.act('resize', 'confirm')
        server.sees(real_servers.MDEVS_SEEN)
        # Mediated devices are not among them.
        registry.expect_soon(
            'drivers of the host', real_servers.drivers, free, seconds=120
        )
        registry.expect(
            len(real_servers.mdevs()) == 2, f'mdevs: {real_servers.mdevs()}'
        )


@real_servers.check('operations')
def guest_killed(evidence: registry.Evidence) -> None:
    """A guest that is removed without Nova is named, until it is back."""
    with real_servers.server(evidence, *real_servers.MDEVS) as server:
        server.sees(real_servers.MDEVS_SEEN)
        registry.expect(not _findings(server.id), 'something is wrong before')
        machine.A.run(
            f'virsh -q destroy {server.id} && virsh -q undefine {server.id}'
        )
        # A comparison each minute, and a report after it.
        registry.expect_soon(
            'findings',
            lambda: [found['kind'] for found in _findings(server.id)],
            ['guest_gone'],
            seconds=180,
        )
        (found,) = _findings(server.id)
        evidence(f'{found["host"]}: {found["words"]}')
        registry.expect(
            found['remedy'] == f'openstack server reboot --hard {server.id}',
            found['remedy'],
        )
        status, audited = cloud.outcome(
            'accelerator', 'fleet', 'list', '--drift'
        )
        registry.expect(
            (status, [row['What'] for row in audited]) == (1, ['guest_gone']),
            f'fleet list --drift, exit status {status}: {audited}',
        )
        server.act('reboot', '--hard')
        server.sees(real_servers.MDEVS_SEEN)
        registry.expect_soon(
            'findings',
            lambda: _findings(server.id),
            [],
            seconds=120,
        )


def _findings(instance_uuid: str) -> list[dict[str, str]]:
    """What hosts have found wrong with a server."""
    fleet = processes.run(
        [
            settings.BIN / 'nova-accel-manage',
            '--config-file',
            nova.api_file(),
            'fleet',
            'list',
            # With --drift, the status is 1 if there are any.
            '--json',
        ]
    )
    return [
        found
        for found in json.loads(fleet)['findings']
        if found['server'] == instance_uuid
    ]
