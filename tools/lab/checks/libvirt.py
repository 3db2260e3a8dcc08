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

"""What Nova takes for granted of libvirt, on the hosts of lab.fake_hosts."""

from collections.abc import Iterator
import contextlib
import functools
import uuid

from lab import compute_host
from lab import fake_hosts
from lab import hardware
from lab import libvirtd
from lab import processes
from lab.checks import registry

_GPU = fake_hosts.GPU
_TYPE = _GPU.mdev_types[0].name

_MDEV = '''
<device>
  <parent>{parent}</parent>
  <capability type='mdev'><type id='{type}'/><uuid>{uuid}</uuid></capability>
</device>
'''

#: Without a disk it stays in its firmware.
_GUEST = '''
<domain type='qemu'>
  <name>{name}</name>
  <memory unit='MiB'>64</memory>
  <os><type arch='x86_64' machine='q35'>hvm</type></os>
  <devices>{devices}</devices>
</domain>
'''

_PCI_HOSTDEV = '''
<hostdev mode='subsystem' type='pci' managed='yes'>
  <source>
    <address domain='0x{0}' bus='0x{1}' slot='0x{2}' function='0x{3}'/>
  </source>
</hostdev>
'''

_MDEV_HOSTDEV = '''
<hostdev mode='subsystem' type='mdev' model='vfio-pci' managed='no'>
  <source><address uuid='{uuid}'/></source>
</hostdev>
'''


@registry.check('e2e')
def libvirt(evidence: registry.Evidence) -> None:
    """libvirt lists the devices, makes mdevs and refuses what is not real."""
    hosts = [host.libvirt for host in compute_host.HOSTS]
    for host in hosts:
        evidence(f'{host.name} lists {", ".join(devices_listed(host))}')
        mdev_life(host, [other for other in hosts if other.name != host.name])
        evidence(f'{host.name} made and removed a {_TYPE}, on itself alone')
        plain_guest(host)
        evidence(f'{host.name} ran a guest')
        for refusal in guests_with_devices(host):
            evidence(f'{host.name} refused a guest with {refusal}')


def devices_listed(host: libvirtd.Libvirtd) -> list[str]:
    """The host has its PCI functions, and Nova's node has its name."""
    wanted = sorted(
        map(_node_device, fake_hosts.MACHINES[host.name].at_boot())
    )
    found = sorted(host.virsh('nodedev-list', '--cap', 'pci').split())
    _expect(f'PCI functions of {host.name}', found, wanted)
    _expect(
        'parents of mediated devices',
        host.virsh('nodedev-list', '--cap', 'mdev_types').split(),
        [_node_device(_GPU)],
    )
    _expect('name', host.virsh('hostname').strip(), host.name)
    for function in fake_hosts.MACHINES[host.name].functions:
        virtual = host.virsh(
            'nodedev-dumpxml',
            _node_device(function),
            '--xpath',
            '//capability[@type="virt_functions"]/address',
        )
        _expect(
            f'virtual functions of {function.address}',
            virtual.count('<address '),
            len(list(function.at_boot())),
        )
    return found


def mdev_life(
    host: libvirtd.Libvirtd, others: list[libvirtd.Libvirtd]
) -> None:
    """A device comes and goes on one host, and others do not notice."""
    before = {each.name: _seen(each) for each in (host, *others)}
    free, mdevs = before[host.name]
    with _mdev(host) as (_uuid, name):
        registry.expect_soon(
            f'{host.name} with {name}',
            functools.partial(_seen, host),
            (free - 1, mdevs | {name}),
        )
        for other in others:
            _expect(other.name, _seen(other), before[other.name])
    for each in (host, *others):
        # libvirt learns by messages, a little later.
        registry.expect_soon(
            each.name, functools.partial(_seen, each), before[each.name]
        )


def plain_guest(host: libvirtd.Libvirtd) -> None:
    """QEMU runs a guest, in software."""
    name = f'smoke-{uuid.uuid4()}'
    _create_guest(host, _GUEST.format(name=name, devices=''))
    try:
        _expect('state', host.virsh('domstate', name).strip(), 'running')
    finally:
        host.virsh('destroy', name)


def guests_with_devices(host: libvirtd.Libvirtd) -> Iterator[str]:
    """No guest gets a device that is not real, and trying changes nothing."""
    with _mdev(host) as (mdev_uuid, _name):
        before = _snapshot(host)
        for kind, device in (
            (
                'virtual function',
                _PCI_HOSTDEV.format(*_parts(fake_hosts.QAT.virtual(0))),
            ),
            ('function', _PCI_HOSTDEV.format(*_parts(fake_hosts.FPGA))),
            ('mediated device', _MDEV_HOSTDEV.format(uuid=mdev_uuid)),
        ):
            yield f'a {kind}: {_refused(host, device)}'
            _expect('/sys after a refusal', _snapshot(host), before)


def _refused(host: libvirtd.Libvirtd, device: str) -> str:
    """Libvirt's reason not to start a guest with the device."""
    name = f'smoke-{uuid.uuid4()}'
    try:
        _create_guest(host, _GUEST.format(name=name, devices=device))
    except processes.LabError as error:
        return str(error).rpartition('error: ')[2]
    host.virsh('destroy', name)
    raise registry.Failed(f'{host.name} runs a guest with {device}')


def _create_guest(host: libvirtd.Libvirtd, xml: str) -> None:
    host.virsh('create', '/dev/stdin', stdin=xml)


@contextlib.contextmanager
def _mdev(host: libvirtd.Libvirtd) -> Iterator[tuple[str, str]]:
    """A mediated device; gives its uuid and libvirt's name of it."""
    own = str(uuid.uuid4())
    parent = _node_device(_GPU)
    host.virsh(
        'nodedev-create',
        '/dev/stdin',
        stdin=_MDEV.format(parent=parent, type=_TYPE, uuid=own),
    )
    name = f'mdev_{own}_{_GPU.address}'.translate(str.maketrans('-:.', '___'))
    try:
        yield own, name
    finally:
        host.virsh('nodedev-destroy', name)


def _seen(host: libvirtd.Libvirtd) -> tuple[int, set[str]]:
    """How many the GPU can still make, and all mediated devices."""
    free = host.virsh(
        'nodedev-dumpxml',
        _node_device(_GPU),
        '--xpath',
        f'//type[@id="{_TYPE}"]/availableInstances/text()',
    )
    return (
        int(free),
        set(host.virsh('nodedev-list', '--cap', 'mdev').split()),
    )


def _snapshot(host: libvirtd.Libvirtd) -> dict[str, bytes]:
    """What the hand-written /sys has; what is real in it is not seen here."""
    result: dict[str, bytes] = {}
    for path in host.tree.rglob('*'):
        if path.is_symlink():
            result[str(path)] = bytes(path.readlink())
        else:
            result[str(path)] = path.read_bytes() if path.is_file() else b''
    return result


def _node_device(function: hardware.Function) -> str:
    return 'pci_' + '_'.join(_parts(function))


def _parts(function: hardware.Function) -> list[str]:
    return function.address.replace('.', ':').split(':')


def _expect(what: str, found: object, wanted: object) -> None:
    registry.expect(found == wanted, f'{what}: {found}, not {wanted}')
