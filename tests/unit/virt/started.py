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

"""A host's parts of nova-compute, started in a test."""

import pathlib

import fixtures
from nova import conf as nova_conf
from nova.tests.fixtures import conf as conf_fixture
import testtools

from nova_accel.testing import accelerator_api
from nova_accel.testing import devices
from nova_accel.testing import fake_fpga
from nova_accel.testing import libvirt
from nova_accel.virt import wiring
from rig import compute_parts
from rig import quick_database

CONF = nova_conf.CONF

SERVICE_HOST = 'service'


class StartedTestCase(testtools.TestCase):
    """The parts of nova-compute on a simulated host, with the real API.

    :cvar gpus: how many cards that make vGPUs it has
    :ivar current: of the parts that were started last
    :ivar publisher: of the parts that were started last
    """

    gpus = 1

    def setUp(self):
        super().setUp()
        self.useFixture(conf_fixture.ConfFixture(CONF))
        self.useFixture(quick_database.QuickDatabases())
        self.api = self.useFixture(accelerator_api.AcceleratorApi())
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.client.accelerator_api.adapter_from_conf',
                lambda: self.api.adapter,
            )
        )
        self.useFixture(fake_fpga.Installed())
        self.libvirt = self.useFixture(
            libvirt.Libvirt(devices.pci_info(gpus=self.gpus))
        )
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.virt.node.get_local_node_uuid',
                lambda: '3f2c7b1e-0b5a-4d59-9d3b-3a1b8f0a5c11',
            )
        )
        self.state = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        CONF.set_override('state_path', str(self.state))
        CONF.set_override(
            'device_spec', list(devices.DEVICE_SPEC), 'nova_accel'
        )
        self.addCleanup(CONF.clear_override, 'device_spec', 'nova_accel')

    def start(self):
        started = wiring.start(self.libvirt.host, SERVICE_HOST, lambda: None)
        # Its reports do not reach the database of the test after this one.
        self.addCleanup(lambda: started.cycle._idle.wait(30))
        self.current = compute_parts.current_state(started)
        self.publisher = compute_parts.publisher(started)
        return started
