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

"""A server that has accelerators, for tests of what is done to it."""

from nova.tests.fixtures import libvirt as fakelibvirt
from nova.tests.functional.api import client as api_client

from functional import base


class OneServerTestCase(base.AcceleratorTestCase):
    """A server with a PCI device and an mdev, to which things are done."""

    # As a call, a refusal would go back to nova-api.
    CAST_AS_CALL = False

    def setUp(self):
        super().setUp()
        self.create_profile('both', [base.FPGA, base.VGPU])
        self.flavor = self.create_accel_flavor('both')
        self.server = self.boot(self.flavor)
        self.host = self.server['OS-EXT-SRV-ATTR:host']
        self.devices = self.guest_devices(self.server)
        self.arqs_before = self.arqs(self.server)
        self.assertEqual(2, len(self.devices))

    def arqs(self, server):
        """Without the time at which their states changed last."""
        return [{**arq, 'updated_at': None} for arq in super().arqs(server)]

    def act(self, name, value=None):
        """Start an action of the server's, without waiting for its end."""
        self.admin_api.post_server_action(self.server['id'], {name: value})

    def wait_for_status(self, status):
        self.server = self._wait_for_server_parameter(
            self.server, {'status': status, 'OS-EXT-STS:task_state': None}
        )

    def assert_fails(self, name, value, action, status):
        """The action ends with an error, and the server in this status.

        :returns: the text of the fault
        """
        self.act(name, value)

        def failed():
            found = [
                found
                for found in self.admin_api.get_instance_actions(
                    self.server['id']
                )
                if found['action'] == action
            ]
            self.assertEqual('Error', found[0]['message'])

        self._wait_for_assert(failed)
        self.wait_for_status(status)
        request = next(
            found['request_id']
            for found in self.admin_api.get_instance_actions(self.server['id'])
            if found['action'] == action
        )
        events = self.admin_api.api_get(
            f'/servers/{self.server["id"]}/os-instance-actions/{request}',
        ).body['instanceAction']['events']
        return ' '.join(event['details'] or '' for event in events)

    def domain(self):
        """The server's, as libvirt has it."""
        (domain,) = self.connection(self.host).listAllDomains(
            fakelibvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE
            | fakelibvirt.VIR_CONNECT_LIST_DOMAINS_INACTIVE
        )
        return domain

    def assert_kept(self):
        """It has all that it had before; nothing else is on the host."""
        self.assertEqual(self.devices, self.guest_devices(self.server))
        self.assert_held()

    def assert_held(self):
        """Whatever its guest has, no one else can get its devices."""
        self.assertEqual(self.arqs_before, self.arqs(self.server))
        self.assertEqual(
            [
                arq['attach_handle_uuid']
                for arq in self.arqs_before
                if arq['attach_handle_type'] == 'MDEV'
            ],
            list(self.mdevs(self.host)),
        )
        self.assertEqual(
            [f'{self.server["id"]}.active.json'], self.journal_files()
        )
        if self.exists():
            self.assert_counted(self.server)

    def exists(self):
        """Whether Nova has the server."""
        try:
            return bool(self.api.get_server(self.server['id']))
        except api_client.OpenStackApiNotFoundException:
            return False

    def assert_runs_with_all(self):
        self.assertTrue(self.domain().isActive())
        self.assert_kept()

    def assert_hard_reboot_helps(self):
        self.act('reboot', {'type': 'HARD'})
        self.wait_for_status('ACTIVE')
        self.assert_runs_with_all()

    def go_down(self):
        """nova-compute ends, and Nova knows."""
        self.computes[self.host].stop()
        self.force_down(True)

    def come_back(self):
        self.restart_compute_service(self.host)
        self.force_down(False)

    def force_down(self, is_down):
        (service,) = self.api.get_services(
            binary='nova-compute', host=self.host
        )
        self.api.put_service_force_down(service['id'], is_down)

    def reboot_host(self):
        """What a reboot of the host does to mediated devices and guests."""
        if self.domain().isActive():
            self.domain().destroy()
        connection = self.connection(self.host)
        for name in connection.listDevices('mdev', 0):
            connection.nodeDeviceLookupByName(name).destroy()
        self.assertFalse(self.mdevs(self.host))
