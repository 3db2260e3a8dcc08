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

from nova_accel.model.profiles import device_profile
from nova_accel.model.units import free_units
from nova_accel.model.units import nearness

REQUIRED = device_profile.NumaAffinity.REQUIRED
PREFERRED = device_profile.NumaAffinity.PREFERRED


def units(node, free=1):
    return free_units.FreeUnits(
        f'deployable{node}',
        'rp',
        'PGPU',
        frozenset(),
        free,
        free,
        node=free_units.node_of(node),
    )


def group(affinity, amount=1):
    return device_profile.Group({'PGPU': amount}, numa_affinity=affinity)


class TestNearness(testtools.TestCase):
    def test_far(self):
        for affinity, near, nodes, is_far in (
            (None, 0, {1}, False),
            (PREFERRED, 0, {1}, True),
            (PREFERRED, 1, {0, 1}, False),
            (PREFERRED, None, {0}, True),
            (REQUIRED, 0, set(), False),
            (REQUIRED, 0, {1}, True),
        ):
            found = group(affinity), units(near), free_units.nodes_of(nodes)
            self.assertEqual(is_far, nearness.is_far(*found))
            self.assertEqual(
                not (is_far and affinity is REQUIRED),
                nearness.may_serve(*found),
            )

    def test_excludes(self):
        pool = [units(0, 2), units(1, 1)]
        for affinity, amount, nodes, excludes in (
            (REQUIRED, 1, {1}, False),
            (REQUIRED, 2, {1}, True),
            (REQUIRED, 2, {0}, False),
            (REQUIRED, 3, {0, 1}, False),
            (PREFERRED, 2, {1}, False),
        ):
            self.assertEqual(
                excludes,
                nearness.excludes(
                    group(affinity, amount), pool, free_units.nodes_of(nodes)
                ),
            )

    def test_why_none(self):
        for pool, nodes, expected in (
            ([units(0)], {1, 2}, 'on NUMA node 1 and NUMA node 2, where'),
            ([units(0)], {1}, '0 free there; the others are on NUMA node'),
            ([units(1)], {1}, 'the others are on no other.'),
            ([units(None)], {1}, 'the others are on an unknown NUMA node.'),
            ([units(0), units(3, 0)], {1}, 'are on NUMA node 0. Let'),
        ):
            self.assertIn(
                expected, nearness.why_none(pool, free_units.nodes_of(nodes))
            )

    def test_the_cures_of_none(self):
        """A pool of all nodes, cells on all nodes, or another affinity."""
        for affinity, pool, nodes, excludes in (
            (REQUIRED, [units(0)], {1}, True),
            (REQUIRED, [units(0), units(1)], {1}, False),
            (REQUIRED, [units(0)], {0, 1}, False),
            (PREFERRED, [units(0)], {1}, False),
        ):
            self.assertEqual(
                excludes,
                nearness.excludes(
                    group(affinity), pool, free_units.nodes_of(nodes)
                ),
            )
