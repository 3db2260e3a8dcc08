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

import hypothesis
from hypothesis import strategies as st
import testtools

from nova_accel.model import bounds
from nova_accel.model import report_parts


class TestSplit(testtools.TestCase):
    @hypothesis.given(
        st.lists(st.integers(0, report_parts.MAX_BYTES + 1), max_size=12)
    )
    def test_each_device_once_in_its_order(self, lengths):
        devices = [
            {'uuid': f'{number}', 'name': 'x' * length}
            for number, length in enumerate(lengths)
        ]
        parts = report_parts.split(devices)
        self.assertEqual(devices, [each for part in parts for each in part])
        for part in parts:
            if len(part) > 1:
                self.assertLessEqual(
                    sum(len(json.dumps(each)) for each in part),
                    report_parts.MAX_BYTES,
                )
        for part in parts[1:]:
            self.assertNotEqual([], part)

    def test_no_more_than_one_request_may_have(self):
        devices = [
            {'uuid': f'{number}'}
            for number in range(2 * bounds.MAX_DEVICES_OF_PART + 1)
        ]
        self.assertEqual(
            [bounds.MAX_DEVICES_OF_PART, bounds.MAX_DEVICES_OF_PART, 1],
            list(map(len, report_parts.split(devices))),
        )

    def test_what_fits_is_one(self):
        self.assertEqual([[]], report_parts.split([]))
        self.assertEqual(1, len(report_parts.split([{}] * 9)))
