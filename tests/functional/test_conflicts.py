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

"""A host starts although Nova's configuration claims one of its devices."""

import json
import pathlib

import fixtures
from nova.conf import CONF
from nova.conf import devices as nova_devices_conf
import yaml

from functional import base
from nova_accel.model import naming
from nova_accel.testing import devices

FPGA_VF = '0000:82:00.1'
QAT_POOL = 'host1_accel_qat_8086_37c9'


class TestConflicts(base.AcceleratorTestCase):
    """One device is Nova's, the others work, and so does Nova's."""

    hosts = ()

    def setUp(self):
        super().setUp()
        self.provider_configs = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path
        )
        self.flags(
            provider_config_location=str(self.provider_configs),
            group='compute',
        )

    def start(self):
        self.start_accelerated_compute('host1', devices.pci_info(qat_vfs=1))

    def configure_providers(self, **entry):
        (self.provider_configs / 'ours.yaml').write_text(
            yaml.safe_dump(
                {'meta': {'schema_version': '1.0'}, 'providers': [entry]}
            )
        )

    def published(self):
        return {
            resource_class
            for provider in self.accelerator_providers('host1')
            for resource_class in provider['inventory']
        }

    def assert_refused_once(self, *texts):
        """One error has all the texts, however often the host is looked at."""
        for _ in range(2):
            self.settle('host1')
            self._run_periodics()
        errors = [
            line
            for line in self.stdlog.logger.output.splitlines()
            if 'Accelerator refused' in line
        ]
        self.assertEqual(1, len(errors), errors)
        for text in texts:
            self.assertIn(text, errors[0])
        self.assertNotIn('Error updating resources', self.stdlog.logger.output)

    def test_pci_device_spec(self):
        """Of a card's function."""
        claim = json.dumps({'address': '*:82:00.1'})
        alias = {'vendor_id': '8086', 'product_id': '09c5', 'name': 'region'}
        self.flags(
            group='pci',
            device_spec=[claim],
            report_in_placement=True,
            alias=[json.dumps(alias)],
        )
        self.start()
        self.assert_refused_once(
            f'[nova_accel] device_spec = {devices.FPGA_SPEC}): Nova claims '
            f'{FPGA_VF}, a virtual function of 0000:82:00.0, too: '
            f'[pci] device_spec = {claim}'
        )
        self.assertEqual({'VGPU', 'CUSTOM_QAT'}, self.published())
        native = self.boot(
            self._create_flavor(
                extra_spec={'pci_passthrough:alias': 'region:1'}
            )
        )
        self.assertEqual([FPGA_VF], self.guest_devices(native))
        self.delete(self.boot_with(base.VGPU))

    def test_default_mdev_type(self):
        self.flags(enabled_mdev_types=['nvidia-12'], group='devices')
        nova_devices_conf.register_dynamic_opts(CONF)
        self.start()
        self.assert_refused_once(
            f'[nova_accel] device_spec = {devices.GPU_SPEC}): Nova claims '
            '0000:81:00.0 too: [devices] enabled_mdev_types = nvidia-12'
        )
        self.assertEqual({'FPGA', 'CUSTOM_QAT'}, self.published())
        native = self.boot(
            self._create_flavor(extra_spec={'resources:VGPU': '1'})
        )
        (uuid,) = self.guest_devices(native)
        self.assertEqual(
            ('0000:81:00.0', 'nvidia-12'), self.mdevs('host1')[uuid]
        )
        # Nova keeps its mediated device for the next.
        self._delete_server(self.boot_with(base.FPGA))

    def test_provider_yaml(self):
        """Nova would publish nothing of the host any more."""
        self.configure_providers(
            identification={'name': QAT_POOL},
            inventories={'additional': [{'CUSTOM_QAT': {'total': 2}}]},
        )
        self.start()
        self.assert_refused_once(
            f'[nova_accel] device_spec = {devices.QAT_SPEC}): Nova claims '
            f'its resource provider {QAT_POOL} too: ',
            f'/ours.yaml: provider with name {QAT_POOL}',
        )
        self.assertEqual({'VGPU', 'FPGA'}, self.published())
        self.delete(self.boot_with(base.FPGA))

    def test_provider_yaml_of_a_published_provider(self):
        self.start()
        uuid = naming.derived_uuid(
            self.compute_rp_uuids['host1'],
            'provider',
            'qat',
            '8086',
            '37c9',
        )
        self.assertIn(uuid, self.provider_names())
        self.configure_providers(
            identification={'uuid': uuid},
            traits={'additional': ['CUSTOM_RACK_7']},
        )
        self.restart_compute_service('host1')
        self.assert_refused_once(
            QAT_POOL, f'/ours.yaml: provider with uuid {uuid}'
        )
        self.assertEqual({'VGPU', 'FPGA'}, self.published())
        (self.provider_configs / 'ours.yaml').unlink()
        self.restart_compute_service('host1')
        self.assertEqual({'VGPU', 'FPGA', 'CUSTOM_QAT'}, self.published())
        self.assertNotIn(
            'OWNER_NOVA',
            [
                trait
                for provider in self.accelerator_providers('host1')
                for trait in provider['traits']
            ],
        )
        self.delete(self.boot_with(base.QAT))

    def test_our_trait_on_the_node(self):
        """The node stays Nova's."""
        self.configure_providers(
            identification={'uuid': '$COMPUTE_NODE'},
            traits={'additional': ['CUSTOM_NOVA_ACCEL']},
        )
        self.start_accelerated_compute(
            'host1', devices.pci_info(), (devices.FPGA_SPEC,)
        )
        self.assert_refused_once(
            devices.FPGA_SPEC,
            'Nova claims CUSTOM_NOVA_ACCEL too',
            '/ours.yaml: provider with uuid $COMPUTE_NODE',
        )
        self.assertEqual(set(), self.published())
        root = self.compute_rp_uuids['host1']
        self.assertIn('CUSTOM_NOVA_ACCEL', self._get_provider_traits(root))
        self.assertIn('VCPU', self._get_provider_inventory(root))
        self._delete_server(self.boot(self._create_flavor()))
