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

"""Servers with devices go from one device VM to the other.

They are not migrated live: what QEMU emulates in them cannot save the state of
a device.
"""

from lab import processes
from lab.checks import cloud
from lab.checks import real_servers
from lab.checks import registry
from lab.device_vm import machine

_ALL, _ALL_SEEN = real_servers.ALL, real_servers.ALL_SEEN

_A, _B = machine.A, machine.B


@real_servers.check('moves', _A, _B)
def cold_migration(evidence: registry.Evidence) -> None:
    """Both hosts hold devices until a migration is reverted, or confirmed."""
    free = real_servers.drivers(_B)
    with real_servers.server(evidence, *_ALL) as server:
        server.sees(_ALL_SEEN)
        taken = real_servers.mdevs(_A)
        for answer in ('revert', 'confirm'):
            server.act('migrate', '--host', _B.name, status='VERIFY_RESIZE')
            server.sees(_ALL_SEEN)
            evidence(f'on {_host(server)}')
            registry.expect(_host(server) == _B.name, 'it is not there')
            registry.expect(
                real_servers.mdevs(_A) == taken,
                f'{_A.name} does not keep its mdev',
            )
            registry.expect(
                real_servers.drivers(_B) != free,
                f'{_B.name} gives it no functions',
            )
            server.act('migration', answer)
            if answer == 'revert':
                server.sees(_ALL_SEEN)
                registry.expect(_host(server) == _A.name, 'it is not back')
                _expect_free(_B, free)
        _expect_free(_A, free)
    _expect_free(_B, free)


@real_servers.check('moves', _A, _B)
def evacuation(evidence: registry.Evidence) -> None:
    """A host fails, its server runs on the other; the host comes back."""
    free = real_servers.drivers(_B)
    with real_servers.server(evidence, *_ALL) as server:
        server.sees(_ALL_SEEN)
        _A.fail()
        cloud.openstack(
            'compute', 'service', 'set', '--down', _A.name, 'nova-compute'
        )
        try:
            # Nova leaves it to its owner to start it.
            server.act('evacuate', status='SHUTOFF')
            server.act('start')
            server.sees(_ALL_SEEN)
            registry.expect(_host(server) == _B.name, _host(server))
            evidence(f'on {_B.name}')
        finally:
            _A.up()
            real_servers.start_compute(_A)
            # Not before the host has seen what was evacuated from it.
            processes.wait_for(
                f'{_A.name} to be used again',
                300,
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
        _expect_free(_A, free)
        evidence(f'{_A.name} is back, and has nothing of it')
    _expect_free(_B, free)


def _host(server: real_servers.RealServer) -> str:
    return cloud.host(cloud.show_server(server.id))


def _expect_free(host: machine.Machine, free: dict[str, str]) -> None:
    """Soon no guest has anything of it."""
    registry.expect_soon(
        f'drivers of {host.name}',
        lambda: real_servers.drivers(host),
        free,
        seconds=240,
    )
    registry.expect_soon(
        f'mdevs of {host.name}',
        lambda: real_servers.mdevs(host),
        [],
        seconds=240,
    )
