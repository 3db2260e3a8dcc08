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

"""The cloud of :mod:`crash.cloud`, whose hosts have NVSwitches.

The regions of the FPGAs stand for GPUs: each is a module of the board, and
its guest needs the partition of this module alone.
"""

from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

import fixtures

from crash import cloud
from crash import imitated_host
from nova_accel.host import fabric_manager
from nova_accel.model import arq_types
from nova_accel.testing import fabric_manager as simulated
from nova_accel.testing import libvirt_guest
from nova_accel.virt import wiring
from nova_accel.virt.fabric import fabric_need
from nova_accel.virt.fabric import partition_journal

_FIRST_BUS = 0x82


class Client:
    """Asks the Fabric Manager of one host."""

    def __init__(self, daemon: simulated.FabricManager) -> None:
        self._daemon = daemon

    def partitions(self, timeout_s: float) -> tuple[int, str]:
        return self._daemon.ask('-l')

    def unsupported(self, timeout_s: float) -> tuple[int, str]:
        return self._daemon.ask('--list-unsupported-partitions')

    def failed(self, timeout_s: float) -> tuple[int, str]:
        return self._daemon.ask('--get-nvlink-failed-devices')

    def activate(
        self, number: int, functions: Sequence[str], timeout_s: float
    ) -> tuple[int, str]:
        return self._daemon.ask('-a', str(number))

    def deactivate(self, number: int, timeout_s: float) -> tuple[int, str]:
        return self._daemon.ask('-d', str(number))

    def restore(
        self, numbers: Sequence[int], timeout_s: float
    ) -> tuple[int, str]:
        return self._daemon.ask(
            '--set-activated-list', ','.join(map(str, numbers))
        )


def _modules(domain: Any) -> frozenset[int]:
    """The modules that a guest has."""
    return frozenset(
        2 * (int(hostdev['bus'], 16) - _FIRST_BUS)
        + int(hostdev['function'], 16)
        for hostdev in domain._def['devices']['hostdevs']
        if hostdev['type'] != 'mdev'
    )


def _gpus(
    _need: fabric_need.Need, arqs: Iterable[arq_types.Arq]
) -> fabric_need.Gpus:
    modules = {
        2 * (arq.handle.address.bus - _FIRST_BUS)
        + arq.handle.address.function: arq.handle.uuid
        for arq in arqs
        if arq.handle.mdev_type is None
    }
    return fabric_need.Gpus(
        frozenset(modules), frozenset(modules.values()), {}
    )


class BoardCloud(cloud.Cloud):
    """Each host has a board, and a Fabric Manager of its own.

    :ivar daemons: name of a host -> its Fabric Manager
    :ivar violations: guests that have run with GPUs that were not joined
    """

    def _setUp(self) -> None:
        self.daemons: dict[str, simulated.FabricManager] = {}
        make = wiring._fabric

        def make_with_daemon(nodename: str, *arguments: Any) -> Any:
            if nodename not in self.daemons:
                self.daemons[nodename] = self.useFixture(
                    simulated.FabricManager()
                )
            daemon = self.daemons[nodename]
            with fixtures.MonkeyPatch(
                'nova_accel.virt.wiring.fabric_manager.FabricManager',
                lambda timeout_s, real=fabric_manager.FabricManager: real(
                    timeout_s, Client(daemon)
                ),
            ):
                wiring.CONF.set_override(
                    'fabric_manager', simulated.ENDPOINT, 'nova_accel'
                )
                try:
                    return make(nodename, *arguments)
                finally:
                    # The GPUs are not known to be on the board.
                    wiring.CONF.clear_override('fabric_manager', 'nova_accel')

        for name, value in (
            ('nova_accel.virt.wiring._fabric', make_with_daemon),
            ('nova_accel.virt.fabric.fabric_need.Need.gpus', _gpus),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, value))
        super()._setUp()
        self.violations: list[str] = []
        self.useFixture(libvirt_guest.RunningGuests(self._look))

    def _look(self, domain: Any) -> None:
        host = next(
            host
            for host in self.hosts
            if host.connection is domain._connection
        )
        wanted = _modules(domain)
        if wanted and wanted not in map(
            frozenset, self.daemons[host.name].active.values()
        ):
            self.violations.append(f'{wanted} on {host.name}')

    def _drift_of(self, host: imitated_host.Host, held: Any) -> list[str]:
        return [*super()._drift_of(host, held), *self._fabric_drift(host)]

    def _fabric_drift(self, host: imitated_host.Host) -> list[str]:
        """What is active without need, or missing."""
        active = set(self.daemons[host.name].active)
        entries = partition_journal.PartitionJournal(
            wiring.pathlib.Path(wiring.CONF.state_path)
            / 'nova_accel/partitions'
            / host.name
        ).entries()
        found = []
        running = {
            instance.uuid
            for instance in self.nova.instances.values()
            if host.runs(instance)
        }
        if {entry.number for entry in entries} != active or any(
            str(entry.step) != 'active' for entry in entries
        ):
            found.append(
                f'the journal of {host.name} has {entries}, active are '
                f'{active}'
            )
        if {entry.instance_uuid for entry in entries} - running:
            found.append(f'{entries} on {host.name}: {running} run')
        attachments = host.driver._accelerators.attachments
        for uuid in running:
            wanted = _gpus(None, attachments.held.arqs_of(uuid)).module_ids
            modules = self.daemons[host.name].active.values()
            if wanted and tuple(wanted) not in modules:
                found.append(f'{uuid} runs on {host.name} without {wanted}')
        return found
