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

import hypothesis
from hypothesis import strategies
from nova import objects
from nova.scheduler import utils
import testtools

from nova_accel.model import naming
from nova_accel.model.profiles import device_profile
from nova_accel.scheduler import our_group
from nova_accel.testing import scheduling

objects.register_all()

UUID = '5ad1a2c4-bf0c-4b2e-a5b0-1d3fb5d5ba6a'
TRAITS = strategies.frozensets(
    strategies.sampled_from(['CUSTOM_A', 'CUSTOM_B', 'CUSTOM_C'])
)
GROUPS = strategies.builds(
    device_profile.Group,
    resources=strategies.dictionaries(
        strategies.sampled_from(['FPGA', 'PGPU', 'CUSTOM_QAT']),
        strategies.integers(1, 64),
        min_size=1,
    ),
    required=TRAITS,
    forbidden=TRAITS,
)


def of_nova(group, *traits):
    """The same request group, made by Nova's own class."""
    return objects.RequestGroup(
        requester_id='device_profile_0',
        resources=dict(group.resources),
        required_traits={*group.required, naming.OWNERSHIP_TRAIT, *traits},
        forbidden_traits=set(group.forbidden),
    )


def change(request_group):
    """Change all that can be changed in place."""
    request_group.resources['FPGA'] = 0
    request_group.strip_zeros()
    request_group.add_resource('VGPU', 1)
    for name in request_group.fields:
        value = getattr(request_group, name)
        if isinstance(value, set):
            value.add('CUSTOM_CHANGED')
        elif isinstance(value, list):
            value.append([] if name == 'aggregates' else UUID)
    request_group.in_tree = UUID


class TestOurGroup(testtools.TestCase):
    @hypothesis.given(GROUPS, TRAITS)
    def test_nova_cannot_tell_it_from_its_own(self, group, further):
        made = our_group.make('device_profile_0', group, further)
        own = of_nova(group, *further)
        self.assertIsInstance(made, objects.RequestGroup)
        self.assertEqual(own.to_queryparams(), made.to_queryparams())
        self.assertEqual(own.is_empty(), made.is_empty())
        for name in own.fields:
            self.assertEqual(getattr(own, name), getattr(made, name))

    @hypothesis.given(GROUPS)
    def test_requests_of_a_profile_share_nothing(self, group):
        first = our_group.make('device_profile_0', group)
        before = repr(group)
        own = of_nova(group).to_queryparams()
        for one in (first.copy(), our_group.make('device_profile_0', group)):
            change(one)
            for other in (
                first,
                first.copy(),
                our_group.make('device_profile_0', group),
            ):
                self.assertEqual(own, other.to_queryparams())
                self.assertEqual([], other.copy().provider_uuids)
        self.assertEqual(before, repr(group))

    @hypothesis.given(GROUPS, TRAITS)
    def test_a_copy_is_the_same(self, group, further):
        made = our_group.make('device_profile_0', group, further)
        copied = made.copy()
        self.assertIs(type(made), type(copied))
        self.assertIs(group, our_group.to_group(copied))
        self.assertEqual(made.obj_get_changes(), copied.obj_get_changes())

    def test_nova_keeps_and_clones_it(self):
        group = device_profile.Group({'FPGA': 2}, frozenset({'CUSTOM_A'}))
        spec = scheduling.request_spec(
            groups=[our_group.make('device_profile_0', group)]
        )
        [cloned] = spec.obj_clone().requested_resources
        for found in (spec, spec.obj_clone()):
            [kept] = found.requested_resources
            self.assertEqual('RequestGroup', kept.obj_name())
            self.assertEqual(
                of_nova(group).to_queryparams(), kept.to_queryparams()
            )
        request = utils.ResourceRequest.from_request_groups(
            [cloned], objects.RequestLevelParams(), 'none'
        )
        self.assertIn('requireddevice_profile_0', request.to_querystring())


class TestAsked(testtools.TestCase):
    def test_what_a_request_group_is_made_of(self):
        group = device_profile.Group({'FPGA': 2}, properties={'a': 'b'})
        self.assertIs(group, our_group.to_group(our_group.make('id', group)))

    def test_one_that_somebody_else_has_made(self):
        group = device_profile.Group(
            {'FPGA': 2}, frozenset({'CUSTOM_A'}), frozenset({'CUSTOM_B'})
        )
        self.assertEqual(group, our_group.to_group(of_nova(group)))


class TestShares(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.group = device_profile.Group({'CUSTOM_SHAPE_WHOLE': 1})

    def test_what_is_asked_of_a_card(self):
        made = our_group.make('id', self.group, share=9)
        self.assertEqual(
            {'CUSTOM_SHAPE_WHOLE': 1, 'CUSTOM_CARD_SHARE': 9}, made.resources
        )
        self.assertEqual({'CUSTOM_SHAPE_WHOLE': 1}, self.group.resources)
        self.assertEqual(
            {'CUSTOM_SHAPE_WHOLE': 1},
            our_group.make('id', self.group).resources,
        )

    def test_a_share_is_no_unit(self):
        made = our_group.make('id', self.group, share=9)
        self.assertEqual({'CUSTOM_SHAPE_WHOLE': 1}, our_group.units_of(made))
        self.assertEqual(
            {'CUSTOM_SHAPE_WHOLE': 1, 'CUSTOM_CARD_SHARE': 9}, made.resources
        )
        # As Nova makes it of a request that was stored.
        own = objects.RequestGroup(
            requester_id='id',
            resources=dict(made.resources),
            required_traits={naming.OWNERSHIP_TRAIT},
        )
        self.assertEqual(self.group, our_group.to_group(own))
