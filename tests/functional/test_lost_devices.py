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

"""Devices that the host still lists, but that do not answer any more."""

from nova.tests.functional.api import client

from functional import test_publishing
from nova_accel.testing import fake_sysfs

HOST, POOL = test_publishing.HOST, test_publishing.POOL


class TestLostDevices(test_publishing.PublishingTestCase):
    hosts = ()

    def setUp(self):
        super().setUp()
        self.sysfs = self.useFixture(fake_sysfs.FakeSysfs())
        self.start_accelerated_compute(HOST)

    def held(self):
        """The addresses of what is not given back yet."""
        held = self.computes[HOST].driver._accelerators.attachments.held
        return [str(arq.handle.address) for arq in held.arqs()]

    def test_lost_by_the_reset_after_its_guest(self):
        server = self.boot_with_profile('qat')
        (device,) = self.guest_devices(server)
        self.sysfs.lose(device)
        self._delete_server(server)
        # It is not free before it is known to be faulty.
        self.assertEqual([device], self.held())
        self.update(2)
        self.assertEqual([], self.held())
        self.assertEqual({POOL: (8, 1, 0)}, self.units('CUSTOM_QAT'))
        self.sysfs.revive(device, '8086')
        self.update(2)
        self.assertEqual({POOL: (8, 0, 0)}, self.units('CUSTOM_QAT'))

    def test_a_guest_does_not_start_with_it(self):
        server = self.boot_with_profile('qat')
        (device,) = self.guest_devices(server)
        self._stop_server(server)
        self.sysfs.lose(device)
        self.assertRaises(
            client.OpenStackApiException, self._start_server, server
        )
        self.sysfs.revive(device, '8086')
        self._start_server(server)
        self.assertEqual([device], self.guest_devices(server))
