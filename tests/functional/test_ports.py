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

import copy
import json

import fixtures
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.tests.functional.api import client

from functional import base
from nova_accel import exceptions
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import handle_stock
from nova_accel.testing import devices

_COMPAT = device_profile.CYBORG_FLAVOR_KEY

NIC = {'resources:CUSTOM_NIC': '1'}

#: Eight functions, of which ports can have some too.
NIC_SPEC = json.dumps(
    {
        'vendor_id': '8086',
        'product_id': '37c9',
        'driver': 'pci',
        'resource_class': 'CUSTOM_NIC',
        'physical_network': 'physnet1',
    }
)

_OTHER_IMAGE = '70a599e0-31e7-49b7-b260-868f441e862b'


class PortTestCase(base.AcceleratorTestCase):
    """Neutron has a device profile for some ports; Nova acts on that."""

    # As a call, a refusal would go back to nova-api.
    CAST_AS_CALL = False

    def setUp(self):
        super().setUp()
        self.flags(cyborg_compatible=True, group='nova_accel')
        self.create_profile('fakedev-dp-port', [NIC])
        self.ports = [
            port['id'] for port in self.neutron.ports_with_accelerator
        ]
        for port in copy.deepcopy(self.neutron.ports_with_accelerator):
            port['binding:vif_details'] = {'vlan': 100}
            self.neutron._ports[port['id']] = port

    def start_accelerated_compute(self, hostname, *args, **kwargs):
        return super().start_accelerated_compute(
            hostname,
            *args,
            **{
                'device_spec': (devices.GPU_SPEC, devices.FPGA_SPEC, NIC_SPEC),
                **kwargs,
            },
        )

    def boot_with_ports(self, flavor, *ports, **kwargs):
        return self._create_server(
            flavor_id=flavor,
            networks=[{'port': port} for port in ports],
            **kwargs,
        )

    def flavor_with(self, *groups, key):
        self.create_profile('profile', groups)
        return self.create_accel_flavor('profile', key)

    def binding_profile(self, port):
        return self.neutron.show_port(port)['port']['binding:profile']

    def port_arqs(self, server):
        return [
            arq
            for arq in self.arqs(server)
            if arq['device_profile_name'] == 'fakedev-dp-port'
        ]

    def assert_ports_have_their_arqs(self, server, *ports):
        """Each one device, as interface, and no device twice."""
        arqs = {arq['uuid']: arq for arq in self.port_arqs(server)}
        self.assertEqual({'Bound'}, {arq['state'] for arq in arqs.values()})
        self.assertEqual(len(ports), len(arqs))
        for port in ports:
            profile = self.binding_profile(port)
            arq = arqs.pop(profile['arq_uuid'])
            self.assertEqual(
                {
                    'arq_uuid': arq['uuid'],
                    'pci_slot': self.arq_device(arq),
                    'physical_network': 'physnet1',
                },
                profile,
            )
        self.assertEqual(
            sorted(self.arq_device(arq) for arq in self.port_arqs(server)),
            self.network_devices(server),
        )
        self.assertEqual(
            sorted(self.arq_device(arq) for arq in self.arqs(server)),
            sorted(self.network_devices(server) + self.guest_devices(server)),
        )

    def delete(self, *servers):
        super().delete(*servers)
        for port in self.ports:
            self.assertNotIn('arq_uuid', self.binding_profile(port))

    def act(self, server, name, value=None):
        self.admin_api.post_server_action(server['id'], {name: value})

    def wait_for_status(self, server, status):
        return self._wait_for_server_parameter(
            server, {'status': status, 'OS-EXT-STS:task_state': None}
        )


class TestBoot(PortTestCase):
    def test_plain_flavor(self):
        server = self.boot_with_ports(self._create_flavor(), self.ports[0])
        self.assert_ports_have_their_arqs(server, self.ports[0])
        self.assertEqual([], self.guest_devices(server))
        self.delete(server)

    def test_two_ports(self):
        server = self.boot_with_ports(self._create_flavor(), *self.ports)
        self.assert_ports_have_their_arqs(server, *self.ports)
        self.delete(server)

    def test_native_flavor_of_the_same_class(self):
        """What the port holds is not matched to the flavor's groups."""
        flavor = self.flavor_with(
            {'resources:CUSTOM_NIC': '2'},
            base.FPGA,
            key=device_profile.FLAVOR_KEY,
        )
        server = self.boot_with_ports(flavor, *self.ports)
        self.assert_ports_have_their_arqs(server, *self.ports)
        self.assertEqual(3, len(self.guest_devices(server)))
        self._rebuild_server(server, _OTHER_IMAGE)
        self.assert_ports_have_their_arqs(server, *self.ports)
        self.assertEqual(3, len(self.guest_devices(server)))
        self.delete(server)

    def test_flavor_with_cyborgs_key(self):
        flavor = self.flavor_with(NIC, base.FPGA, key=_COMPAT)
        server = self.boot_with_ports(flavor, self.ports[0])
        self.assert_ports_have_their_arqs(server, self.ports[0])
        self.assertEqual(2, len(self.guest_devices(server)))
        before = self.arqs(server)
        self._rebuild_server(server, _OTHER_IMAGE)
        self._reboot_server(server, hard=True)
        self.assert_ports_have_their_arqs(server, self.ports[0])
        self.assertEqual(before, self.arqs(server))
        self.delete(server)

    def test_a_shortage_names_the_ports_profile(self):
        self.create_profile('all', [{'resources:CUSTOM_NIC': '8'}])
        server = self.boot(self.create_accel_flavor('all'))
        failed = self.boot_with_ports(
            self._create_flavor(), self.ports[0], expected_state='ERROR'
        )
        self.assertRegex(
            failed['fault']['message'],
            'device profile fakedev-dp-port: '
            rf'device_profile_0{self.ports[0]} \(.*\): all 8 are in use',
        )
        self.delete(server, failed)

    def test_turned_off(self):
        self.flags(cyborg_compatible=False, group='nova_accel')
        failed = self.boot_with_ports(
            self._create_flavor(), self.ports[0], expected_state='ERROR'
        )
        self.assertIn('No valid host', failed['fault']['message'])
        self.delete(failed)


