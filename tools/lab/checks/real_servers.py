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

"""Servers in device VMs: their guests have real, if emulated, devices."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import dataclasses
import functools
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

#: Of a machine's nova-compute.
JOURNAL = '/var/lib/nova/nova_accel'

#: The guide's ``compute_driver``.
_OURS = 'nova_accel.LibvirtDriver'

_DEVICE_SPECS = (
    {
        'vendor_id': '1234',
        'product_id': '11e8',
        'driver': 'mdev',
        'mdev_type': hardware.MDEV_TYPES[0],
        'type': 'VGPU',
    },
    {
        'vendor_id': '8086',
        'product_id': '10c9',
        'driver': 'pci',
        'type': 'NIC',
        'sriov_numvfs': 2,
    },
    {
        'vendor_id': '8086',
        'product_id': '10d3',
        'driver': 'pci',
        'type': 'NIC',
    },
    {
        # Its PCI class is undefined: the product alone says what it is.
        'product_id': '0005',
        'address': hardware.FPGA_ADDRESS,
        'driver': 'fpga_region',
        'whole': True,
        'contents_attribute': 'labfpga_loaded',
    },
    {
        'address': hardware.NVME_ADDRESS,
        'driver': 'pci',
        'type': 'SSD',
        'sriov_numvfs': 2,
    },
    {'vendor_id': '8086', 'product_id': '5845', 'driver': 'nvme'},
)

#: A device profile with a device of each kind, and what a guest sees of them.
ALL = (
    'lab-vm-all',
    'resources:VGPU=1,trait:CUSTOM_1234_11E8_LABGPU_1=required',
    'resources:CUSTOM_NIC=1,trait:CUSTOM_NIC_INTEL_82576_VF=required',
    'resources:CUSTOM_NIC=1,trait:CUSTOM_NIC_INTEL_10D3=required',
    'resources:CUSTOM_SSD=1,trait:CUSTOM_SSD_RED_HAT_QEMU_NVM_EXPRESS=required',
)
ALL_SEEN = {
    'mediated device': hardware.MDEV,
    'virtual function of igb': hardware.IGB_VF,
    'e1000e, a whole function': hardware.E1000E,
    'virtual function of NVMe': hardware.NVME,
}

#: One with a drive that is erased after each guest.
DRIVE = (
    'lab-vm-drive',
    'resources:CUSTOM_SSD=1,trait:CUSTOM_SSD_INTEL_5845=required',
)
DRIVE_SEEN = {'NVMe drive': hardware.DRIVE}

#: One with two mediated devices and nothing else.
MDEVS = (
    'lab-vm-mdevs',
    'resources:VGPU=2,trait:CUSTOM_1234_11E8_LABGPU_1=required',
)
MDEVS_SEEN = {
    'mediated device': hardware.MDEV,
    'another mediated device': hardware.MDEV,
}

#: How long a guest may take until it is up.
GUEST_SECONDS = 900

#: How often a check is begun whose machine dies.
_TIMES = 3

_DRIVERS = '''
for address in /sys/bus/pci/devices/*; do
    driver=$(readlink "$address/driver")
    echo "${address##*/} ${driver##*/}"
done
'''

_MDEVS = f'ls /sys/bus/mdev/devices | grep -v {hardware.OTHER_MDEV} || true'

# What FPGAs hold is noted for ever, beside.
_LEFT = f'''
virsh -q list --all --name
{_MDEVS}
find "{JOURNAL}/$(hostname)" -name "*.json" 2>/dev/null || true
'''


def start(host: machine.Machine = machine.A) -> None:
    """Have a machine and its nova-compute run; nothing if they do."""
    host.up()
    start_compute(host)
    cloud.wait_for_compute(host.name)


def start_compute(host: machine.Machine, driver: str = _OURS) -> None:
    """Start a machine's nova-compute, unless it runs.

    :param driver: its ``compute_driver``
    """
    compute.start(
        host,
        '\n'.join(
            (
                configuration.template('nova.conf'),
                configuration.template(
                    'nova-compute.conf',
                    host=host.name,
                    libvirt_uri='qemu:///system',
                    instances='/instances',
                    # It takes an emulated CPU seconds.
                    virt_type='kvm',
                    update_s=30,
                ),
                configuration.guide_compute(
                    map(json.dumps, _DEVICE_SPECS), '/var/lib/nova'
                ).replace(_OURS, driver),
            )
        ),
    )


def check(
    suite: str,
    *hosts: machine.Machine,
) -> Callable[[registry.Function], registry.Function]:
    """Make a function a check of a suite that has machines.

    It is done again if one has died meanwhile: the KVM that QEMU emulates
    corrupts the kernel under it now and then. All else is a failure.

    :param hosts: the first alone, if none is given
    """
    hosts = hosts or (machine.A,)

    def register(function: registry.Function) -> registry.Function:
        @functools.wraps(function)
        def again_if_one_dies(evidence: registry.Evidence) -> None:
            _prepare(hosts)
            for _time in range(_TIMES - 1):
                try:
                    return function(evidence)
                except Exception:
                    dead = [host.name for host in hosts if not host.alive()]
                    if not dead:
                        raise
                    evidence(f'{" and ".join(dead)} died; once more')
                    _recover(hosts)
            return function(evidence)

        return registry.check(suite)(again_if_one_dies)

    return register


def _prepare(hosts: Iterable[machine.Machine]) -> None:
    """Have these run and no others, which would only take time."""
    for host in machine.MACHINES:
        if host not in hosts:
            host.down()
    for host in hosts:
        start(host)


def _recover(hosts: Iterable[machine.Machine]) -> None:
    """Delete what a machine that died has left."""
    _prepare(hosts)
    left = [found['ID'] for found in cloud.show('server', 'list')]
    if left:
        cloud.delete_servers(*left)


def drivers(host: machine.Machine = machine.A) -> dict[str, str]:
    """Which driver each PCI function of a machine is bound to."""
    return dict(
        line.partition(' ')[::2] for line in host.run(_DRIVERS).splitlines()
    )


def mdevs(host: machine.Machine = machine.A) -> list[str]:
    """The uuids of a machine's mediated devices."""
    return host.run(_MDEVS).split()


