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

from nova.policies import base as base_policies
from nova.policies import servers as server_policies
from nova.tests.fixtures import libvirt as fakelibvirt

from functional import moves
from functional import operations


class CrossCellTestCase(moves.MoveTestCase):
    """To a host in another cell, which Nova does by a snapshot.

    The source keeps what it has as active: its database forgets the server
    only when the move is confirmed.
    """

    NUMBER_OF_CELLS = 2
    hosts = ()

    def setUp(self):
        super().setUp()
        self.flags(long_rpc_timeout=60)
        self.policy.set_rules(
            {server_policies.CROSS_CELL_RESIZE: base_policies.RULE_ADMIN_API},
            overwrite=False,
        )
        for host, cell in (('host1', 'cell1'), ('host2', 'cell2')):
            self.start_accelerated_compute(host, cell_name=cell)
        self.server = self.boot_on('host1', self.both)
        self.before = self.guest_devices(self.server)


class TestCrossCell(CrossCellTestCase):
    def resize_to_other_cell(self):
        self.server = self.resize(
            self.server, self.create_accel_flavor('both')
        )
        held = self.held(self.server)
        self.assertEqual(self.before, held['host1', 'active'])
        self.assertEqual({('host1', 'active'), ('host2', 'active')}, set(held))
        for host in ('host1', 'host2'):
            self.assert_usage(host, FPGA=1, VGPU=1)
        return held['host2', 'active']

    @operations.shows('resize to another cell', 'confirmed')
    def test_confirm(self):
        after = self.resize_to_other_cell()
        self.flags(host='host1')
        self._confirm_resize(self.server, cross_cell=True)
        self.assert_guest(self.server, 'host2', after)
        self.assertFalse(self.mdevs('host1'))
        self.assert_usage('host1')
        self.delete(self.server)

    @operations.shows('resize to another cell', 'reverted')
    def test_revert(self):
        self.resize_to_other_cell()
        self.revert(self.server)
        self.assert_guest(self.server, 'host1', self.before)
        self.assertFalse(self.mdevs('host2'))
        self.assert_usage('host2')
        self.delete(self.server)


class TestCrossCellFails(CrossCellTestCase):
    # As a call, the failure would go back to nova-api.
    CAST_AS_CALL = False

    @operations.shows('resize to another cell', 'the destination fails')
    def test_a_destination_that_fails(self):
        self.break_libvirt((fakelibvirt.Domain, 'createWithFlags'), times=1)
        self.assert_a_hard_reboot_on_the_source_helps()

    @operations.shows(
        'resize to another cell',
        'a device refuses on the destination',
        devices=['PCI'],
    )
    def test_a_pci_device_refuses_on_the_destination(self):
        self.break_plug('PCI')
        self.assert_a_hard_reboot_on_the_source_helps()

    @operations.shows(
        'resize to another cell',
        'a device refuses on the destination',
        devices=['mdev'],
    )
    def test_an_mdev_refuses_on_the_destination(self):
        self.break_plug('mdev')
        self.assert_a_hard_reboot_on_the_source_helps()

    def assert_a_hard_reboot_on_the_source_helps(self):
        """It keeps what the server has."""
        self.server = self.resize(
            self.server, self.create_accel_flavor('both'), 'ERROR'
        )
        self.assertEqual(1, self.failures)
        self._wait_for_assert(
            lambda: self.assertEqual(
                {('host1', 'active'): self.before}, self.held(self.server)
            )
        )
        self.assertFalse(self.mdevs('host2'))
        # Nova takes the allocations back when the server is in ERROR already.
        self._wait_for_assert(lambda: self.assert_usage('host2'))
        self._reboot_server(self.server, hard=True)
        self.assert_guest(self.server, 'host1', self.before)
        self.delete(self.server)
