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

"""What a process of a compute host finds at fixed places, made private.

Run as ``python -m lab.namespace NAME DIRECTORY TREE COMMAND ...`` in new
mount and UTS namespaces (and, if TREE, the /sys of the host, is not empty, in
the network namespace of who serves that). It becomes the command.
"""

import fcntl
import os
import pathlib
import socket
import struct
import subprocess
import sys

#: Below the host's directory, and where it is seen: libvirtd has these places
#: compiled in.
PLACES = {
    'etc': '/etc/libvirt',
    'mdevctl': '/etc/mdevctl.d',
    'run': '/run/libvirt',
    'lib': '/var/lib/libvirt',
    # What QEMU can do, which takes libvirt 8 s to find out: all hosts' own.
    '../cache': '/var/cache/libvirt',
    'log': '/var/log/libvirt',
}

#: Where libudev looks for udev.
UDEV = '/run/udev'

#: What of the real /dev there is beside a hand-written /sys.
_DEVICES = (
    'fd',
    'full',
    'kvm',
    'net',
    'null',
    'pts',
    'random',
    'shm',
    'stderr',
    'stdin',
    'stdout',
    'tty',
    'urandom',
    'zero',
)

#: What a hand-written /sys keeps of the real one: processors, memory, cgroups.
REAL = ('devices/system', 'fs/cgroup', 'kernel/mm')

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def enter(name: str, directory: pathlib.Path, tree: str) -> None:
    """Make the namespaces that this process is in those of a host."""
    socket.sethostname(name)
    for source, place in PLACES.items():
        pathlib.Path(place).mkdir(parents=True, exist_ok=True)
        _mount('--bind', directory / source, place)
    # The host's name must not be looked up elsewhere.
    hosts = pathlib.Path('/etc/hosts')
    if hosts.is_file():
        own = directory / 'hosts'
        own.write_text(f'127.0.1.1 {name}\n{hosts.read_text()}')
        _mount('--bind', own, hosts)
    if tree:
        _hand_written(directory, pathlib.Path(tree))
    (directory / 'run' / 'ready').touch()


def is_ready(directory: pathlib.Path) -> bool:
    """Whether the host of the directory can be entered, once it started."""
    return (directory / 'run' / 'ready').exists()


def _hand_written(directory: pathlib.Path, tree: pathlib.Path) -> None:
    """Replace /sys, and hide what belongs to the devices of the real one."""
    for path in REAL:
        real = pathlib.Path('/sys', path)
        if real.is_dir():
            _mount('--rbind', real, tree / path)
    _mount('--rbind', tree, '/sys')
    # libudev listens only where there is a udev, and reads its database.
    pathlib.Path(UDEV).mkdir(exist_ok=True)
    _mount('--bind', directory / 'udev', UDEV)
    _mount(
        '--bind', pathlib.Path(__file__).with_name('udevadm'), '/bin/udevadm'
    )
    _own_devices(directory)
    _loopback_up()


def _own_devices(directory: pathlib.Path) -> None:
    """Have in /dev what QEMU needs, and a VFIO whose groups are missing.

    Those of this machine are not those of the same numbers in the tree.
    """
    for name in _DEVICES:
        real, own = pathlib.Path('/dev', name), directory / 'dev' / name
        if real.is_symlink():
            own.unlink(missing_ok=True)
            own.symlink_to(real.readlink())
        elif real.exists():
            if real.is_dir():
                own.mkdir(exist_ok=True)
            else:
                own.touch()
            _mount('--rbind', real, own)
    # Mounted by itself it would not find the pts beside it.
    ptmx = directory / 'dev' / 'ptmx'
    ptmx.unlink(missing_ok=True)
    ptmx.symlink_to('pts/ptmx')
    _mount('--rbind', directory / 'dev', '/dev')


def _mount(
    how: str, source: str | os.PathLike[str], place: str | os.PathLike[str]
) -> None:
    subprocess.run(['mount', how, source, place], check=True)


def _loopback_up() -> None:
    """A new network namespace has it down, and QEMU listens on it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack('16sh14x', b'lo', 0)
        answer = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request)
        _name, flags = struct.unpack('16sh14x', answer)
        fcntl.ioctl(
            any_socket,
            _SIOCSIFFLAGS,
            struct.pack('16sh14x', b'lo', flags | _IFF_UP),
        )


if __name__ == '__main__':
    enter(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3])
    os.execvp(sys.argv[4], sys.argv[4:])  # noqa: S606
