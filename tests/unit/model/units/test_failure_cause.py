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

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel.model.units import failure_cause

_Programming = failure_cause.Programming
_Binding = failure_cause.BindingCause


class CauseTest(testtools.TestCase):
    def test_programming(self) -> None:
        for failure, cause in (
            (failure_cause.INTERRUPTED, _Programming.INTERRUPTED),
            (f'region0 of pci: {failure_cause.NO_TIME}', _Programming.NO_TIME),
            ('bitstream 8a1 is truncated: 1 of 2 bytes came', 'bitstream'),
            ('Glance does not have image 8a1', 'bitstream'),
            ('fpgaconf: Input/output error', 'device'),
            ('', 'device'),
        ):
            self.assertEqual(cause, failure_cause.of_programming(failure))

    def test_binding(self) -> None:
        for reason, cause in (
            ('host c1 has not reported for 180 s', _Binding.HOST_SILENT),
            ('1 of 2 units are free', _Binding.NO_FREE_UNIT),
            (None, _Binding.NO_FREE_UNIT),
        ):
            self.assertEqual(cause, failure_cause.of_binding(reason))

    @given(st.text())
    def test_any_text_has_one(self, text: str) -> None:
        self.assertIn(failure_cause.of_programming(text), _Programming)
        self.assertIn(failure_cause.of_binding(text), _Binding)
