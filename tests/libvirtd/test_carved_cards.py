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

import fixtures

from libvirtd import base
from libvirtd import machines


class TestCarvedCards(base.HostTestCase):
    """148 functions of carved GPUs, two that the host uses, and one more."""

    machine = machines.CARVED_CARDS

    def setUp(self):
        super().setUp()
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.gpu_nodes.opened',
                lambda: {'dri/renderD128': [(812, 'python3')]},
            )
        )

    def test_all_are_seen(self):
        functions = self.node_devices.look().functions
        self.assertEqual(148 + 3, len(functions))
        self.assertEqual(
            {('10de', '2235')},
            {
                (function.vendor_id, function.product_id)
                for function in functions.values()
            },
        )

    def test_one_is_usable(self):
        """Whatever a line names, and the reason is told for each other."""
        whole, console, computing = map(
            base.address,
            (machines.WHOLE, machines.CONSOLE, machines.COMPUTING),
        )
        for keys in ({'vendor_id': '10de'}, {'address': '*:*.*'}):
            inventory = self.discover(base.a_line(**keys))
            faults = {
                device.address: device.fault for device in inventory.devices
            }
            self.assertEqual({whole, console, computing}, faults.keys())
            self.assertIsNone(faults[whole])
            self.assertIn('booted with', faults[console])
            self.assertIn('python3', faults[computing])
            # One text for the functions of a card.
            self.assertEqual(8, len(inventory.refused))
