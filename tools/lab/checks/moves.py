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
a device. A drain says so.
"""

from collections.abc import Iterator
import contextlib
from typing import Any

from lab import processes
from lab.checks import cloud
from lab.checks import real_servers
from lab.checks import registry
from lab.device_vm import hardware
from lab.device_vm import machine

_ALL, _ALL_SEEN = real_servers.ALL, real_servers.ALL_SEEN

_FUNCTION = (
    'lab-vm-function',
    'resources:CUSTOM_NIC=1,trait:CUSTOM_NIC_INTEL_82576_VF=required',
)
_FUNCTION_SEEN = {'virtual function of igb': hardware.IGB_VF}

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
def profile_in_place(evidence: registry.Evidence) -> None:
    """A plain server gets a device while it runs, and takes it along.

    Where it then is it gives the device back, while it runs.
    """
    cloud.profile(*_FUNCTION)
    free = {host: real_servers.drivers(host) for host in (_A, _B)}
    with real_servers.server(evidence, 'lab-vm-plain') as server:
        server.sees({})
        cloud.openstack(
            'accelerator',
            'server',
            'set',
            '--device-profile',
            _FUNCTION[0],
            server.id,
        )
        server.wait('ACTIVE')
        server.sees(_FUNCTION_SEEN, restarted=False)
        server.act('migrate', '--host', _B.name, status='VERIFY_RESIZE')
        server.sees(_FUNCTION_SEEN)
        server.act('migration', 'confirm')
        _expect_free(_A, free[_A])
        registry.expect(
            real_servers.drivers(_B) != free[_B], 'it is not on the other one'
        )
        cloud.openstack('accelerator', 'server', 'unset', server.id)
        server.wait('ACTIVE')
        # Its list of devices is another one.
        server.sees({}, restarted=False)
        _expect_free(_B, free[_B])
        evidence('unset: the guest has let go of it')


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


@real_servers.check('moves', _A, _B)
def drain(evidence: registry.Evidence) -> None:
    """A drained host is emptied, or it is told why not."""
    free = real_servers.drivers(_B)
    with real_servers.server(evidence, *_ALL) as server:
        server.sees(_ALL_SEEN)
        with _drained(_A):
            planned = _drain(evidence, _A, '--dry-run', status=0)
            registry.expect(planned['Way'] == 'live', f'planned: {planned}')
            left = _drain(evidence, _A, status=1)
            registry.expect(
                left['Result'] == 'remains' and '--cold' in left['Why'],
                f'without --cold: {left}',
            )
            registry.expect(_host(server) == _A.name, _host(server))
            gone = _drain(evidence, _A, '--cold', status=0)
            registry.expect(
                (gone['Way'], gone['Result']) == ('cold', 'left'),
                f'with --cold: {gone}',
            )
            registry.expect(_host(server) == _B.name, _host(server))
            server.sees(_ALL_SEEN)
            _expect_free(_A, free)
            # No other server comes there.
            with cloud.server(_ALL[0], '--host', _A.name) as other:
                registry.expect(
                    other['status'] == 'ERROR', f'another is {other["status"]}'
                )
        server.act('stop', status='SHUTOFF')
        with _drained(_B):
            gone = _drain(evidence, _B, status=0)
            registry.expect(
                (gone['Way'], gone['Result']) == ('cold', 'left'),
                f'stopped: {gone}',
            )
            registry.expect(_host(server) == _A.name, _host(server))
            _expect_free(_B, free)
        server.act('start')
        server.sees(_ALL_SEEN)


@real_servers.check('moves', _A, _B)
def drain_of_mediated_devices(evidence: registry.Evidence) -> None:
    """Mediated devices go live, or it is told why not."""
    with real_servers.server(evidence, *real_servers.MDEVS) as server:
        server.sees(real_servers.MDEVS_SEEN)
        with _drained(_A):
            found = _drain(evidence, _A)
            if found['Result'] == 'left':
                registry.expect(found['Way'] == 'live', f'{found}')
            else:
                registry.expect(
                    'does not go live: ' in found['Why'], f'{found}'
                )
                _drain(evidence, _A, '--cold', status=0)
                server.sees(real_servers.MDEVS_SEEN)
            registry.expect(_host(server) == _B.name, _host(server))


@contextlib.contextmanager
def _drained(host: machine.Machine) -> Iterator[None]:
    """In the end the host is not drained, and can be used again."""
    try:
        yield
    finally:
        for found in cloud.show('accelerator', 'host', 'drain', 'list'):
            if found['Host'] == host.name:
                cloud.openstack('accelerator', 'host', 'undrain', host.name)
    registry.expect_soon(
        f'reserved units of {host.name}',
        lambda: cloud.reserved_of(host.name),
        0,
        seconds=240,
    )


def _drain(
    evidence: registry.Evidence,
    host: machine.Machine,
    *words: str,
    status: int | None = None,
) -> dict[str, Any]:
    """Drain a host that has one server, and tell what is said of it.

    :param status: the exit status that it has to have
    """
    found, shown = cloud.outcome(
        'accelerator',
        'host',
        'drain',
        host.name,
        '--reason',
        'a check',
        '--timeout',
        '800',
        *words,
    )
    evidence(f'{" ".join(words) or "drain"}: exit status {found}')
    for row in shown:
        evidence(f'{row["Way"]}, {row["Result"]}: {row["Why"]}')
    registry.expect(
        status in (None, found), f'exit status {found}, not {status}: {shown}'
    )
    registry.expect(len(shown) == 1, f'not one server: {shown}')
    row: dict[str, Any] = shown[0]
    return row


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
