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

from nova_accel.model import host_orders

UUIDS = st.frozensets(st.uuids().map(str), max_size=4)


class TestOrders(testtools.TestCase):
    @hypothesis.given(
        st.builds(
            host_orders.Orders,
            st.integers(0, 2**63 - 1),
            UUIDS,
            UUIDS,
            st.dictionaries(st.uuids().map(str), st.uuids().map(str)),
            st.booleans(),
        )
    )
    def test_the_same_comes_back(self, told):
        self.assertEqual(
            told,
            host_orders.from_dict(json.loads(json.dumps(told.to_dict()))),
        )
