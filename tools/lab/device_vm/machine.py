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

"""The machine: on, reset, off.

``/var/lib/nova``, ``/var/lib/libvirt``, ``/etc/libvirt`` and
``/etc/mdevctl.d`` of the machine are on a disk that outlives boots; all else
is as in the image again. ``SHARE`` is ``/share`` in the machine, ``LOGS`` is
``/log``.
"""

import contextlib
import json
import shutil
import socket

from lab import guest
from lab import processes
from lab import settings
from lab.device_vm import hardware
from lab.device_vm import image

NAME = 'device-vm'

#: Files in and out; the guest's are in ``guest``.
SHARE = image.DIRECTORY / 'share'

LOGS = settings.LOGS / NAME

_STATE = image.DIRECTORY / 'state.img'
_STATE_SIZE = '16G'
_PORT = image.DIRECTORY / 'agent.port'

_UP_SECONDS = 300


def up() -> None:
    """Switch it on, and wait until libvirt in it answers."""
    if alive():
        return
    files = image.prepare()
    _prepare_share()
    _prepare_state()
    LOGS.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    _PORT.write_text(str(port))
    processes.start(
        NAME, [*hardware.command(),
               *hardware.arguments(files, _STATE, SHARE, LOGS, port)],
        hardware.environment())
    _wait_until_up()


def alive() -> bool:
    """Whether it runs; its kernel ends it when it panics."""
    return processes.alive(NAME)


def down() -> None:
    """Switch it off, without loss of what it wrote."""
    if alive():
        _end('poweroff')


def forget() -> None:
    """Switch it off, and lose what it has stored."""
    processes.stop(NAME, seconds=0)
    _STATE.unlink(missing_ok=True)


def reboot() -> None:
    """Reboot the operating system; what runs ends in the middle of it.

    QEMU ends and is started again: after a reset in place, timers of its
    emulated CPUs may be lost once KVM has been used in the machine.
    """
    _end('reboot')
    up()


def run(script: str, timeout: float = 120) -> str:
    """Run a bash script in the machine.

    Processes that it leaves behind stay, if they are of their own session.

    :returns: its output, of both kinds
    :raises LabError: it failed or took too long; the message has its output.
    """
    if not alive():
        raise processes.LabError(f'{NAME} does not run')
    try:
        answer = _ask(script, timeout)
    except (OSError, ValueError) as error:
        raise processes.LabError(
            f'{NAME} does not answer: {error!r}; its console is '
            f'{LOGS / "console.log"}') from error
    if answer['status']:
        raise processes.LabError(
            f'in {NAME}, ended with {answer["status"]}: {script}\n'
            f'{answer["output"]}')
    return answer['output']


def _end(how: str) -> None:
    """:param how: the program that ends the operating system"""
    with contextlib.suppress(processes.LabError):
        run(f'sync; busybox {how} -f -d 1 >/dev/null 2>&1 &', 30)
        processes.wait_for(f'the end of {NAME}', 20,
                           lambda: not processes.alive(NAME))
    processes.stop(NAME)


def _prepare_share() -> None:
    files = guest.prepare()
    directory = SHARE / 'guest'
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copy(files.kernel, directory / 'kernel')
    shutil.copy(files.initrd, directory / 'initrd')


def _prepare_state() -> None:
    if not _STATE.exists():
        made = _STATE.with_suffix('.new')
        made.unlink(missing_ok=True)
        processes.run(['mke2fs', '-q', '-t', 'ext4', made, _STATE_SIZE])
        made.replace(_STATE)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


def _wait_until_up() -> None:
    def up_or_dead() -> bool:
        processes.process(NAME)
        return _try('test -e /run/lab-ready') is not None

    processes.wait_for(f'{NAME} with libvirt (its console is '
                       f'{LOGS / "console.log"})', _UP_SECONDS, up_or_dead)


def _try(script: str) -> str | None:
    try:
        return run(script, 5)
    except processes.LabError:
        return None


def _ask(script: str, seconds: float) -> dict:
    """One exchange with the agent."""
    request = json.dumps({'script': script, 'seconds': seconds}).encode()
    with socket.create_connection(
            ('127.0.0.1', int(_PORT.read_text())), seconds + 15) as agent:
        agent.sendall(b'%d\n' % len(request) + request)
        with agent.makefile('rb') as answer:
            length = int(answer.readline())
            return json.loads(answer.read(length))
