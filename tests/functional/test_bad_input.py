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

from nova import utils
from nova.tests.functional.api import client as api_client

from functional import base
from nova_accel import exceptions
from nova_accel.testing import devices


class TestScheduling(base.AcceleratorTestCase):
    """A request that cannot be met says why, and holds nothing."""

    def assert_refused(self, flavor, *names):
        server = self.boot(flavor, expected_state='ERROR')
        for name in names:
            self.assertIn(name, server['fault']['message'])
        self.assert_nothing_left()
        self._delete_server(server)

    def test_an_unknown_device_profile(self):
        self.assert_refused(self.create_accel_flavor('nowhere'), 'nowhere')

    def test_an_unknown_trait(self):
        self.create_profile(
            'p', [{'resources:FPGA': '1', 'trait:CUSTOM_NO_SUCH': 'required'}]
        )
        self.assert_refused(
            self.create_accel_flavor('p'), 'CUSTOM_NO_SUCH', ' p:'
        )

    def test_an_unknown_class(self):
        self.create_profile('p', [{'resources:CUSTOM_FPAG': '1'}])
        self.assert_refused(
            self.create_accel_flavor('p'), ' p:', 'no host has CUSTOM_FPAG'
        )

    def test_a_misspelt_extra_spec(self):
        """Nova takes it, from a client that asks for no check of it."""
        with utils.temporary_mutation(self.admin_api, microversion='2.85'):
            flavor = self._create_flavor(
                extra_spec={'nova_accel:device-profile': 'p'}
            )
        self.assert_refused(
            flavor,
            'nova_accel:device-profile, which is to be '
            'nova_accel:device_profile',
        )

    def test_both_extra_specs(self):
        """Nova asks Cyborg's API for its own, which here is ours too."""
        self.create_profile('p', [{'resources:FPGA': '1'}])
        self.assert_refused(
            self.create_accel_flavor(
                'p', extra_spec={'accel:device_profile': 'p'}
            ),
            'nova_accel:device_profile',
            'accel:device_profile',
        )

    def test_more_than_any_provider_has(self):
        self.create_profile('p', [{'resources:FPGA': '2'}])
        self.assert_refused(
            self.create_accel_flavor('p'),
            'No valid host',
            'device profile p: no pool of devices has FPGA=2, which group 0 '
            'asks for; the largest has 1: make it 2 groups of FPGA=1 in the '
            'device profile',
        )


class TestExtraSpecs(base.AcceleratorTestCase):
    hosts = ()

    def assert_refused(self, key, value, *names):
        flavor = self._create_flavor()
        error = self.assertRaises(
            api_client.OpenStackApiException,
            self.admin_api.post_extra_spec,
            flavor,
            {'extra_specs': {key: value}},
        )
        self.assertEqual(400, error.response.status_code)
        for name in names:
            self.assertIn(name, error.response.text)

    def test_an_unknown_key(self):
        self.assert_refused(
            'nova_accel:device_profil', 'p', 'nova_accel:device_profil'
        )

    def test_a_value_that_names_no_profile(self):
        self.assert_refused(
            'nova_accel:device_profile', 'no profile!', 'no profile!'
        )


class TestDeviceSpec(base.AcceleratorTestCase):
    """nova-compute does not start, and the error names the culprit."""

    hosts = ()

    def assert_no_start(self, line, *names):
        error = self.assertRaises(
            exceptions.InvalidDeviceSpec,
            self.start_accelerated_compute,
            'host1',
            devices.pci_info(),
            [line],
        )
        for name in ('[nova_accel] device_spec', line, *names):
            self.assertIn(name, str(error))

    def test_malformed(self):
        self.assert_no_start('{"vendor_id": ')
        self.assert_no_start(
            '{"vendor_id": "8086", "driver": "pci", "adress": "0000:81:00.0"}',
            'adress',
        )
        self.assert_no_start(
            '{"vendor_id": "80866", "driver": "pci"}', 'vendor_id', '80866'
        )

    def test_an_unknown_driver(self):
        self.assert_no_start(
            '{"vendor_id": "8086", "driver": "qta"}', 'qta', 'pci', 'mdev'
        )

    def test_no_credentials(self):
        self.flags(auth_type=None, group='nova_accel_client')
        error = self.assertRaises(
            exceptions.ConfigurationError,
            self.start_accelerated_compute,
            'host1',
        )
        self.assertIn('[nova_accel_client] auth_type', str(error))


class TestDeviceProfiles(base.AcceleratorTestCase):
    hosts = ()

    def assert_refused(self, status, body, *names):
        before = self.accelerator.get('/device_profiles')
        response = self.accelerator.request(
            'POST', '/device_profiles', json=body
        )
        self.assertEqual(status, response.status_code, response.text)
        for name in names:
            self.assertIn(name, response.text)
        self.assertEqual(before, self.accelerator.get('/device_profiles'))

    def test_malformed(self):
        for group, name in (
            ({'resources:FPGA': 'many'}, 'many'),
            ({'resources:VCPU': '1'}, 'VCPU'),
            ({'resource:FPGA': '1'}, 'resource:FPGA'),
            ({'resources:FPGA': '1', 'trait:HW_X': 'required'}, 'HW_X'),
            ({'resources:FPGA': '1', 'accel:bitstrem': 'x'}, 'accel:bitstrem'),
        ):
            self.assert_refused(400, [{'name': 'p', 'groups': [group]}], name)

    def test_a_duplicate_name(self):
        self.create_profile('twice', [{'resources:FPGA': '1'}])
        self.assert_refused(
            409,
            [{'name': 'twice', 'groups': [{'resources:VGPU': '1'}]}],
            'twice',
        )
