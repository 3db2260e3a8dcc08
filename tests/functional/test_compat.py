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
from nova.accelerator import cyborg
from nova.tests.fixtures import libvirt as fakelibvirt
from oslo_utils import uuidutils

from functional import base
from nova_accel.model import device_profile
from nova_accel.testing import libvirt

FPGA = {'resources:FPGA': '1'}
QAT = {'resources:CUSTOM_QAT': '1'}
VGPU = {'resources:VGPU': '1'}


class CompatTestCase(base.AcceleratorTestCase):
    """Nova's own Cyborg client talks to our REST API."""

    hosts = ('host1',)

    def setUp(self):
        super().setUp()
        self.flags(cyborg_compatible=True, group='nova_accel')
        for host in self.hosts:
            self.start_accelerated_compute(host)

    def compat_flavor(self, *groups, name='profile'):
        self.create_profile(name, groups)
        return self.create_accel_flavor(
            name, device_profile.CYBORG_FLAVOR_KEY)

    def boot_compat(self, *groups):
        return self.boot(self.compat_flavor(*groups))

    def assert_guest_has_its_arqs(self, server, *expected):
        """Each ARQ is bound and is one <hostdev>; and nothing else is.

        :param expected: (group, attach handle type) of each
        """
        arqs = self.arqs(server)
        self.assertEqual(sorted(expected), sorted(
            (arq['device_profile_group_id'], arq['attach_handle_type'])
            for arq in arqs))
        host = server['OS-EXT-SRV-ATTR:host']
        self.assertEqual({('Bound', host)}, {
            (arq['state'], arq['hostname']) for arq in arqs})
        self.assertEqual(sorted(map(self.arq_device, arqs)),
                         self.guest_devices(server))
        self.assertEqual(
            sorted(arq['attach_handle_uuid'] for arq in arqs
                   if arq['attach_handle_type'] == 'MDEV'),
            sorted(self.mdevs(host)))


class TestBoot(CompatTestCase):

    def test_pci(self):
        server = self.boot_compat(QAT)
        self.assert_guest_has_its_arqs(server, (0, 'PCI'))
        self.delete(server)

    def test_mdev(self):
        server = self.boot_compat(VGPU)
        self.assert_guest_has_its_arqs(server, (0, 'MDEV'))
        self.delete(server)

    def test_groups_of_several_units(self):
        server = self.boot_compat(
            {'resources:CUSTOM_QAT': '2'}, {'resources:VGPU': '2'}, FPGA)
        self.assert_guest_has_its_arqs(
            server, (0, 'PCI'), (0, 'PCI'), (1, 'MDEV'), (1, 'MDEV'),
            (2, 'PCI'))
        self.delete(server)

    def test_several_servers_in_one_request(self):
        flavor = self.compat_flavor(FPGA)
        body = self._build_server(flavor_id=flavor, networks='none')
        body.update(min_count=2, max_count=2, return_reservation_id=True)
        reservation = self.api.post_server({'server': body})
        servers = [self._wait_for_state_change(server, 'ACTIVE') for server
                   in self.api.get_servers(search_opts=reservation)]
        self.assertEqual(2, len({device for server in servers
                                 for device in self.guest_devices(server)}))
        self.delete(*servers)

    def test_a_shortage_is_explained(self):
        flavor = self.compat_flavor(FPGA)
        servers = [self.boot(flavor) for _number in range(2)]
        failed = self.boot(flavor, expected_state='ERROR')
        self.assertIn('device profile profile: no device has '
                      'device_profile_0 free: FPGA=1',
                      failed['fault']['message'])
        self.delete(failed, *servers)

    def test_a_device_that_would_have_to_be_programmed(self):
        failed = self.boot(
            self.compat_flavor({**FPGA, 'accel:function_name': 'gzip'}),
            expected_state='ERROR')
        self.assertIn('accel:function_name', failed['fault']['message'])
        self.delete(failed)

    def test_turned_off(self):
        self.flags(cyborg_compatible=False, group='nova_accel')
        failed = self.boot(self.compat_flavor(FPGA), expected_state='ERROR')
        self.assertIn('No valid host', failed['fault']['message'])
        self.delete(failed)


class TestLifecycle(CompatTestCase):

    def setUp(self):
        super().setUp()
        self.server = self.boot_compat(FPGA, VGPU)
        self.before = self.guest_devices(self.server)
        self.arqs_before = self.arqs(self.server)

    def assert_kept(self):
        self.assertEqual(self.before, self.guest_devices(self.server))
        self.assertEqual(self.arqs_before, self.arqs(self.server))
        self.assertEqual(1, len(self.mdevs('host1')))

    def lose_mdev(self):
        """As a reboot of the host does."""
        connection = self.connection('host1')
        (name,) = connection.listDevices('mdev', 0)
        connection.nodeDeviceLookupByName(name).destroy()
        self.assertFalse(self.mdevs('host1'))

    def test_hard_reboot(self):
        self._reboot_server(self.server, hard=True)
        self.assert_kept()
        self.delete(self.server)

    def test_stop_and_start(self):
        self._stop_server(self.server)
        self.lose_mdev()
        self._start_server(self.server)
        self.assert_kept()
        self.delete(self.server)

    def test_rebuild(self):
        self._rebuild_server(
            self.server, '70a599e0-31e7-49b7-b260-868f441e862b')
        self.assert_kept()
        self.delete(self.server)

    def test_reboot_of_the_host(self):
        self.flags(resume_guests_state_on_host_boot=True)
        connection = self.connection('host1')
        (domain,) = connection.listAllDomains(
            fakelibvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE)
        domain.destroy()
        self.lose_mdev()
        self.restart_compute_service('host1')
        self._wait_for_assert(self.assert_kept)
        self.delete(self.server)

    def test_a_device_that_is_stuck_stays_taken(self):
        """Whatever Nova tells its Cyborg."""
        self.break_libvirt(
            (fakelibvirt.Connection, 'nodeDeviceLookupByName'), times=1)
        self._delete_server(self.server)
        self.assertEqual(1, self.failures)
        self.assertEqual(1, len(self.mdevs('host1')))
        self.assertEqual(self.arqs_before, self.arqs(self.server))
        self.computes['host1'].driver._accelerators.attachments.retry()
        self.assert_nothing_left()

    def test_deleted_while_nova_compute_is_down(self):
        """The guest runs on, so its devices stay taken."""
        compute = self.computes['host1']
        compute.stop()
        self.api.put_service_force_down(
            self.api.get_services(binary='nova-compute')[0]['id'], True)
        self.api.delete_server(self.server['id'])
        self._wait_until_deleted(self.server)
        self.assert_kept()


