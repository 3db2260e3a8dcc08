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

"""What the tests of guests on an NVSwitch board have in common."""

import fixtures
from lxml import etree
from nova.tests.fixtures import libvirt as fakelibvirt

from functional import base
from nova_accel.testing import devices
from nova_accel.testing import fabric_manager
from nova_accel.testing import hgx_host
from nova_accel.testing import hostdev
from nova_accel.testing import libvirt_guest

HOST = 'host1'


class BoardTestCase(base.AcceleratorTestCase):
    """A host with a board, its Fabric Manager, and a flavor of each size.

    :cvar board: the partitions of its Fabric Manager
    :cvar module_ids: of its GPUs
    :ivar violations: guests that have run without their own partition
    """

    hosts = ()
    board = fabric_manager.H100
    module_ids = hgx_host.PAIRS_ON_SWITCHES

    def setUp(self):
        super().setUp()
        # No one looks between the steps of a test.
        self.flags(fabric_manager_interval_s=50, group='nova_accel')
        self.flags(allow_resize_to_same_host=True)
        self.daemon = self.useFixture(fabric_manager.FabricManager(self.board))
        # A process for each call would take most of the time.
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.fabric_manager._run',
                lambda timeout_s, *command: self.daemon.ask(*command[3:]),
            )
        )
        self.boots = 1
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.virt.fpga.regions.region_journal.boot_id',
                lambda: f'boot{self.boots}',
            )
        )
        self.violations = []
        self.useFixture(libvirt_guest.RunningGuests(self.look))
        self.hgx = hgx_host.HgxHost(self.module_ids)
        info = devices.pci_info(gpus=0, fpgas=0, qats=0)
        self.hgx.install(info, self.sysfs)
        self.start_accelerated_compute(
            HOST,
            info,
            hgx_host.device_spec(
                pool='link',
                module_ids={
                    str(address): number
                    for address, number in self.hgx.module_ids.items()
                },
            ),
        )
        self.flavors = {size: self.flavor(size) for size in (1, 2, 4, 8)}

    def flavor(self, size):
        group = {'resources:PGPU': str(size)}
        if size > 1:
            group['accel:link'] = 'nvlink'
        self.create_profile(f'gpus{size}', [group])
        return self.create_accel_flavor(f'gpus{size}')

    def modules(self, domain):
        """The GPUs that a guest has, by their modules."""
        by_address = {
            str(address): number
            for address, number in self.hgx.module_ids.items()
        }
        return frozenset(
            by_address[name]
            for name in map(
                hostdev.identity,
                etree.fromstring(domain.XMLDesc(0)).iterfind(
                    'devices/hostdev'
                ),
            )
            if name in by_address
        )

    def running(self):
        """The GPUs of each running guest that has any."""
        return {
            domain.UUIDString(): self.modules(domain)
            for domain in self.connection(HOST).listAllDomains(
                fakelibvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE
            )
            if self.modules(domain)
        }

    def look(self, domain):
        """Note a guest that runs without its partition alone."""
        wanted = self.modules(domain)
        active = {frozenset(each) for each in self.daemon.active.values()}
        if wanted and wanted not in active:
            self.violations.append((domain.UUIDString(), wanted, active))

    def assert_as_needed(self, message=''):
        """The active partitions are exactly those of the running guests."""
        self.assertEqual(
            sorted(sorted(each) for each in self.running().values()),
            sorted(sorted(each) for each in self.daemon.active.values()),
            message,
        )
        self.assertEqual([], self.violations, message)

    def reboot_host(self):
        """All guests are gone, and so is what was active."""
        for domain in self.connection(HOST).listAllDomains(
            fakelibvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE
        ):
            domain.destroy()
        self.daemon.reset()
        self.boots += 1
        self.restart_compute_service(HOST)
        self.settle(HOST)