class TestLifecycle(PortTestCase):
    def setUp(self):
        super().setUp()
        self.server = self.boot_with_ports(
            self.flavor_with(base.FPGA, key=device_profile.FLAVOR_KEY),
            self.ports[0],
        )
        self.before = self.arqs(self.server)
        self.devices = self.guest_devices(self.server)

    def assert_kept(self):
        self.assertEqual(self.before, self.arqs(self.server))
        self.assertEqual(self.devices, self.guest_devices(self.server))
        self.assert_ports_have_their_arqs(self.server, self.ports[0])

    def test_what_nova_allows(self):
        self._reboot_server(self.server, hard=True)
        self.assert_kept()
        self._stop_server(self.server)
        self._start_server(self.server)
        self.assert_kept()
        for action, status, back in (
            ('pause', 'PAUSED', 'unpause'),
            ('rescue', 'RESCUE', 'unrescue'),
        ):
            self.act(self.server, action, {} if back == 'unrescue' else None)
            self.wait_for_status(self.server, status)
            self.assert_kept()
            self.act(self.server, back)
            self.wait_for_status(self.server, 'ACTIVE')
            self.assert_kept()
        self.delete(self.server)

    def test_cold_snapshot(self):
        self.flags(disable_libvirt_livesnapshot=True, group='workarounds')
        self.flags(device_detach_timeout=1, group='libvirt')
        self.act(self.server, 'createImage', {'name': 'a-snapshot'})
        self.wait_for_status(self.server, 'ACTIVE')
        self.assert_kept()
        self.delete(self.server)

    def test_what_nova_forbids(self):
        port = self.ports[1]
        for action, value in (
            ('resize', {'flavorRef': self._create_flavor()}),
            ('migrate', None),
            ('os-migrateLive', {'host': None, 'block_migration': 'auto'}),
            ('suspend', None),
            ('shelve', None),
            ('shelveOffload', None),
        ):
            error = self.assertRaises(
                client.OpenStackApiException,
                self.act,
                self.server,
                action,
                value,
            )
            self.assertEqual(400, error.response.status_code, action)
        for call in (
            lambda: self.api.attach_interface(
                self.server['id'], {'interfaceAttachment': {'port_id': port}}
            ),
            lambda: self.api.detach_interface(
                self.server['id'], self.ports[0]
            ),
        ):
            error = self.assertRaises(client.OpenStackApiException, call)
            self.assertEqual(400, error.response.status_code)
        self.assert_kept()
        self.delete(self.server)

    def test_reboot_of_the_host(self):
        self.flags(resume_guests_state_on_host_boot=True)
        self.domain().destroy()
        self.restart_compute_service('host1')
        self._wait_for_assert(
            lambda: self.assertTrue(self.domain().isActive())
        )
        self.assert_kept()
        self.delete(self.server)

    def domain(self):
        (domain,) = self.connection('host1').listAllDomains(
            fakelibvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE
            | fakelibvirt.VIR_CONNECT_LIST_DOMAINS_INACTIVE
        )
        return domain

    def test_deleted_while_nova_compute_is_down(self):
        """The guest runs on, so what its port has stays taken."""
        self.computes['host1'].stop()
        self.api.put_service_force_down(
            self.api.get_services(binary='nova-compute')[0]['id'], True
        )
        self.api.delete_server(self.server['id'])
        self._wait_until_deleted(self.server)
        self.assertEqual(self.before, self.arqs(self.server))


class TestReschedule(PortTestCase):
    hosts = ('host1', 'host2')

    def test_a_guest_that_does_not_start(self):
        self.break_libvirt((fakelibvirt.Domain, 'createWithFlags'), times=1)
        server = self.boot_with_ports(self._create_flavor(), self.ports[0])
        self.assertEqual(1, self.failures)
        self.assert_ports_have_their_arqs(server, self.ports[0])
        self.delete(server)

    def test_a_lost_race(self):
        """The port's device is taken just before it is bound."""
        lost = []
        allot = handle_stock.HandleStock.allot

        def fail_first(stock, wanted):
            if not lost:
                lost.extend(wanted)
                raise exceptions.AcceleratorsBusy('it is taken')
            return allot(stock, wanted)

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.model.units.handle_stock.HandleStock.allot',
                fail_first,
            )
        )
        server = self.boot_with_ports(self._create_flavor(), self.ports[0])
        self.assertEqual(1, len(lost))
        self.assert_ports_have_their_arqs(server, self.ports[0])
        self.delete(server)
