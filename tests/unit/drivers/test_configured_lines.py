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
from typing import Any

import fixtures
import testtools

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.drivers import configured_lines
from nova_accel.drivers import loading

CONF = conf.CONF


class TestRead(testtools.TestCase):
    def read(self, **line: Any) -> str:
        """The line, after it was read."""
        text = json.dumps(line)
        CONF.set_override('device_spec', [text], 'nova_accel')
        self.addCleanup(CONF.clear_override, 'device_spec', 'nova_accel')
        [spec] = configured_lines.read()
        self.assertEqual(text, spec.text)
        return text

    def assert_refused(self, *texts: str, **line: Any) -> None:
        error = self.assertRaises(
            exceptions.InvalidDeviceSpec, self.read, **line
        )
        for text in (f'[nova_accel] device_spec = {json.dumps(line)}', *texts):
            self.assertIn(text, str(error))

    def test_a_type_that_the_driver_does_not_have(self) -> None:
        for driver, kind, type_ in (
            ('nvme', 'SSD', 'GPU'),
            ('nic', 'NIC', 'GPU'),
            ('qat', 'QAT', 'TIME'),
            ('ascend', 'AICHIP', 'GPU'),
            ('time_card', 'TIME', 'NIC'),
            ('nvidia_gpu', 'GPU', 'SSD'),
            ('nvidia_vfio', 'VGPU', 'FPGA'),
            ('gpu_sriov', 'VGPU', 'AICHIP'),
            ('fpga_dfl', 'FPGA', 'NIC'),
            ('fpga_region', 'FPGA', 'GPU'),
            ('xrt', 'FPGA', 'SSD'),
        ):
            self.assert_refused(
                f'"type": "{type_}"',
                f'the driver {driver} is for {kind}',
                address='0000:3d:00.0',
                driver=driver,
                type=type_,
            )

    def test_a_device_that_the_driver_is_not_for(self) -> None:
        self.assert_refused(
            '10de:2235 (A40) has the type GPU',
            'the driver nvme is for SSD',
            vendor_id='10DE',
            product_id='2235',
            driver='nvme',
        )

    def test_a_device_of_another_type(self) -> None:
        self.assert_refused(
            '"type": "GPU"',
            '8086:37c9',
            'has the type QAT',
            'catalogue_file',
            vendor_id='8086',
            product_id='37c9',
            driver='pci',
            type='GPU',
        )

    def test_what_may_be(self) -> None:
        for line in (
            {'vendor_id': '10de', 'driver': 'nvidia_gpu', 'type': 'VGPU'},
            {'vendor_id': '10de', 'product_id': '2235', 'driver': 'mdev'},
            {
                'vendor_id': '10de',
                'product_id': '2235',
                'driver': 'nvidia_vfio',
                'type': 'GPU',
            },
            # No driver says what it is, nor does the catalogue.
            {'vendor_id': 'beef', 'driver': 'pci', 'type': 'NIC'},
            # Which product it is, is not known yet.
            {'vendor_id': '10de', 'driver': 'nvme'},
        ):
            self.read(**line)

    def test_a_driver_that_cannot_be_loaded(self) -> None:
        """It costs only its own devices."""

        def fail(_point: Any) -> Any:
            raise exceptions.DeviceError('its entry point is broken')

        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.drivers.loading._class', fail)
        )
        self.read(address='3d:00.0', driver='nvme', type='GPU')
        self.assertEqual({None}, set(loading.kinds().values()))
