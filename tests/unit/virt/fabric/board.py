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

"""A host with a simulated Fabric Manager, and what its guests hold."""

import pathlib

import fixtures
from nova import conf as nova_conf
from nova.tests.fixtures import conf as conf_fixture
import testtools

from nova_accel.host import fabric_manager
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import host_findings
from nova_accel.model import pci_address
from nova_accel.testing import fabric_manager as simulated
from nova_accel.virt.fabric import fabric_need
from nova_accel.virt.fabric import guest_partitions
from nova_accel.virt.fabric import partition_journal

I1 = '0e8c2b0e-6a67-4f0b-a7ac-0b0a5a3f1d01'
I2 = '0e8c2b0e-6a67-4f0b-a7ac-0b0a5a3f1d02'
OTHER = '0e8c2b0e-6a67-4f0b-a7ac-0b0a5a3f1d03'


def handle_uuid(module):
    return f'b9d6d3b8-27a8-4bd9-96a1-{module:012x}'


def an_arq(module):
    return arq_types.Arq(
        f'arq{module}',
        arq_types.State.BOUND,
        'gpus',
        0,
        {},
        'rp',
        attach_handle.AttachHandle(
            handle_uuid(module), pci_address.PciAddress(0, module, 0, 0)
        ),
    )


class Need:
    """Which GPUs are whose, without libvirt.

    :ivar running: the instances whose guests run
    :ivar arriving: those that come from another host
    :ivar functions: whether guests get virtual functions
    :ivar of_instances: instance -> the modules that it holds
    :ivar unsure: whether a guest may have more than is held
    """

    def __init__(self):
        self.running = set()
        self.arriving = set()
        self.functions = False
        self.broken = None
        self.of_instances = {}
        self.unsure = False

    def gpus(self, arqs):
        numbers = {arq.handle.address.bus: arq.handle for arq in arqs}
        return fabric_need.Gpus(
            frozenset(numbers),
            frozenset(handle.uuid for handle in numbers.values()),
            {
                number: pci_address.PciAddress(0, number, 0, 4)
                for number in numbers
            }
            if self.functions
            else {},
        )

    def owners(self, module_ids):
        return {
            uuid: self.gpus(map(an_arq, modules))
            for uuid, modules in self.of_instances.items()
            if module_ids & {*modules}
        }

    def is_unsure(self, module_ids):
        return self.unsure

    def has(self, entry, is_busy):
        if self.broken is not None:
            raise self.broken
        return entry.instance_uuid in self.arriving or (
            is_busy or entry.instance_uuid in self.running
        )


class BoardTestCase(testtools.TestCase):
    """Tests of one host's partitions.

    :cvar board: partition -> its modules
    """

    board = simulated.H100

    def setUp(self):
        super().setUp()
        self.useFixture(conf_fixture.ConfFixture(nova_conf.CONF))
        self.log = self.useFixture(fixtures.FakeLogger('nova_accel'))
        self.daemon = self.useFixture(simulated.FabricManager(self.board))
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.virt.fabric.guest_partitions._RETRY_AFTER_S', 0.01
            )
        )
        self.need = Need()
        self.findings = host_findings.Findings()
        self.start()

    def start(self, boot='boot1', wait_s=5):
        """nova-compute starts."""
        self.journal = partition_journal.PartitionJournal(self.directory)
        self.fabric = guest_partitions.GuestPartitions(
            'compute1',
            boot,
            self.journal,
            fabric_manager.FabricManager(30),
            self.need,
            wait_s,
            20,
            self.findings,
        )
        self.fabric.begin()

    def ready(self, instance, *modules):
        self.fabric.ready(instance, [an_arq(module) for module in modules])

    def boot(self, instance, *modules):
        """As Nova does it."""
        with self.fabric.during(instance):
            self.ready(instance, *modules)
            self.need.running.add(instance)

    def stop(self, instance):
        with self.fabric.during(instance):
            self.need.running.discard(instance)

    @property
    def active(self):
        return sorted(self.daemon.active)

    @property
    def journaled(self):
        return {
            entry.number: (entry.instance_uuid, str(entry.step))
            for entry in partition_journal.PartitionJournal(
                self.directory
            ).entries()
        }
