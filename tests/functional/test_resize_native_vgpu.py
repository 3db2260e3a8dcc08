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

from nova.conf import CONF
from nova.conf import devices as nova_devices_conf
from nova.tests.fixtures import libvirt as fakelibvirt

from functional import moves
from functional import operations
from nova_accel.testing import devices

NOVAS_TYPE = fakelibvirt.NVIDIA_11_VGPU_TYPE
OUR_TYPE = fakelibvirt.NVIDIA_12_VGPU_TYPE


class TestNativeVgpus(moves.MoveTestCase):
    """Between a flavor with Nova's own vGPUs and one with ours."""

    hosts = ()

    def setUp(self):
        super().setUp()
        self.flags(enabled_mdev_types=[NOVAS_TYPE], group='devices')
        nova_devices_conf.register_dynamic_opts(CONF)
        self.flags(
            device_addresses=['0000:81:00.0'], group=f'mdev_{NOVAS_TYPE}'
        )
        ours = json.dumps(
            {
                'address': '0000:82:00.0',
                'driver': 'mdev',
                'mdev_type': OUR_TYPE,
            }
        )
        for host in ('host1', 'host2'):
            self.start_accelerated_compute(
                host, devices.pci_info(gpus=2, fpgas=0, qats=0), (ours,)
            )
        self.native = self._create_flavor(extra_spec={'resources:VGPU': '1'})

    def mdevs(self, hostname):
        """Nova keeps those that it made for its next server; we do not."""
        return {
            uuid: mdev
            for uuid, mdev in super().mdevs(hostname).items()
            if mdev[1] != NOVAS_TYPE
        }

    def types(self, server, host):
        """The types of the mediated devices of the server's guest."""
        mdevs = super().mdevs(host)
        return [
            mdevs[hostdev.find('source/address').get('uuid')][1]
            for hostdev in self.hostdevs(server, host)
        ]

    def assert_types(self, server, host, *types):
        self.assertEqual(list(types), self.types(server, host))
        self._reboot_server(server, hard=True)
        self.assertEqual(list(types), self.types(server, host))

    @operations.shows(
        'resize from vGPUs of Nova to ours',
        'to another host, confirmed',
        devices=['mdev'],
    )
    def test_from_novas_to_ours_and_confirm(self):
        server = self.boot_on('host1', self.native)
        self.assertEqual([NOVAS_TYPE], self.types(server, 'host1'))
        server = self.resize(server, self.vgpus)
        self.assertEqual([OUR_TYPE] * 2, self.types(server, 'host2'))
        self.confirm(server)
        self.assert_types(server, 'host2', OUR_TYPE, OUR_TYPE)
        self.delete(server)

    @operations.shows(
        'resize from vGPUs of Nova to ours',
        'to another host, reverted',
        devices=['mdev'],
    )
    def test_from_novas_to_ours_and_revert(self):
        server = self.boot_on('host1', self.native)
        before = self.guest_devices(server)
        self.revert(self.resize(server, self.vgpus))
        self.assertEqual(before, self.guest_devices(server))
        self.assert_types(server, 'host1', NOVAS_TYPE)
        self.assert_nothing_left()

    @operations.shows(
        'resize from our vGPUs to those of Nova',
        'to another host, confirmed',
        devices=['mdev'],
    )
    def test_from_ours_to_novas_and_confirm(self):
        server = self.resize(self.boot_on('host1', self.vgpus), self.native)
        self.confirm(server)
        self.assert_types(server, 'host2', NOVAS_TYPE)
        self.assert_nothing_left()

    @operations.shows(
        'resize from our vGPUs to those of Nova',
        'to another host, reverted',
        devices=['mdev'],
    )
    def test_from_ours_to_novas_and_revert(self):
        server = self.boot_on('host1', self.vgpus)
        before = self.guest_devices(server)
        self.revert(self.resize(server, self.native))
        self.assert_guest(server, 'host1', before)
        self.assert_types(server, 'host1', OUR_TYPE, OUR_TYPE)
        self.delete(server)
