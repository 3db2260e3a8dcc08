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
from nova import exception
from nova.api.validation.extra_specs import validators
import testtools

from nova_accel.scheduler import extra_spec_validators


class TestValidation(testtools.TestCase):
    """As Nova's flavor API does it from microversion 2.86 on."""

    def setUp(self):
        super().setUp()
        for name in ('VALIDATORS', 'NAMESPACES'):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'{validators.__name__}.{name}',
                    getattr(validators, name).copy(),
                )
            )
        for validator in extra_spec_validators.register():
            validators.VALIDATORS[validator.name] = validator
            validators.NAMESPACES.add('nova_accel')

    def test_name_of_a_profile(self):
        validators.validate('nova_accel:device_profile', 'fpga-2_small')

    def test_no_name_of_a_profile(self):
        for value in ('', 'two words', 'a/b', 'x' * 256, 'fpga\n'):
            self.assertRaises(
                exception.ValidationError,
                validators.validate,
                'nova_accel:device_profile',
                value,
            )

    def test_pci_topology(self):
        for value in ('flat', 'host'):
            validators.validate('nova_accel:pci_topology', value)
        for value in ('', 'Host', 'pci'):
            self.assertRaises(
                exception.ValidationError,
                validators.validate,
                'nova_accel:pci_topology',
                value,
            )

    def test_unknown_key(self):
        self.assertRaises(
            exception.ValidationError,
            validators.validate,
            'nova_accel:device_profiles',
            'fpga',
        )

    def test_cyborgs_key_stays(self):
        validators.validate('accel:device_profile', 'fpga')
