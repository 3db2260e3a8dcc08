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

"""Devices of the device VM: published, in guests, and given back."""

from collections.abc import Iterator
import contextlib

from lab.checks import cloud
from lab.checks import real_servers
from lab.checks import registry
from lab.device_vm import compute
from lab.device_vm import hardware
from lab.device_vm import machine

#: What Placement has of the machine: class, units, a trait.
_PUBLISHED = {
    ('VGPU', 23, 'CUSTOM_1234_11E8_LABGPU_1'),
    ('CUSTOM_NIC', 2, 'CUSTOM_NIC_INTEL_82576_VF'),
    ('CUSTOM_NIC', 2, 'CUSTOM_NIC_INTEL_10D3'),
    ('CUSTOM_SSD', 2, 'CUSTOM_SSD_RED_HAT_QEMU_NVM_EXPRESS'),
    ('CUSTOM_SSD', 1, 'CUSTOM_SSD_INTEL_5845'),
    ('FPGA', 1, 'CUSTOM_FPGA_RED_HAT_0005'),
}

_WHOLE = (
    'lab-vm-compat',
    'resources:CUSTOM_NIC=1,trait:CUSTOM_NIC_INTEL_10D3=required',
)
_WHOLE_SEEN = {'e1000e, a whole function': hardware.E1000E}

_KILL = f'''
cd {real_servers.JOURNAL}
until find . -path "./$(hostname)/*.json" | grep -q .; do
    sleep 0.05
done
head -c 300 "$(hostname)"/*.json
'''


@real_servers.check('devices')
def publishing(evidence: registry.Evidence) -> None:
    """The machine's devices are found and published.

    A mediated device is there of a parent that is no PCI function.
    """
    other = machine.A.run(
        f'readlink /sys/bus/mdev/devices/{hardware.OTHER_MDEV}'
    ).strip()
    registry.expect('/mtty/' in other, other)
    evidence(f'not ours: {other}')
    registry.expect_soon(
        'what is published', _published, _PUBLISHED, seconds=120
    )
    for class_, units, trait in sorted(_PUBLISHED):
        evidence(f'{units} {class_}, {trait}')
    _expect_reserved(0)
    evidence('the drive is erased once before its first guest')


def _published() -> set[tuple[str, int, str]]:
    """As ``_PUBLISHED``; all traits where none of the wanted ones is."""
    wanted = {trait for _class, _units, trait in _PUBLISHED}
    return {
        (class_, units, next(iter(wanted & traits), f'{sorted(traits)}'))
        for _name, class_, units, traits in cloud.accelerators_of(
            machine.A.name
        )
    }


@real_servers.check('devices')
def passthrough(evidence: registry.Evidence) -> None:
    """A guest sees VFs, a whole function and an mdev of one device profile."""
    with real_servers.server(evidence, *real_servers.ALL) as server:
        server.sees(real_servers.ALL_SEEN)


@real_servers.check('devices')
def reboot(evidence: registry.Evidence) -> None:
    """The machine reboots; its guest comes back with its devices.

    They are virtual functions of igb and NVMe, which nova-compute makes.
    """
    with real_servers.server(evidence, *real_servers.ALL) as server:
        mdevs = real_servers.mdevs()
        machine.A.reboot()
        real_servers.start()
        evidence('the machine has booted again')
        server.wait('ACTIVE')
        again = real_servers.mdevs()
        registry.expect(again == mdevs, f'mdevs {mdevs}, then {again}')
        evidence(f'mdev {" ".join(again)} is made again')
        evidence(
            'virtual functions are made again: '
            f'{", ".join(_virtual_functions())}'
        )
        server.sees(real_servers.ALL_SEEN)


def _virtual_functions() -> list[str]:
    return machine.A.run("cd /sys/bus/pci/devices && ls -d */physfn").split()


@real_servers.check('devices')
def drained(evidence: registry.Evidence) -> None:
    """No guest gets a disabled device, and the one that has it keeps it."""
    with real_servers.server(evidence, *_WHOLE) as server:
        server.sees(_WHOLE_SEEN)
        taken = real_servers.drivers()
        devices = [
            device['uuid']
            for device in cloud.show('accelerator', 'device', 'list')
            if device['hostname'] == machine.A.name
            and '10d3' in str(device['std_board_info'])
        ]
        registry.expect(len(devices) == 2, f'{devices}')
        for device in devices:
            cloud.openstack('accelerator', 'device', 'disable', device)
        try:
            # Not the unit that the guest has.
            _expect_reserved(1)
            flavor = cloud.accelerated_flavor(*_WHOLE)
            with cloud.server(flavor) as refused:
                registry.expect(
                    refused['status'] == 'ERROR',
                    f'another server is {refused["status"]}',
                )
                evidence(f'refused: {cloud.fault(refused)}')
            server.wait('ACTIVE')
            registry.expect(
                real_servers.drivers() == taken,
                'the guest has lost its device',
            )
        finally:
            for device in devices:
                cloud.openstack('accelerator', 'device', 'enable', device)
    _expect_reserved(0)
    with real_servers.server(evidence, *_WHOLE) as server:
        server.sees(_WHOLE_SEEN)


