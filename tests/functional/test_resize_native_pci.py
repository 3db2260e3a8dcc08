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

import json

from nova import context as nova_context
from nova import objects

from functional import moves
from nova_accel.testing import devices

#: The cards of Nova's PCI tracker, and ours.
_NOVAS, _OURS = '0000:81:', '0000:82:'

_FUNCTION = {'vendor_id': '8086', 'product_id': '37c9'}


class TestNativePciPassthrough(moves.MoveTestCase):
    """Between a flavor with an alias of Nova's and one with our devices."""

    hosts = ()

    def setUp(self):
        super().setUp()
        self.flags(
            group='pci',
            device_spec=[json.dumps({**_FUNCTION, 'address': '*:81:*.*'})],
            alias=[json.dumps({**_FUNCTION, 'name': 'qat'})],
        )
        for host in ('host1', 'host2'):
            self.start_accelerated_compute(
                host, devices.pci_info(gpus=0, fpgas=0, qats=2)
            )
        self.native = self._create_flavor(
            extra_spec={'pci_passthrough:alias': 'qat:2'}
        )
        self.create_profile('qat', [{'resources:CUSTOM_QAT': '3'}])
        self.ours = self.create_accel_flavor('qat')

    def assert_cards(self, server, host, *cards):
        """Its guest has a function of each of the cards, before and after.

        :param cards: the beginnings of the addresses, sorted
        """
        server = self.api.get_server(server['id'])
        self.assertEqual(host, server['OS-EXT-SRV-ATTR:host'])
        for _again in range(2):
            found = self.guest_devices(server)
            self.assertEqual(
                list(cards), [device[: len(_OURS)] for device in found]
            )
            self.assertEqual(len(found), len(set(found)))
            self._reboot_server(server, hard=True)

    def assert_taken(self, host, novas=0, ours=0):
        """How many functions of each kind are taken, by who hands them out."""
        context = nova_context.get_admin_context()
        node = objects.ComputeNode.get_first_node_by_host_for_old_compat(
            context, host
        )
        self.assertEqual(
            novas,
            sum(
                device.status != 'available'
                for device in objects.PciDeviceList.get_by_compute_node(
                    context, node.id
                )
            ),
        )
        self.assertEqual(
            ours,
            sum(
                provider['usage'].get('CUSTOM_QAT', 0)
                for provider in self.accelerator_providers(host)
            ),
        )

    def wait_for_taken(self, host, **taken):
        """Nova frees what a server had when all is done."""
        self._wait_for_assert(lambda: self.assert_taken(host, **taken))

    def test_from_novas_to_ours_and_confirm(self):
        server = self.boot_on('host1', self.native)
        self.assert_cards(server, 'host1', _NOVAS, _NOVAS)
        self.assert_taken('host1', novas=2)
        self.confirm(self.resize(server, self.ours))
        self.assert_cards(server, 'host2', _OURS, _OURS, _OURS)
        self.wait_for_taken('host1')
        self.wait_for_taken('host2', ours=3)
        self.delete(server)

    def test_from_novas_to_ours_and_revert(self):
        server = self.boot_on('host1', self.native)
        before = self.guest_devices(server)
        self.revert(self.resize(server, self.ours))
        self.assertEqual(before, self.guest_devices(server))
        self.assert_cards(server, 'host1', _NOVAS, _NOVAS)
        self.wait_for_taken('host1', novas=2)
        self.wait_for_taken('host2')
        self.assert_nothing_left()

    def test_from_ours_to_novas_and_confirm(self):
        server = self.boot_on('host1', self.ours)
        self.confirm(self.resize(server, self.native))
        self.assert_cards(server, 'host2', _NOVAS, _NOVAS)
        self.wait_for_taken('host1')
        self.wait_for_taken('host2', novas=2)
        self.assert_nothing_left()

    def test_from_ours_to_novas_and_revert(self):
        server = self.boot_on('host1', self.ours)
        before = self.guest_devices(server)
        self.revert(self.resize(server, self.native))
        self.assert_guest(server, 'host1', before)
        self.assert_cards(server, 'host1', _OURS, _OURS, _OURS)
        self.wait_for_taken('host1', ours=3)
        self.wait_for_taken('host2')
        self.delete(server)
