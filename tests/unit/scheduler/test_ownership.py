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

from nova import objects
import testtools

from nova_accel.model import naming
from nova_accel.scheduler import ownership
from nova_accel.testing import scheduling


def group(requester_id, *required, **resources):
    return objects.RequestGroup(
        requester_id=requester_id,
        resources=resources,
        required_traits=set(required),
    )


class TestGroups(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.spec = scheduling.request_spec()
        ours = group('a', naming.OWNERSHIP_TRAIT, 'CUSTOM_A', FPGA=1)
        self.spec.requested_resources = [
            ours,
            group('b', FPGA=1),
            group('c', CUSTOM_PCI_8086_37C9=1),
            group('d', NET_BW_EGR_KILOBIT_PER_SEC=1000),
        ]

    def test_ours(self):
        self.assertEqual(
            ['a'],
            [found.requester_id for found in ownership.our_groups(self.spec)],
        )

    def test_exposed(self):
        self.assertEqual(
            ['b', 'c'],
            [
                found.requester_id
                for found in ownership.exposed_groups(self.spec)
            ],
        )

    def test_sets(self):
        self.spec.requested_resources.append(
            group('a_set', naming.OWNERSHIP_TRAIT, 'CUSTOM_A')
        )
        self.assertEqual(
            ['a_set'],
            [found.requester_id for found in ownership.our_sets(self.spec)],
        )
        self.test_ours()
        self.test_exposed()

    def test_no_groups(self):
        self.spec.requested_resources = None
        self.assertEqual([], ownership.our_groups(self.spec))
        self.assertEqual([], ownership.exposed_groups(self.spec))


class TestExposedSuffixes(testtools.TestCase):
    def _test(self, expected, extra_specs):
        parts = ownership.flavor_parts(extra_specs)
        self.assertEqual(expected, [*ownership.exposed_of_flavor(parts)])

    def test_every_class_of_ours(self):
        for resource_class in naming.RESOURCE_CLASSES.values():
            self._test([''], {f'resources:{resource_class}': '1'})
            self._test(['1'], {f'resources1:{resource_class}': '1'})

    def test_class_of_an_operator(self):
        self._test(['_x'], {'resources_x:CUSTOM_ANYTHING': '2'})

    def test_several(self):
        self._test(
            ['1', '', '2'],
            {
                'resources1:FPGA': '1',
                'resources:VGPU': '1',
                'resources2:VGPU': '1',
                'trait1:CUSTOM_A': 'required',
                'resources3:VCPU': '1',
            },
        )

    def test_plain(self):
        self._test([], {})
        self._test(
            [],
            {
                'resources:VCPU': '2',
                'trait:HW_CPU_X86_AVX': 'required',
                'hw:cpu_policy': 'dedicated',
            },
        )

    def test_nothing_of_it(self):
        """A trait would keep Nova from dropping the empty group."""
        self._test([], {'resources1:VGPU': '0'})
        self._test([], {'resources1:VGPU': 'many'})
        self._test([], {'resources1:NO_SUCH_CLASS': '1'})


class TestAddExtraSpecs(testtools.TestCase):
    def test_the_callers_flavor_stays(self):
        spec = scheduling.request_spec({'hw:a': 'b'})
        flavor = spec.flavor
        ownership.add_extra_specs(spec, {'trait:CUSTOM_A': 'forbidden'})
        self.assertEqual(
            {'hw:a': 'b', 'trait:CUSTOM_A': 'forbidden'},
            spec.flavor.extra_specs,
        )
        self.assertEqual({'hw:a': 'b'}, flavor.extra_specs)

    def test_nothing_to_save(self):
        spec = scheduling.request_spec()
        ownership.add_extra_specs(spec, {'trait:CUSTOM_A': 'forbidden'})
        self.assertEqual({}, spec.obj_get_changes())
