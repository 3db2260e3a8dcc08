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


from collections.abc import Sequence
import datetime
from typing import Any

import testtools

from nova_accel.model.profiles import device_profile
from nova_accel.model.units import known_deployables
from nova_accel.model.units import unit_changes
from unit.model.units import test_known_units

NOW = datetime.datetime(2026, 11, 23, tzinfo=datetime.UTC)

deployable = test_known_units.deployable


class TestKnownDeployables(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.known = known_deployables.KnownDeployables()
        self.apply(
            is_all=True,
            one=[deployable(), deployable(uuid='b', free=2)],
            two=[deployable('two', 'c', free=0)],
        )

    def apply(
        self,
        *others: unit_changes.ChangedDeployable,
        is_all: bool = False,
        **of_hosts: Sequence[unit_changes.ChangedDeployable],
    ) -> known_deployables.Touched:
        return self.known.apply(
            unit_changes.Changes(NOW, is_all, of_hosts, others, frozenset())
        )

    def uuids(self, found: Any) -> set[str]:
        return {each.uuid for each in found}

    def test_where_they_are(self) -> None:
        self.assertEqual({'a', 'b', 'c'}, self.uuids(self.known.all))
        self.assertEqual({'a', 'b'}, self.uuids(self.known.of_host('one')))
        self.assertEqual({'c'}, self.uuids(self.known.of_provider('rp-c')))
        self.assertEqual(set(), self.uuids(self.known.of_host('three')))
        self.assertEqual(set(), self.uuids(self.known.of_provider('rp')))

    def test_what_is_free(self) -> None:
        group = device_profile.Group({'FPGA': 1})
        self.assertEqual(['one'], list(self.known.free.hosts([group])))
        self.assertEqual(2, self.known.sizes.largest(group))

    def test_what_a_change_touches(self) -> None:
        touched = self.apply(deployable(uuid='b', free=1))
        self.assertEqual(
            ({'rp-b'}, {'one'}, [('rp-b', 'FPGA', 1)]), tuple(touched)
        )
        # The same again is no change.
        self.assertEqual(
            (set(), set(), []), tuple(self.apply(deployable(uuid='b', free=1)))
        )

    def test_one_that_goes_to_another_provider(self) -> None:
        touched = self.apply(one=[deployable(rp_uuid='pool')])
        self.assertEqual({'rp-a', 'rp-b', 'pool'}, touched.rp_uuids)
        self.assertEqual({'a'}, self.uuids(self.known.of_host('one')))
        self.assertEqual({'a'}, self.uuids(self.known.of_provider('pool')))
        self.assertEqual(set(), self.uuids(self.known.of_provider('rp-a')))

    def test_a_host_that_is_gone(self) -> None:
        touched = self.apply(is_all=True, two=[deployable('two', 'c', free=0)])
        self.assertEqual({'one'}, touched.hostnames)
        self.assertEqual({'c'}, self.uuids(self.known.all))