class TestReschedule(CompatTestCase):

    hosts = ('host1', 'host2')

    def setUp(self):
        super().setUp()
        self.flavor = self.compat_flavor(FPGA, VGPU)

    def lose_races(self, times):
        """Others take the first ARQ's device just before it is bound."""
        bind_arqs = cyborg._CyborgClient.bind_arqs
        self.thieves = []

        def bind_late(client, bindings):
            if len(self.thieves) < times:
                self.steal(next(iter(bindings.values())))
            bind_arqs(client, bindings)

        self.useFixture(fixtures.MonkeyPatch(
            'nova.accelerator.cyborg._CyborgClient.bind_arqs', bind_late))
        self.create_profile('fpga', [FPGA])

    def steal(self, binding):
        (arq,) = self.accelerator.post('/accelerator_requests', {
            'device_profile_name': 'fpga'})['arqs']
        self.thieves.append(uuidutils.generate_uuid())
        self.accelerator.patch('/accelerator_requests', {arq['uuid']: [
            {'op': 'add', 'path': f'/{name}', 'value': value}
            for name, value in {
                **binding, 'instance_uuid': self.thieves[-1]}.items()]},
            service_user=self.nova)

    def free_what_was_stolen(self):
        for uuid in self.thieves:
            self.accelerator.delete(f'/accelerator_requests?instance={uuid}',
                                    service_user=self.nova)

    def assert_rescheduled(self):
        server = self.boot(self.flavor)
        self.assert_guest_has_its_arqs(server, (0, 'PCI'), (1, 'MDEV'))
        self.assertEqual(1, sum(
            len(self.mdevs(host)) for host in self.computes))
        return server

    def test_a_device_that_refuses(self):
        self.break_libvirt(
            (fakelibvirt.Connection, 'nodeDeviceCreateXML'), times=1)
        server = self.assert_rescheduled()
        self.assertEqual(1, self.failures)
        self.delete(server)

    def test_a_guest_that_does_not_start(self):
        self.break_libvirt((fakelibvirt.Domain, 'createWithFlags'), times=1)
        server = self.assert_rescheduled()
        self.assertEqual(1, self.failures)
        self.delete(server)

    def test_a_host_that_cannot_give_back_yet(self):
        """What it still has is not given to the guest on the other host."""
        self.break_libvirt((fakelibvirt.Domain, 'createWithFlags'), times=1)
        # By spawn, and by the cleanup after it.
        self.break_libvirt((libvirt.MediatedDevice, 'destroy'), times=2)
        server = self.boot(self.flavor)
        self.assertEqual(3, self.failures)
        here = server['OS-EXT-SRV-ATTR:host']
        (there,) = set(self.hosts) - {here}
        hosts = [arq['hostname'] for arq in self.arqs(server)]
        self.assertEqual([here, here, there, there], sorted(
            hosts, key=lambda host: host == there))
        before = self.guest_devices(server)
        self._reboot_server(server, hard=True)
        self.assertEqual(before, self.guest_devices(server))
        self.assertEqual(2, len(before))
        self.computes[there].driver._accelerators.attachments.retry()
        self.assert_guest_has_its_arqs(server, (0, 'PCI'), (1, 'MDEV'))
        self.delete(server)

    def test_a_lost_race(self):
        self.lose_races(times=1)
        server = self.assert_rescheduled()
        self.assertEqual(1, len(self.thieves))
        self.free_what_was_stolen()
        self.delete(server)

    def test_all_races_lost(self):
        self.lose_races(times=2)
        server = self.boot(self.flavor, expected_state='ERROR')
        self.assertEqual(2, len(self.thieves))
        self.assertIn('Exceeded maximum number of retries',
                      server['fault']['message'])
        self.free_what_was_stolen()
        self.assert_nothing_left()
        self.delete(server)


class TestSideBySide(CompatTestCase):

    hosts = ('host1', 'host2')
    # Nova's services do not wait for each other, as on real ones.
    CAST_AS_CALL = False

    def test_native_and_compat_in_parallel(self):
        compat = self.compat_flavor(QAT, VGPU)
        native = self.create_accel_flavor('profile')
        servers = [self.api.post_server({'server': self._build_server(
            flavor_id=flavor, networks='none')})
            for flavor in (compat, native) * 3]
        servers = [self._wait_for_state_change(server, 'ACTIVE')
                   for server in servers]
        self.assertEqual(12, len({
            (server['OS-EXT-SRV-ATTR:host'], device) for server in servers
            for device in self.guest_devices(server)}))
        for server in servers:
            self.assertEqual(sorted(map(self.arq_device, self.arqs(server))),
                             self.guest_devices(server))
        self.delete(*servers)
