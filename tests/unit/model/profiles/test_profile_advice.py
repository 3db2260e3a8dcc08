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

import testtools

from nova_accel import exceptions
from nova_accel.model import naming
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import profile_advice

_REPORTED = {'FPGA': {'CUSTOM_A', 'CUSTOM_B'}, 'VGPU': {'CUSTOM_V'}}


class TestCheckClasses(testtools.TestCase):
    def check(self, *classes: str) -> None:
        profile_advice.check_classes(
            [
                device_profile.Group({'FPGA': 1}),
                device_profile.Group(dict.fromkeys(classes, 1)),
            ],
            {frozenset({'FPGA', 'VGPU'}), frozenset({'PGPU'})},
        )

    def test_together(self) -> None:
        self.check('FPGA', 'VGPU')
        self.check('PGPU')

    def test_what_no_one_reports_may_come(self) -> None:
        self.check('FPGA', 'CUSTOM_NIC')

    def test_apart(self) -> None:
        error = self.assertRaises(
            exceptions.Conflict, self.check, 'PGPU', 'FPGA'
        )
        self.assertEqual(
            'group 1 asks for FPGA and PGPU, and no device has them together: '
            'make one group for each',
            str(error),
        )


class TestDoubts(testtools.TestCase):
    def doubts(self, *groups: device_profile.Group) -> list[str]:
        return list(profile_advice.doubts(groups, _REPORTED))

    def test_none(self) -> None:
        self.assertEqual(
            [],
            self.doubts(
                device_profile.Group(
                    {'FPGA': 9},
                    frozenset({'CUSTOM_A', naming.OWNERSHIP_TRAIT}),
                    # No one has it: that is what is wanted.
                    frozenset({'CUSTOM_X'}),
                )
            ),
        )

    def test_each_with_its_group(self) -> None:
        trait, other_class, unknown = self.doubts(
            device_profile.Group({'FPGA': 1}),
            device_profile.Group(
                {'VGPU': 1}, frozenset({'CUSTOM_A', 'CUSTOM_V'})
            ),
            device_profile.Group({'QTA': 1}, frozenset({'CUSTOM_A'})),
            device_profile.Group({'FPGA': 1, 'PGPU': 1}),
        )
        self.assertIn('VGPU with CUSTOM_A, which group 1 requires', trait)
        self.assertIn('QTA, which group 2 asks for', other_class)
        self.assertIn('PGPU, which group 3 asks for', unknown)
