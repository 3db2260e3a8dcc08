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

"""Guests of another service's, taken over while they run, and given back."""

from collections.abc import Iterator
import contextlib

from lab import imported
from lab.checks import cloud
from lab.checks import real_servers
from lab.checks import registry
from lab.device_vm import compute
from lab.device_vm import hardware
from lab.device_vm import machine
from rig import imported_rows

_DEVICES = (
    'lab-vm-taken-over',
    'resources:VGPU=1,trait:CUSTOM_1234_11E8_LABGPU_1=required',
    'resources:CUSTOM_NIC=1,trait:CUSTOM_NIC_INTEL_82576_VF=required',
)
_SEEN = {
    'mediated device': hardware.MDEV,
    'virtual function of igb': hardware.IGB_VF,
}

_CYBORGS_KEY = 'accel:device_profile'

_GUEST = 'cat /run/libvirt/qemu/instance-*.pid'

_HOSTDEVS = '''
name=$(virsh -q list --all --name)
virsh dumpxml $name | grep -A2 "<source>" | grep "<address" |
    sed "s/^ *//" | sort
'''


@real_servers.check('operations')
def taken_over(evidence: registry.Evidence) -> None:
    """A guest goes from Cyborg to nova_accel and back, and is not restarted.

    Nova's own driver has made it. In the end it is taken over once more, so
    that a hard reboot and the deletion of the server are ours.
    """
    host = machine.A
    with (
        _host_of_cyborg(host),
        real_servers.server(evidence, *_DEVICES, key=_CYBORGS_KEY) as server,
    ):
        server.sees(_SEEN)
        _there_and_back(evidence, host, server)


@real_servers.check('operations')
def left_behind(evidence: registry.Evidence) -> None:
    """What Nova leaves of a deleted server of Cyborg's takes no unit of ours.

    Nova's own driver removes no mediated device of Cyborg's.
    """
    host = machine.A
    with _host_of_cyborg(host):
        with real_servers.server(
            evidence, *_DEVICES, key=_CYBORGS_KEY
        ) as server:
            server.sees(_SEEN)
        left = real_servers.mdevs(host)
        registry.expect(len(left) == 1, f'Nova has left {left}')
        evidence(f'Nova has left {left[0]}')
        _forget_reports(host)
        compute.stop(host)
        real_servers.start(host)
        registry.expect_soon(
            'mediated devices',
            lambda: real_servers.mdevs(host),
            [],
            seconds=180,
        )
        evidence('it is destroyed with the first report')


@contextlib.contextmanager
def _host_of_cyborg(host: machine.Machine) -> Iterator[None]:
    """Nova's own driver runs there, and is ours again in the end."""
    compute.stop(host)
    try:
        imported.take_our_providers_away(host)
        with imported.database() as connection:
            imported_rows.remove_host(connection, host.name)
            imported_rows.add_host(
                connection, host.name, imported.providers(host)
            )
        _start_novas_driver(host)
        imported.add_providers(host)
        yield
    finally:
        compute.stop(host)
        # A nova-compute that runs does not forget providers.
        try:
            imported.remove_providers(host)
        finally:
            real_servers.start(host)


def _there_and_back(
    evidence: registry.Evidence,
    host: machine.Machine,
    server: real_servers.RealServer,
) -> None:
    shown = cloud.show_server(server.id)
    owner = shown['project_id'], shown['user_id']
    cyborgs = {
        provider.resource_class: provider.uuid
        for provider in imported.providers(host)
    }
    before = _guest(host)
    evidence(f'as Nova has made it: {before}')
    imported.show_providers_as_cyborgs(host)
    _forget_reports(host)

    _take_over(evidence, host, server, cyborgs, owner)
    _expect_unchanged(host, before)

    compute.stop(host)
    ours = _providers_of(server)
    with imported.database() as connection:
        imported_rows.undo(connection, host.name, imported.providers(host))
    host.run(f'rm -rf {real_servers.JOURNAL}/"$(hostname)"')
    imported.move_allocations(
        server.id,
        {ours[class_]: rp_uuid for class_, rp_uuid in cyborgs.items()},
        *owner,
    )
    imported.take_our_providers_away(host)
    _start_novas_driver(host)
    server.wait('ACTIVE')
    _expect_unchanged(host, before)
    evidence('it is Cyborg\'s again, and was not restarted')

    compute.stop(host)
    _take_over(evidence, host, server, cyborgs, owner)
    _expect_unchanged(host, before)
    server.act('reboot', '--hard')
    server.sees(_SEEN)
    _pid, hostdevs = _guest(host)
    registry.expect(
        hostdevs == before[1], f'it had {before[1]}, and has {hostdevs}'
    )
    evidence('after a hard reboot it has each of them once')


def _take_over(
    evidence: registry.Evidence,
    host: machine.Machine,
    server: real_servers.RealServer,
    cyborgs: dict[str, str],
    owner: tuple[str, str],
) -> None:
    """Start our driver; what it does not do is the import's."""
    compute.stop(host)
    real_servers.start(host)
    registry.expect_soon(
        'the roles of its ARQs',
        lambda: [role for role, _rp_uuid in imported.arqs(server.id).values()],
        ['active', 'active'],
        seconds=180,
    )
    ours = _providers_of(server)
    registry.expect(
        not set(ours.values()) & set(cyborgs.values()),
        f'the ARQs have the providers {ours}',
    )
    registry.expect_soon(
        'our providers in Placement',
        lambda: _are_in_placement(set(ours.values())),
        True,
        seconds=180,
    )
    imported.move_allocations(
        server.id,
        {rp_uuid: ours[class_] for class_, rp_uuid in cyborgs.items()},
        *owner,
    )
    evidence(f'it is taken over, with {ours}')


def _forget_reports(host: machine.Machine) -> None:
    """The host is as after an import."""
    with imported.database() as connection:
        imported_rows.forget_reports(connection, host.name)


def _providers_of(server: real_servers.RealServer) -> dict[str, str]:
    """Resource class -> the provider that its ARQ has now."""
    return {
        resource_class: rp_uuid
        for resource_class, (_role, rp_uuid) in imported.arqs(
            server.id
        ).items()
    }


def _are_in_placement(rp_uuids: set[str]) -> bool:
    """Whether they are there, with units."""
    known = {
        provider['uuid']
        for provider in cloud.show('resource', 'provider', 'list')
    }
    return rp_uuids <= known and all(
        cloud.show('resource', 'provider', 'inventory', 'list', rp_uuid)
        for rp_uuid in rp_uuids
    )


def _start_novas_driver(host: machine.Machine) -> None:
    real_servers.start_compute(host, driver='libvirt.LibvirtDriver')
    cloud.wait_for_compute(host.name)


def _guest(host: machine.Machine) -> tuple[str, list[str]]:
    """The process of the one guest, and the devices of the host in its XML."""
    return host.run(_GUEST).strip(), host.run(_HOSTDEVS).splitlines()


def _expect_unchanged(
    host: machine.Machine, before: tuple[str, list[str]]
) -> None:
    found = _guest(host)
    registry.expect(found == before, f'the guest was {before}, and is {found}')
