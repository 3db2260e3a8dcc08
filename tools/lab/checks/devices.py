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

"""Servers in the device VM: their guests have real, if emulated, devices."""

from collections.abc import Iterator
import contextlib
import json
import time

from lab import configuration
from lab import processes
from lab.checks import cloud
from lab.checks import leftovers
from lab.checks import registry
from lab.device_vm import compute
from lab.device_vm import hardware
from lab.device_vm import machine

_HOST = compute.HOST

_DEVICE_SPECS = (
    {'vendor_id': '1234', 'product_id': '11e8', 'driver': 'mdev',
     'mdev_type': hardware.MDEV_TYPES[0], 'type': 'VGPU'},
    {'vendor_id': '8086', 'product_id': '10ca', 'driver': 'pci',
     'type': 'NIC'},
    {'vendor_id': '8086', 'product_id': '10d3', 'driver': 'pci',
     'type': 'NIC'},
    {'vendor_id': '1b36', 'product_id': '0005', 'driver': 'pci',
     'type': 'FPGA'},
    *({'address': address, 'driver': 'pci', 'type': 'SSD'}
      for address in hardware.NVME_VF_ADDRESSES),
)

#: What Placement has of the machine: class, units, a trait.
_PUBLISHED = {
    ('VGPU', 24, 'CUSTOM_1234_11E8_LABGPU_1'),
    ('CUSTOM_NIC', 2, 'CUSTOM_NIC_INTEL_10CA'),
    ('CUSTOM_NIC', 2, 'CUSTOM_NIC_INTEL_10D3'),
    ('CUSTOM_SSD', 2, 'CUSTOM_SSD_1B36_0010'),
    ('FPGA', 1, 'CUSTOM_FPGA_1B36_0005'),
}

#: A server with all of it, and what its guest sees of them.
_ALL = ('lab-vm-all',
        'resources:VGPU=1,trait:CUSTOM_1234_11E8_LABGPU_1=required',
        'resources:CUSTOM_NIC=1,trait:CUSTOM_NIC_INTEL_10CA=required',
        'resources:CUSTOM_NIC=1,trait:CUSTOM_NIC_INTEL_10D3=required',
        'resources:CUSTOM_SSD=1,trait:CUSTOM_SSD_1B36_0010=required')
_ALL_SEEN = {'mediated device': hardware.MDEV,
             'virtual function of igb': hardware.IGB_VF,
             'e1000e, a whole function': hardware.E1000E,
             'virtual function of NVMe': hardware.NVME}

_WHOLE = ('lab-vm-compat',
          'resources:CUSTOM_NIC=1,trait:CUSTOM_NIC_INTEL_10D3=required')
_WHOLE_SEEN = {'e1000e, a whole function': hardware.E1000E}

_JOURNAL = '/var/lib/nova/nova_accel'

_GUEST_SECONDS = 400

_DRIVERS = '''
for address in /sys/bus/pci/devices/*; do
    driver=$(readlink "$address/driver")
    echo "${address##*/} ${driver##*/}"
done
'''

_MDEVS = 'ls /sys/bus/mdev/devices'

_KILL = f'''
until find {_JOURNAL} -path "*/labvm/*.json" | grep -q .; do sleep 0.05; done
head -c 300 {_JOURNAL}/labvm/*.json
'''

_LEFT = f'''
virsh -q list --all --name
ls /sys/bus/mdev/devices
find {_JOURNAL} -path '*/labvm/*.json' 2>/dev/null || true
'''


def start() -> None:
    """Have the machine and its nova-compute run."""
    machine.up()
    compute.start('\n'.join((
        configuration.template('nova.conf'),
        configuration.template(
            'nova-compute.conf', host=_HOST, libvirt_uri='qemu:///system',
            instances='/var/lib/nova/instances', virt_type='kvm'),
        configuration.guide_compute(
            map(json.dumps, _DEVICE_SPECS), '/var/lib/nova'))))


def _left() -> list[str]:
    return [f'{line} in the machine' for line
            in machine.run(_LEFT).split()]


