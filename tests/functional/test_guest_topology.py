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
from lxml import etree

from functional import moves
from nova_accel.model import pci_address
from nova_accel.testing import hostdev

_KEY = 'nova_accel:pci_topology'


class TestGuestTopology(moves.MoveTestCase):
    """The guest's PCI tree, as libvirt is given it by Nova."""

    CAST_AS_CALL = False

    def setUp(self):
        super().setUp()
        self.flags(hw_machine_type='x86_64=q35', group='libvirt')
        self.flavor = self.create_accel_flavor(
            'both', extra_spec={_KEY: 'host'}
        )
        self.given = []
        for host in self.hosts:
            connection = self.connection(host)
            self.record(connection)
            for name in connection.pci_info.devices:
                self.sysfs.set(pci_address.PciAddress.parse_node_device(name))

    def record(self, connection):
        define = connection.defineXML

        def recorded(xml):
            self.given.append(etree.fromstring(xml))
            return define(xml)

        self.useFixture(
            fixtures.MockPatchObject(connection, 'defineXML', recorded)
        )

    def tree(self):
        """Where all is in the guest that was given to libvirt last."""
        xml = self.given[-1]
        controllers = [
            (
                controller.get('index'),
                controller.get('model'),
                dict(controller.find('./address').attrib),
            )
            for controller in xml.findall("./devices/controller[@type='pci']")
        ]
        places = {
            element.get('type'): dict(element.find('./address').attrib)
            for element in xml.findall('./devices/hostdev')
        }
        self.assertEqual(2, len(controllers))
        self.assertEqual({'pci', 'mdev'}, set(places))
        return controllers, places

    def act(self, server, action, status='ACTIVE'):
        self.api.post_server_action(server['id'], action)
        return self._wait_for_state_change(server, status)

    def test_it_stays_as_it_is(self):
        server = self.boot_on('host1', self.flavor)
        tree = self.tree()
        times = len(self.given)
        for again in (
            lambda: self._reboot_server(server, hard=True),
            lambda: (
                self._stop_server(server),
                self._start_server(server),
            ),
            lambda: self.act(server, {'rescue': {}}, 'RESCUE'),
        ):
            again()
            self.assertLess(times, len(self.given))
            times = len(self.given)
            self.assertEqual(tree, self.tree())
        # That starts what libvirt has told of the guest before.
        self.act(server, {'unrescue': None})
        self.admin_api.post_server_action(server['id'], {'migrate': None})
        server = self._wait_for_state_change(server, 'VERIFY_RESIZE')
        self.assertEqual(tree, self.tree())
        self.confirm(server)
        self.assertEqual(
            2, len(list(map(hostdev.identity, self.hostdevs(server, 'host2'))))
        )
        self.delete(server)