def _left() -> list[str]:
    return [
        f'{line} in {host.name}'
        for host in machine.MACHINES
        if host.alive()
        for line in host.run(_LEFT).split()
    ]


leftovers.SEARCHES.append(_left)


@dataclasses.dataclass
class RealServer:
    """A server in a machine.

    ``boot`` is what its guest said first when it was last seen, and
    ``listings`` how often it had listed its devices then.
    """

    id: str
    evidence: registry.Evidence
    boot: str = ''
    listings: int = 0

    def act(self, *words: str, status: str = 'ACTIVE') -> None:
        """Do something to it, and wait until it is done.

        :param words: of ``openstack server``, such as ``rebuild``
        """
        begin = time.monotonic()
        cloud.openstack('server', *words, self.id)
        self.wait(status)
        self.evidence(
            f'{words[0]}: {status} after {time.monotonic() - begin:.0f} s'
        )

    def wait(self, status: str) -> None:
        """Wait until it is so and nothing goes on.

        :raises Failed: it is in ERROR.
        """
        found = cloud.wait_for_server(self.id, (status, 'ERROR'))
        registry.expect(found['status'] == status, cloud.fault(found))

    def sees(
        self, devices: dict[str, str], restarted: bool = True
    ) -> dict[str, str]:
        """Wait until its guest says that it has the devices.

        :param restarted: the guest boots, since it was last seen; otherwise
            its devices change
        :returns: the guest's line of each, with its address there
        """
        begin = time.monotonic()
        seen: dict[str, str] = {}

        def said() -> bool:
            boot, listings = _said(cloud.console(self.id))
            if (
                boot == self.boot
                if restarted
                else len(listings) == self.listings
            ) or not listings:
                return False
            seen.clear()
            seen.update(_find(devices, list(listings.values())[-1]))
            if seen.keys() != devices.keys():
                return False
            self.boot, self.listings = boot, len(listings)
            return True

        try:
            processes.wait_for('the guest', GUEST_SECONDS, said, interval=1)
        except processes.LabError as error:
            raise registry.Failed(
                f'of {", ".join(devices)} the guest sees {seen}: {error}'
            ) from error
        self.evidence(
            f'the guest is up after {time.monotonic() - begin:.0f} s more'
        )
        for what, line in seen.items():
            self.evidence(f'{what}, in the guest: {line}')
        return seen


@contextlib.contextmanager
def server(
    evidence: registry.Evidence,
    name: str,
    *groups: str,
    wait: bool = True,
    **kwargs: str,
) -> Iterator[RealServer]:
    """A server in the first machine; in the end its devices are given back.

    Without groups it has none, and its flavor is a plain one.

    There is one at a time: QEMU emulates KVM, and does not do so well with
    several guests at once.
    """
    before = drivers()
    flavor = (
        cloud.accelerated_flavor(name, *groups, **kwargs)
        if groups
        else cloud.plain_flavor()
    )
    begin = time.monotonic()
    made = RealServer(
        cloud.create_server(flavor, '--host', machine.A.name, name=name)['id'],
        evidence,
    )
    try:
        if wait:
            made.wait('ACTIVE')
            evidence(f'ACTIVE after {time.monotonic() - begin:.0f} s')
            for address, driver in sorted(drivers().items() - before.items()):
                registry.expect(driver == 'vfio-pci', f'{address}: {driver}')
                evidence(f'{address} is bound to {driver}')
        yield made
    finally:
        if machine.A.alive():
            cloud.delete_servers(made.id)
    processes.wait_for(
        'the drivers of the host', 120, lambda: drivers() == before, interval=1
    )
    for address in (*hardware.IGB_VF_ADDRESSES, *hardware.E1000E_ADDRESSES):
        evidence(
            f'given back: {address} is bound to '
            f'{before[address] or "no driver"}'
        )


def _said(console: str) -> tuple[str, dict[str, list[str]]]:
    """How the guest's last boot began, and what devices it had since.

    By the number that the guest gave to each list, as it said it last.
    """
    boot, lines = '', []
    listings: dict[str, list[str]] = {}
    for line in console.splitlines():
        if 'LAB-GUEST-UP' in line:
            boot, listings, lines = line, {}, []
        elif 'LAB-GUEST-END' in line:
            listings[line.split()[-1]] = lines
            lines = []
        elif 'LAB-PCI' in line:
            lines.append(line)
    return boot, listings


def _find(devices: dict[str, str], listing: list[str]) -> dict[str, str]:
    """What of the devices is in the list -> its line, each one its own."""
    found = {}
    # One list may end in another, if the line between them is garbled.
    unclaimed = list(dict.fromkeys(listing))
    for what, device in devices.items():
        vendor, product = device.split(':')
        for line in unclaimed:
            if f'0x{vendor}:0x{product}' in line:
                found[what] = line.strip()
                unclaimed.remove(line)
                break
    return found
