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

from unittest import mock

from nova.tests.fixtures import libvirt as fakelibvirt

from functional import base

FPGA = {'resources:FPGA': '1'}
QAT = {'resources:CUSTOM_QAT': '1'}
VGPU = {'resources:VGPU': '1'}


class TestOneHost(base.AcceleratorTestCase):

    def setUp(self):
        super().setUp()
        self.start_accelerated_compute('host1')
        self.create_profile('fpga', [FPGA])
        self.flavor = self.create_accel_flavor('fpga')

    def test_exhaustion(self):
        servers = [self.boot(self.flavor) for _number in range(2)]
        failed = self.boot(self.flavor, expected_state='ERROR')
        self.assertIn('No valid host', failed['fault']['message'])
        devices = sum((self.guest_devices(server) for server in servers), [])
        self.assertEqual(2, len(set(devices)))
        self._delete_server(failed)
        self._delete_server(servers.pop())
        servers.append(self.boot(self.flavor))
        self.delete(*servers)

    def multi_create(self, flavor, count):
        body = self._build_server(flavor_id=flavor, networks='none')
        body.update(min_count=count, max_count=count,
                    return_reservation_id=True)
        reservation = self.api.post_server({'server': body})
        servers = self.api.get_servers(
            detail=True, search_opts=reservation)
        self.assertEqual(count, len(servers))
        return servers

    def test_multi_create_takes_every_device(self):
        """Of providers with one unit each, and of one with many."""
        self.create_profile('qat', [QAT])
        for flavor, count in ((self.flavor, 2),
                              (self.create_accel_flavor('qat'), 8)):
            servers = [self._wait_for_state_change(server, 'ACTIVE')
                       for server in self.multi_create(flavor, count)]
            devices = sum(map(self.guest_devices, servers), [])
            self.assertEqual(count, len(set(devices)))
            self.delete(*servers)

    def test_a_multi_create_that_does_not_fit_takes_nothing(self):
        for server in self.multi_create(self.flavor, 3):
            failed = self._wait_for_state_change(server, 'ERROR')
            self.assertIn('No valid host', failed['fault']['message'])
        self.assert_nothing_left()


class TestTwoHosts(base.AcceleratorTestCase):

    def setUp(self):
        super().setUp()
        for host in ('host1', 'host2'):
            self.start_accelerated_compute(host)
        self.create_profile('both', [FPGA, VGPU])
        self.flavor = self.create_accel_flavor('both')

    def break_once(self, target, error):
        """The first call of a method fails; the ones after it do not."""
        real = getattr(*target)
        self.failed = []

        def fail_first(*args, **kwargs):
            if not self.failed:
                self.failed.append(args)
                raise error
            return real(*args, **kwargs)

        patcher = mock.patch.object(*target, fail_first)
        patcher.start()
        self.addCleanup(patcher.stop)

    def assert_rescheduled(self):
        server = self.boot(self.flavor)
        self.assertEqual(1, len(self.failed))
        self.assertEqual({server['OS-EXT-SRV-ATTR:host']},
                         {arq['hostname'] for arq in self.arqs(server)})
        self.assertEqual(1, sum(
            len(self.mdevs(host)) for host in self.computes))
        self.delete(server)

    def test_a_guest_that_does_not_start_is_rescheduled(self):
        self.break_once(
            (fakelibvirt.Domain, 'createWithFlags'),
            fakelibvirt.make_libvirtError(
                fakelibvirt.libvirtError, 'vfio: device is stuck',
                error_code=fakelibvirt.VIR_ERR_INTERNAL_ERROR))
        self.assert_rescheduled()

    def test_a_device_that_refuses_is_rescheduled(self):
        self.break_once(
            (fakelibvirt.Connection, 'nodeDeviceCreateXML'),
            fakelibvirt.make_libvirtError(
                fakelibvirt.libvirtError, 'mdev: no space left',
                error_code=fakelibvirt.VIR_ERR_INTERNAL_ERROR))
        self.assert_rescheduled()

    def test_all_hosts_failing_leaves_nothing(self):
        with mock.patch.object(
                fakelibvirt.Connection, 'nodeDeviceCreateXML',
                side_effect=fakelibvirt.make_libvirtError(
                    fakelibvirt.libvirtError, 'mdev: no space left')):
            server = self.boot(self.flavor, expected_state='ERROR')
        self.assert_nothing_left()
        self._delete_server(server)

    def test_servers_spread_over_hosts_with_free_accelerators(self):
        servers = [self.boot(self.flavor)
                   for _number in range(4)]
        hosts = [server['OS-EXT-SRV-ATTR:host'] for server in servers]
        self.assertEqual({'host1': 2, 'host2': 2},
                         {host: hosts.count(host) for host in set(hosts)})
        self.assertNotEqual(hosts[0], hosts[1])