@registry.check('devices')
def publishing(evidence: registry.Evidence) -> None:
    """The machine's devices are found and published."""
    start()
    leftovers.SEARCHES.append(_left)
    cloud.wait_for_compute(_HOST)
    wanted = set(_PUBLISHED)

    def published() -> bool:
        found = [provider for provider in cloud.show(
            'resource', 'provider', 'list')
            if provider['name'].startswith(f'{_HOST}_accel_')]
        return len(found) == len(wanted)

    processes.wait_for('the devices in Placement', 120, published, interval=1)
    for name, class_, units, traits in cloud.accelerators_of(_HOST):
        match = {each for each in wanted if each[:2] == (class_, units)
                 and each[2] in traits}
        registry.expect(match, f'{name}: {units} {class_} {sorted(traits)}')
        wanted -= match
        evidence(f'{name}: {units} {class_}, {", ".join(sorted(traits))}')
    registry.expect(not wanted, f'not published: {wanted}')


@registry.check('devices')
def passthrough(evidence: registry.Evidence) -> None:
    """A guest sees VFs, a whole function and an mdev of one device profile."""
    with _server(evidence, *_ALL) as server:
        _see(evidence, server, _ALL_SEEN)


@registry.check('devices')
def reboot(evidence: registry.Evidence) -> None:
    """The machine reboots; its guest comes back with its devices."""
    with _server(evidence, *_ALL) as server:
        mdevs = machine.run(_MDEVS).split()
        machine.reboot()
        start()
        evidence('the machine has booted again')
        cloud.wait_for_compute(_HOST)
        cloud.expect_active(cloud.wait_for_server(server))
        again = machine.run(_MDEVS).split()
        registry.expect(again == mdevs, f'mdevs {mdevs}, then {again}')
        evidence(f'mdev {" ".join(again)} is made again')
        _see(evidence, server, _ALL_SEEN)


@registry.check('devices')
def killed(evidence: registry.Evidence) -> None:
    """nova-compute dies while it starts a guest with devices."""
    with _server(evidence, *_ALL, wait=False) as server:
        evidence('noted when it died: ' + machine.run(_KILL, 60).strip())
        compute.kill()
        start()
        cloud.wait_for_compute(_HOST)
        found = cloud.wait_for_server(server, ('ERROR', 'ACTIVE'))
        evidence(f'then the server is {found["status"]}')


@registry.check('devices')
def cyborgs_key(evidence: registry.Evidence) -> None:
    """A server with Cyborg's flavor key has its device in its guest."""
    with _server(evidence, *_WHOLE, key='accel:device_profile') as server:
        _see(evidence, server, _WHOLE_SEEN)


@contextlib.contextmanager
def _server(evidence: registry.Evidence, name: str, *groups: str,
            wait: bool = True, **kwargs: str) -> Iterator[str]:
    """A server in the machine; in the end its devices are given back.

    There is one at a time: QEMU emulates KVM, and does not do so well with
    several guests at once.
    """
    before = _drivers()
    flavor = cloud.accelerated_flavor(name, *groups, **kwargs)
    begin = time.monotonic()
    server = cloud.create_server(flavor, '--host', _HOST, name=name)['id']
    try:
        if wait:
            cloud.expect_active(cloud.wait_for_server(server))
            evidence(f'ACTIVE after {time.monotonic() - begin:.0f} s')
            for address, driver in sorted(
                    _drivers().items() - before.items()):
                registry.expect(driver == 'vfio-pci', f'{address}: {driver}')
                evidence(f'{address} is bound to {driver}')
        yield server
    finally:
        cloud.delete_servers(server)
    processes.wait_for('the drivers of the host', 30,
                       lambda: _drivers() == before, interval=1)
    for address in (*hardware.IGB_VF_ADDRESSES, *hardware.E1000E_ADDRESSES):
        evidence(f'given back: {address} is bound to '
                 f'{before[address] or "no driver"}')


def _see(evidence: registry.Evidence, id_: str,
         devices: dict[str, str]) -> None:
    """Wait until the guest has booted, and show that it has the devices."""
    begin = time.monotonic()
    lines = cloud.wait_for_console(id_, 'LAB-GUEST-END', _GUEST_SECONDS)
    evidence(f'the guest is up after {time.monotonic() - begin:.0f} s more')
    for what, device in devices.items():
        vendor, product = device.split(':')
        seen = [line for line in lines if f'0x{vendor}:0x{product}' in line]
        registry.expect(seen, f'no {what} ({device}) in the guest: {lines}')
        evidence(f'{what}, in the guest: {seen[0]}')


def _drivers() -> dict[str, str]:
    """Which driver each PCI function of the machine is bound to."""
    return dict(line.partition(' ')[::2] for line
                in machine.run(_DRIVERS).splitlines())
