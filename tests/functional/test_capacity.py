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

from nova.tests.fixtures import libvirt as fakelibvirt

from functional import base
from functional import operations
from nova_accel.model.profiles import device_profile
from nova_accel.testing import devices


class TestOneHost(base.AcceleratorTestCase):
    def setUp(self):
        super().setUp()
        self.create_profile('fpga', [base.FPGA])
        self.create_profile('vgpus', [{'resources:VGPU': '8'}])
        # Of each there are two.
        self.flavors = {
            'fpga': self.create_accel_flavor('fpga'),
            'vgpus': self.create_accel_flavor('vgpus'),
        }

    @operations.shows('boot', 'no device is free')
    def test_exhaustion(self):
        for profile, shortage, count in (
            ('fpga', 'FPGA=1', 2),
            ('vgpus', 'VGPU=8', 16),
        ):
            flavor = self.flavors[profile]
            servers = [self.boot(flavor) for _number in range(2)]
            failed = self.boot(flavor, expected_state='ERROR')
            self.assertIn(
                f'device profile {profile}: device_profile_0 ({shortage}): '
                f'all {count} are in use',
                failed['fault']['message'],
            )
            self.assertEqual(count, len(self.all_devices(servers)))
            self._delete_server(failed)
            self._delete_server(servers.pop())
            servers.append(self.boot(flavor))
            self.delete(*servers)

    def multi_create(self, flavor, count):
        body = self._build_server(flavor_id=flavor, networks='none')
        body.update(
            min_count=count, max_count=count, return_reservation_id=True
        )
        reservation = self.api.post_server({'server': body})
        servers = self.api.get_servers(detail=True, search_opts=reservation)
        self.assertEqual(count, len(servers))
        return servers

    def all_devices(self, servers):
        return {
            device
            for server in servers
            for device in self.guest_devices(server)
        }

    @operations.shows('multi-create')
    def test_multi_create_takes_every_device(self):
        """Of providers with one unit each, and of one with many."""
        self.create_profile('qat', [base.QAT])
        for flavor, count, each in (
            (self.flavors['fpga'], 2, 1),
            (self.flavors['vgpus'], 2, 8),
            (self.create_accel_flavor('qat'), 8, 1),
        ):
            servers = [
                self._wait_for_state_change(server, 'ACTIVE')
                for server in self.multi_create(flavor, count)
            ]
            self.assertEqual(count * each, len(self.all_devices(servers)))
            self.delete(*servers)

    @operations.shows('multi-create', 'too few devices are free')
    def test_a_multi_create_that_does_not_fit_takes_nothing(self):
        for flavor in self.flavors.values():
            for server in self.multi_create(flavor, 3):
                failed = self._wait_for_state_change(server, 'ERROR')
                self.assertIn('No valid host', failed['fault']['message'])
                self._delete_server(failed)
            self.assert_nothing_left()


class TestOneHostCompat(TestOneHost):
    flavor_key = device_profile.CYBORG_FLAVOR_KEY


class TestTwoHosts(base.AcceleratorTestCase):
    hosts = ('host1', 'host2')

    def setUp(self):
        super().setUp()
        self.create_profile('both', [base.FPGA, base.VGPU])
        self.flavor = self.create_accel_flavor('both')

    def assert_rescheduled(self):
        server = self.boot(self.flavor)
        self.assertEqual(
            {server['OS-EXT-SRV-ATTR:host']},
            {arq['hostname'] for arq in self.arqs(server)},
        )
        self.assertEqual(
            1, sum(len(self.mdevs(host)) for host in self.computes)
        )
        self.delete(server)

    @operations.shows('reschedule', 'the guest does not start')
    def test_a_guest_that_does_not_start_is_rescheduled(self):
        self.break_libvirt((fakelibvirt.Domain, 'createWithFlags'), times=1)
        self.assert_rescheduled()
        self.assertEqual(1, self.failures)

    @operations.shows('reschedule', 'a device refuses')
    def test_a_device_that_refuses_is_rescheduled(self):
        for _device in self.each_refusing():
            self.assert_rescheduled()

    @operations.shows('boot', 'every host fails')
    def test_all_hosts_failing_leaves_nothing(self):
        for _device in self.each_refusing(times=2):
            server = self.boot(self.flavor, expected_state='ERROR')
            self.assert_nothing_left()
            self._delete_server(server)


class TestTwoHostsCompat(TestTwoHosts):
    flavor_key = device_profile.CYBORG_FLAVOR_KEY


class TestWeigher(base.AcceleratorTestCase):
    """Nova's own weighers would have each server on another host."""

    hosts = ()

    def setUp(self):
        super().setUp()
        self.create_profile('fpga', [base.FPGA])
        # Two regions, six, and two.
        for number, fpgas in enumerate((1, 3, 1)):
            self.start_accelerated_compute(
                f'host{number}',
                pci_info=devices.pci_info(gpus=0, fpgas=fpgas, qats=0),
            )

    def hosts_of(self, flavor, count):
        servers = [self.boot(flavor) for _number in range(count)]
        return [server['OS-EXT-SRV-ATTR:host'] for server in servers]

    def test_servers_are_packed(self):
        """Each host is filled before the next one is begun."""
        hosts = self.hosts_of(self.create_accel_flavor('fpga'), 4)
        self.assertEqual(['host0', 'host2'], sorted(hosts[::2]))
        self.assertEqual(hosts[::2], hosts[1::2])

    def test_servers_are_spread(self):
        self.flags(unit_policies={'FPGA': 'spread'}, group='nova_accel')
        self.assertEqual(
            ['host1'] * 4, self.hosts_of(self.create_accel_flavor('fpga'), 4)
        )

    def test_fewest_accelerators_for_all_others(self):
        self.assertNotIn('host1', self.hosts_of(self._create_flavor(), 3))


class TestWeigherCompat(TestWeigher):
    flavor_key = device_profile.CYBORG_FLAVOR_KEY
