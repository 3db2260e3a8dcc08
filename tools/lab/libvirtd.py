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

"""Compute hosts: real libvirtd and QEMU, several on one machine.

Each host has a mount namespace with libvirtd's directories of its own, and a
UTS namespace with a name of its own: Nova calls a compute node what libvirt
calls its host. If its /sys is hand-written it also has a network namespace,
because udev's messages go to all listeners in one: those of this machine are
not the host's, and the host's are no one else's. Only libvirtd, QEMU and the
:mod:`lab.fake_kernel` are in it; nova-compute is not, and reaches the control
plane.
"""

from collections.abc import Sequence
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import uuid

import psutil

from lab import fake_sys
from lab import hardware
from lab import namespace
from lab import processes
from lab import settings

_LIBVIRTD_CONF = '''\
host_uuid = "{uuid}"
auth_unix_ro = "none"
auth_unix_rw = "none"
unix_sock_ro_perms = "0700"
unix_sock_rw_perms = "0700"
log_outputs = "3:stderr"
'''

#: No security driver, cgroups, namespaces or change of owner.
_QEMU_CONF = '''\
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
security_driver = "none"
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
'''

_PYTHONPATH = {'PYTHONPATH': os.fspath(settings.CHECKOUT / 'tools')}


class Libvirtd:
    """One compute host.

    :param machine: what it is, None for this one
    :ivar directory: what the host keeps
    :ivar sysfs: what it has as /sys, if that is not the real one
    :ivar tree: what the kernel makes that of
    """

    def __init__(
        self, name: str, machine: hardware.Machine | None = None
    ) -> None:
        self.name = name
        self.machine = machine
        self.directory = settings.STATE / 'hosts' / name
        self.sysfs = None if machine is None else self.directory / 'sys'
        self.tree = self.directory / 'tree'
        #: The processes, as :mod:`lab.processes` knows them.
        self.kernel = f'kernel-{name}'
        self.holder = f'host-{name}'
        self.daemon = f'libvirtd-{name}'

    @property
    def uri(self) -> str:
        socket = self.directory / 'run' / 'libvirt-sock'
        return f'qemu+unix:///system?socket={socket}'

    @property
    def booted(self) -> bool:
        """Whether its namespaces are there, and its devices are served."""
        return processes.alive(self.holder) and (
            self.sysfs is None or processes.alive(self.kernel)
        )

    def start(self) -> None:
        """Boot the host unless it runs, start libvirtd unless it runs.

        One that was off has all its devices free.
        """
        if not self.booted:
            self._boot()
        self.start_daemon()

    def start_daemon(self) -> None:
        """Start libvirtd, unless it runs."""
        processes.start(
            self.daemon,
            self._inside(
                ['/usr/sbin/libvirtd', '--pid-file', '/run/libvirt/lab.pid'],
                network=True,
            ),
            {
                # /sys need not be a sysfs.
                'SYSTEMD_DEVICE_VERIFY_SYSFS': '0',
                # Guests are not registered with this machine's systemd.
                'DBUS_SYSTEM_BUS_ADDRESS': 'unix:path=/nonexistent',
            },
        )
        processes.wait_for(f'libvirtd of {self.name}', 60, self._answers)

    def stop(self) -> None:
        """Power the host off: its guests, and all that runs inside."""
        # Those that libvirt does not destroy end with the rest.
        with contextlib.suppress(processes.LabError):
            if processes.alive(self.daemon):
                for guest in self.virsh('list', '--name').split():
                    self.virsh('destroy', guest)
        # Asked to end libvirtd takes seconds, and there is nothing to save.
        processes.wait_for(
            f'the end of {self.name}',
            15,
            lambda: not self._kill_all(),
            interval=0.05,
        )
        processes.stop(self.daemon, self.holder, self.kernel)
        self._unmount()

    def enter(self, command: Sequence[str | os.PathLike[str]]) -> list[str]:
        """A command, as one that sees the host's files, /sys and name.

        It stays in this machine's network, and in the working directory.

        :raises LabError: the host is not up.
        """
        return self._inside(command)

    def virsh(self, *command: str, stdin: str | None = None) -> str:
        """:raises LabError: what libvirt said."""
        return processes.run(
            ['virsh', '--quiet', '--connect', self.uri, *command],
            stdin=stdin,
            timeout=120,
        )

    def _boot(self) -> None:
        network = []
        if self.machine is not None and self.sysfs is not None:
            self._start_kernel(self.machine, self.sysfs)
            pid = processes.process(self.kernel).pid
            network = ['nsenter', f'--target={pid}', '--net']
        shutil.rmtree(self.directory / 'run', ignore_errors=True)
        for name in (
            *namespace.PLACES,
            'etc/qemu',
            'lib/qemu',
            'udev/data',
            'dev/vfio',
            'mdevctl/scripts.d/callouts',
            'mdevctl/scripts.d/notifiers',
        ):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        for name in ('udev/control', 'dev/vfio/vfio'):
            (self.directory / name).touch()
        (self.directory / 'etc' / 'libvirtd.conf').write_text(
            _LIBVIRTD_CONF.format(
                uuid=uuid.uuid5(uuid.NAMESPACE_URL, str(self.directory))
            )
        )
        (self.directory / 'etc' / 'qemu.conf').write_text(_QEMU_CONF)
        processes.start(
            self.holder,
            [
                *network,
                'unshare',
                '--mount',
                '--uts',
                sys.executable,
                '-m',
                'lab.namespace',
                self.name,
                self.directory,
                self.sysfs or '',
                'sleep',
                'infinity',
            ],
            _PYTHONPATH,
        )
        processes.wait_for(
            f'the namespaces of {self.name}',
            20,
            lambda: (
                processes.process(self.holder)
                and namespace.is_ready(self.directory)
            ),
        )

    def _start_kernel(
        self, machine: hardware.Machine, sysfs: pathlib.Path
    ) -> None:
        processes.stop(self.kernel)
        self._unmount()
        fake_sys.write(self.tree, machine)
        sysfs.mkdir(exist_ok=True)
        processes.start(
            self.kernel,
            [
                'unshare',
                '--net',
                sys.executable,
                '-m',
                'lab.fake_kernel',
                self.tree,
                sysfs,
            ],
            _PYTHONPATH,
        )
        processes.wait_for(
            f'the kernel of {self.name}',
            20,
            lambda: processes.process(self.kernel) and sysfs.is_mount(),
            interval=0.05,
        )

    def _unmount(self) -> None:
        """Take away what a kernel has shown that has ended."""
        if f' {self.sysfs} ' in pathlib.Path('/proc/mounts').read_text():
            subprocess.run(['umount', '--lazy', str(self.sysfs)], check=True)

    def _inside(
        self, command: Sequence[str | os.PathLike[str]], network: bool = False
    ) -> list[str]:
        pid = processes.process(self.holder).pid
        return [
            'nsenter',
            f'--target={pid}',
            '--mount',
            '--uts',
            *(['--net'] if network else []),
            f'--wdns={os.getcwd()}',
            '--',
            *(os.fspath(part) for part in command),
        ]

    def _answers(self) -> bool:
        try:
            self.virsh('version')
        except processes.LabError:
            # One that has ended says why, and is not waited for.
            processes.process(self.daemon)
            return False
        return True

    def _kill_all(self) -> bool:
        """Kill all in the host's namespaces; whether there was any.

        It is asked again until there is none: QEMU may just have started,
        and what libvirtd started does not end with it.
        """
        found = [
            each for each in psutil.process_iter() if self._is_inside(each.pid)
        ]
        for each in found:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        return bool(found)

    def _is_inside(self, pid: int) -> bool:
        """Whether a process has the host's directory at libvirtd's place."""
        place = namespace.PLACES['run']
        try:
            return os.path.samefile(
                f'/proc/{pid}/root{place}', self.directory / 'run'
            )
        except OSError:
            # It has ended, or has no such place.
            return False