@real_servers.check('devices')
def lost(evidence: registry.Evidence) -> None:
    """A device that reads all ones is faulty until it answers again."""
    _expect_reserved(0)
    with _lost(hardware.E1000E_ADDRESSES[0]):
        _expect_reserved(1)
        evidence('its unit is reserved')
    _expect_reserved(0)
    evidence('it answers again, and is free')
    with real_servers.server(evidence, *_WHOLE) as server:
        server.sees(_WHOLE_SEEN)


@contextlib.contextmanager
def _lost(address: str) -> Iterator[None]:
    """A device that reads all ones while the body runs."""
    machine.A.run(f'echo {hardware.LOST_E1000E[address]} >{hardware.LOST}')
    try:
        yield
    finally:
        machine.A.run(f'echo -1 >{hardware.LOST}')


@real_servers.check('devices')
def replaced(evidence: registry.Evidence) -> None:
    """Another device takes the place of one that has failed in a guest.

    It has the same address there: at once when the owner asks for it, and by
    itself at a hard reboot.
    """
    with real_servers.server(evidence, *_WHOLE) as server:
        seen = server.sees(_WHOLE_SEEN)
        for ask in (
            ('accelerator', 'server', 'replace'),
            ('server', 'reboot', '--hard'),
        ):
            failed = _of_the_guest()
            with _lost(failed):
                registry.expect_soon(
                    'the health of its device',
                    lambda: _health(server.id),
                    ['failed'],
                    seconds=180,
                )
                evidence(f'{failed} reads all ones, and its owner reads so')
                cloud.openstack(*ask, server.id)
                server.wait('ACTIVE')
                now = server.sees(_WHOLE_SEEN, restarted=ask[0] == 'server')
                registry.expect(now == seen, f'{seen}, then {now}')
                registry.expect(
                    _of_the_guest() != failed, 'the guest has the same device'
                )
                registry.expect(
                    _health(server.id) == ['healthy'], 'its device has failed'
                )
                evidence(f'{" ".join(ask)}: {_of_the_guest()} at its place')
                # No one else gets it.
                _expect_reserved(1)
            # For the kernel it stays without power until it is found again.
            machine.A.run(
                f'echo 1 >/sys/bus/pci/devices/{failed}/remove; '
                'echo 1 >/sys/bus/pci/rescan'
            )
            _expect_reserved(0)


def _of_the_guest() -> str:
    """The one whole function that a guest has."""
    drivers = real_servers.drivers()
    (address,) = [
        each
        for each in hardware.E1000E_ADDRESSES
        if drivers[each] == 'vfio-pci'
    ]
    return address


def _health(server_id: str) -> list[str]:
    return [
        row['Health']
        for row in cloud.show('accelerator', 'server', 'show', server_id)
    ]


@real_servers.check('devices')
def cleaned(evidence: registry.Evidence) -> None:
    """The next tenant of a drive cannot read what the last has written."""
    # What was never reported is unclean.
    _expect_reserved(0)
    secrets = []
    for _tenant in range(2):
        with real_servers.server(evidence, *real_servers.DRIVE) as server:
            server.sees(real_servers.DRIVE_SEEN)
            console = '\n'.join(
                cloud.wait_for_console(server.id, 'LAB-DRIVE written')
            )
            registry.expect(
                "LAB-DRIVE reads ''" in console,
                'the guest can read what was on the drive',
            )
            secrets.append(_on_the_drive())
            evidence(f'it was blank; now it has {secrets[-1]!r}')
            registry.expect('secret' in secrets[-1], 'nothing was written')
        registry.expect_soon(
            'what is on the drive then', _on_the_drive, '', seconds=90
        )
        _expect_reserved(0)
    registry.expect(secrets[0] != secrets[1], 'it was one guest')


def _expect_reserved(units: int) -> None:
    """The host has heard of its orders, and Placement of the host."""
    registry.expect_soon(
        'reserved units',
        lambda: cloud.reserved_of(machine.A.name),
        units,
        seconds=180,
    )


def _on_the_drive() -> str:
    return machine.A.drive.read_bytes().rstrip(b'\0').decode()


@real_servers.check('devices')
def killed(evidence: registry.Evidence) -> None:
    """nova-compute dies while it starts a guest with devices."""
    with real_servers.server(
        evidence, *real_servers.ALL, wait=False
    ) as server:
        evidence('noted when it died: ' + machine.A.run(_KILL, 60).strip())
        compute.kill(machine.A)
        real_servers.start()
        found = cloud.wait_for_server(server.id, ('ERROR', 'ACTIVE'))
        evidence(f'then the server is {found["status"]}')


@real_servers.check('devices')
def cyborgs_key(evidence: registry.Evidence) -> None:
    """A server with Cyborg's flavor key has its device in its guest."""
    with real_servers.server(
        evidence, *_WHOLE, key='accel:device_profile'
    ) as server:
        server.sees(_WHOLE_SEEN)
