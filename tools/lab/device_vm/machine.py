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

"""The machines: on, reset, off.

``/var/lib/nova``, ``/var/lib/libvirt``, ``/etc/libvirt`` and
``/etc/mdevctl.d`` of a machine are on a disk that outlives boots; all else is
as in the image again.
"""

import contextlib
import dataclasses
import json
import pathlib
import shutil
import socket

from lab import guest
from lab import processes
from lab import settings
from lab.device_vm import hardware
from lab.device_vm import image

_STATE_SIZE = '16G'

_UP_SECONDS = 300

#: The disks of the servers of all machines.
_INSTANCES = settings.STATE / 'vm-instances'


@dataclasses.dataclass(frozen=True)
class Machine:
    """A machine, and a compute host.

    :param name: what it calls itself
    """

    name: str

    @property
    def directory(self) -> pathlib.Path:
        return image.DIRECTORY / self.name

    @property
    def share(self) -> pathlib.Path:
        """``/share`` in the machine; the guest's files are in ``guest``."""
        return self.directory / 'share'

    @property
    def drive(self) -> pathlib.Path:
        """What is on the NVMe drive that guests get."""
        return self.directory / 'drive.img'

    @property
    def logs(self) -> pathlib.Path:
        """``/log`` in the machine."""
        return settings.LOGS / self.name

    def up(self) -> None:
        """Switch it on, and wait until libvirt in it answers."""
        if self.alive():
            return
        files = image.prepare()
        self._prepare_share()
        self._prepare_state()
        for directory in (self.logs, _INSTANCES):
            directory.mkdir(parents=True, exist_ok=True)
        port = _free_port()
        self._port.write_text(str(port))
        processes.start(
            self.name,
            [
                *hardware.command(),
                *hardware.arguments(
                    self.name,
                    files,
                    self._state,
                    self._prepare_drive(),
                    {
                        'share': self.share,
                        'log': self.logs,
                        'instances': _INSTANCES,
                    },
                    port,
                ),
            ],
            hardware.environment(),
        )
        self._wait_until_up()

    def alive(self) -> bool:
        """Whether it runs; its kernel ends it when it panics."""
        return processes.alive(self.name)

    def down(self) -> None:
        """Switch it off, without loss of what it wrote."""
        if self.alive():
            self._end('poweroff')

    def fail(self) -> None:
        """End it at once, as a power failure does."""
        processes.stop(self.name, seconds=0)

    def forget(self) -> None:
        """Switch it off, and lose what it has stored."""
        self.fail()
        for stored in (self._state, self.drive):
            stored.unlink(missing_ok=True)

    def reboot(self) -> None:
        """Reboot the operating system; what runs ends in the middle of it.

        QEMU ends and is started again: after a reset in place, timers of its
        emulated CPUs may be lost once KVM has been used in the machine.
        """
        self._end('reboot')
        self.up()

    def run(self, script: str, timeout: float = 120) -> str:
        """Run a bash script in the machine.

        Processes that it leaves behind stay, if they are of their own
        session.

        :returns: its output, of both kinds
        :raises LabError: it failed or took too long; the message has its
            output.
        """
        if not self.alive():
            raise processes.LabError(f'{self.name} does not run')
        try:
            answer = self._ask(script, timeout)
        except (OSError, ValueError) as error:
            raise processes.LabError(
                f'{self.name} does not answer: {error!r}; its console is '
                f'{self.logs / "console.log"}'
            ) from error
        if answer['status']:
            raise processes.LabError(
                f'in {self.name}, ended with {answer["status"]}: {script}\n'
                f'{answer["output"]}'
            )
        return answer['output']

    @property
    def _state(self) -> pathlib.Path:
        return self.directory / 'state.img'

    @property
    def _port(self) -> pathlib.Path:
        return self.directory / 'agent.port'

    def _end(self, how: str) -> None:
        """:param how: the program that ends the operating system"""
        with contextlib.suppress(processes.LabError):
            self.run(f'sync; busybox {how} -f -d 1 >/dev/null 2>&1 &', 30)
            processes.wait_for(
                f'the end of {self.name}', 20, lambda: not self.alive()
            )
        processes.stop(self.name)

    def _prepare_share(self) -> None:
        files = guest.prepare()
        directory = self.share / 'guest'
        directory.mkdir(parents=True, exist_ok=True)
        shutil.copy(files.kernel, directory / 'kernel')
        shutil.copy(files.initrd, directory / 'initrd')

    def _prepare_state(self) -> None:
        if not self._state.exists():
            made = self._state.with_suffix('.new')
            made.unlink(missing_ok=True)
            processes.run(['mke2fs', '-q', '-t', 'ext4', made, _STATE_SIZE])
            made.replace(self._state)

    def _prepare_drive(self) -> pathlib.Path:
        with self.drive.open('ab') as drive:
            drive.truncate(hardware.DRIVE_BYTES)
        return self.drive

    def _wait_until_up(self) -> None:
        def up_or_dead() -> bool:
            processes.process(self.name)
            return self._try('test -e /run/lab-ready') is not None

        processes.wait_for(
            f'{self.name} with libvirt (its console is '
            f'{self.logs / "console.log"})',
            _UP_SECONDS,
            up_or_dead,
        )

    def _try(self, script: str) -> str | None:
        try:
            return self.run(script, 5)
        except processes.LabError:
            return None

    def _ask(self, script: str, seconds: float) -> dict:
        """One exchange with the agent."""
        request = json.dumps({'script': script, 'seconds': seconds}).encode()
        with socket.create_connection(
            ('127.0.0.1', int(self._port.read_text())), seconds + 15
        ) as agent:
            agent.sendall(b'%d\n' % len(request) + request)
            with agent.makefile('rb') as answer:
                length = int(answer.readline())
                return json.loads(answer.read(length))


#: All of them have the same devices.
A, B = MACHINES = tuple(map(Machine, ('vm-a', 'vm-b')))


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]
