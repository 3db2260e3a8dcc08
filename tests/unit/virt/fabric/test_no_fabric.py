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

import inspect

import testtools

from nova_accel.virt.fabric import guest_partitions
from nova_accel.virt.fabric import no_fabric


class TestNoFabric(testtools.TestCase):
    def test_nothing_is_looked_at(self):
        fabric = no_fabric.NoFabric()
        # An instance without a name, and ARQs that are none.
        fabric.ready(None, None)
        fabric.let_go(None)
        self.assertFalse(fabric.has(None))
        fabric.confirm(None)
        with fabric.during(None) as nothing:
            self.assertIsNone(nothing)
        self.assertEqual((), fabric.partitions())
        for call in (fabric.begin, fabric.repair, fabric.watch, fabric.end):
            self.assertIsNone(call())

    def test_all_is_done_where_there_is_one(self):
        for name, method in inspect.getmembers(
            no_fabric.NoFabric, inspect.isfunction
        ):
            self.assertIsNot(
                method, getattr(guest_partitions.GuestPartitions, name)
            )
