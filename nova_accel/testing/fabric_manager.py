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

"""A simulated Fabric Manager of a board with NVSwitches, for tests.

The program ``fmpm`` is :mod:`nova_accel.testing.fmpm`, which names what it is
made after. Here is what happens to the daemon: it is started again, links
fail, and an operator uses it, too.
"""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import fcntl
import json
import pathlib
import sys
from typing import Any

import fixtures

from nova_accel import conf
from nova_accel import privileged
from nova_accel.testing import fmpm

CONF = conf.CONF

#: Partition -> its GPUs' modules, of an HGX H100 or H200 ("GPU Partitions" of
#: the Fabric Manager User Guide).
H100: Mapping[int, tuple[int, ...]] = {
    0: (1, 2, 3, 4, 5, 6, 7, 8),
    1: (1, 2, 3, 4),
    2: (5, 6, 7, 8),
    3: (1, 3),
    4: (2, 4),
    5: (5, 7),
    6: (6, 8),
    **{module + 6: (module,) for module in range(1, 9)},
}

#: The same of an HGX B200, with other pairs and other numbers.
B200: Mapping[int, tuple[int, ...]] = {
    1: (1, 2, 3, 4, 5, 6, 7, 8),
    2: (1, 2, 3, 4),
    3: (5, 6, 7, 8),
    4: (1, 2),
    5: (3, 4),
    6: (5, 6),
    7: (7, 8),
    **{module + 7: (module,) for module in range(1, 9)},
}

ENDPOINT = '127.0.0.1:6666'


class FabricManager(fixtures.Fixture):
    """A Fabric Manager that this process's hosts are configured to ask.

    :param board: partition -> its modules
    :param mode: ``FABRIC_MODE``
    :ivar command: the path of its ``fmpm``
    """

    def __init__(
        self, board: Mapping[int, tuple[int, ...]] = H100, mode: int = 1
    ) -> None:
        self._board = board
        self._mode = mode

    def _setUp(self) -> None:
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self._state = directory / 'daemon.json'
        self.command = directory / 'fmpm'
        self.command.write_text(
            f'#!/bin/sh\nexec {sys.executable} -I -S {fmpm.__file__} '
            f'{self._state} "$@"\n'
        )
        self.command.chmod(0o755)
        self._write(
            {
                'mode': self._mode,
                'endpoint': ENDPOINT,
                'partitions': {
                    number: list(modules)
                    for number, modules in self._board.items()
                },
                'links': 18,
                'links_down': {},
                'knows_gpus': False,
                'unsupported': [],
                'active': {},
                'calls': [],
                'refused': {},
                'is_running': True,
                'not_ready_for': 0,
                'waits_for_list': False,
                'was_restarted': False,
                'has_old_tool': False,
                'pretends': False,
            }
        )
        for name, value in (
            ('fabric_manager', ENDPOINT),
            ('fabric_manager_command', str(self.command)),
        ):
            CONF.set_override(name, value, 'nova_accel')
            self.addCleanup(CONF.clear_override, name, 'nova_accel')
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.fabric_manager.RUN', directory
            )
        )
        # Its functions run in this process, and not as root.
        self.addCleanup(privileged.fabric_pctxt.set_client_mode, True)
        privileged.fabric_pctxt.set_client_mode(False)

    @property
    def active(self) -> dict[int, tuple[int, ...]]:
        """The active partitions, with their modules."""
        daemon = self._read()
        return {
            int(number): tuple(daemon['partitions'][number])
            for number in daemon['active']
        }

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of all calls of ``fmpm``, but for the endpoint's."""
        return [call[2:] for call in self._read()['calls']]

    def reset(self) -> None:
        """The host is rebooted, or Fabric Manager starts in its usual way."""
        with self.changed() as daemon:
            daemon.update(
                active={},
                waits_for_list=False,
                was_restarted=False,
                is_running=True,
            )

    def restart(self) -> None:
        """It starts with ``FABRIC_MODE_RESTART=1``, and waits for a list."""
        with self.changed() as daemon:
            daemon.update(
                waits_for_list=True, was_restarted=True, is_running=True
            )

    def stop(self) -> None:
        """No one answers; the switches stay as they are."""
        with self.changed() as daemon:
            daemon['is_running'] = False

    def be_not_ready_for(self, calls: int) -> None:
        """It starts, and refuses that many calls meanwhile."""
        with self.changed() as daemon:
            daemon['not_ready_for'] = calls

    def break_link(self, module: int, links: int = 1) -> None:
        """Links of a GPU go down."""
        with self.changed() as daemon:
            daemon['links_down'][str(module)] = links

    def call_unsupported(self, numbers: Collection[int]) -> None:
        """Fabric Manager finds partitions that cannot work any more."""
        with self.changed() as daemon:
            daemon['unsupported'] = list(numbers)

    def refuse(self, option: str, status: int = fmpm.GENERIC_ERROR) -> None:
        """From now on a call with this option fails; 0 ends that."""
        with self.changed() as daemon:
            daemon['refused'][option] = status

    def activate(self, number: int) -> None:
        """Somebody who is not nova-compute does it."""
        with self.changed() as daemon:
            daemon['active'][str(number)] = []

    def ask(self, *arguments: str) -> tuple[int, str]:
        """Run ``fmpm`` in this process, and so more quickly.

        :returns: its exit status and its output
        """
        status, said = fmpm.answer(
            str(self._state), ['--hostname', ENDPOINT, *arguments]
        )
        return status & 0xFF, said

    @contextlib.contextmanager
    def changed(self) -> Iterator[dict[str, Any]]:
        """The state of the daemon, as :mod:`nova_accel.testing.fmpm` has it.

        All that the body changes is kept.
        """
        with self._state.open('r+', encoding='utf-8') as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            daemon = json.load(file)
            yield daemon
            file.seek(0)
            json.dump(daemon, file)
            file.truncate()

    def _read(self) -> dict[str, Any]:
        with self.changed() as daemon:
            return daemon

    def _write(self, daemon: dict[str, Any]) -> None:
        self._state.write_text(json.dumps(daemon), encoding='utf-8')
