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

import dataclasses

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.model import naming
from nova_accel.model.cards import card_slice
from nova_accel.model.profiles import device_profile
from nova_accel.scheduler import profile_groups
from nova_accel.scheduler import set_group
from nova_accel.testing import hgx_host
from nova_accel.testing import reports
from rig import quick_database
from rig.loopback import board_host


def a_group(*required, **resources):
    return device_profile.Group(resources, frozenset(required))


def joined(link, *required, **resources):
    return dataclasses.replace(a_group(*required, **resources), link=link)


def of_groups(asked):
    return [(group.requester_id, group.group) for group in asked.groups]


class TestWhole(testtools.TestCase):
    def test_ids(self):
        groups = [a_group(FPGA=64), a_group(VGPU=1)]
        self.assertEqual(
            [('device_profile_0', groups[0]), ('device_profile_1', groups[1])],
            of_groups(profile_groups.whole(groups)),
        )
        self.assertEqual(
            ['device_profile_0port', 'device_profile_1port'],
            [
                group.requester_id
                for group in profile_groups.whole(groups, 'port').groups
            ],
        )


class TestJoined(testtools.TestCase):
    """A host with an NVSwitch board, and one without links."""

    def setUp(self):
        super().setUp()
        self.useFixture(quick_database.QuickDatabase())
        board_host.BoardHost('board').report()
        reports.SimulatedHost(functions=8).report()

    def test_a_pool_is_the_set(self):
        group = joined('nvlink', PGPU=2)
        self.assertEqual(
            profile_groups.Asked(
                [
                    profile_groups.AskedGroup(
                        'device_profile_0', group, 'CUSTOM_NOVA_ACCEL_NVLINK_2'
                    )
                ],
                [],
            ),
            profile_groups.placeable([group]),
        )

    def test_a_set_of_several_pools(self):
        asked = profile_groups.placeable(
            [a_group(CUSTOM_QAT=1), joined('nvlink', PGPU=4)]
        )
        part = joined('nvlink', PGPU=2)
        self.assertEqual(
            [
                ('device_profile_0', a_group(CUSTOM_QAT=1)),
                ('device_profile_1_0', part),
                ('device_profile_1_1', part),
            ],
            of_groups(asked),
        )
        self.assertEqual([None] * 3, [each.trait for each in asked.groups])
        self.assertEqual(
            [
                profile_groups.AskedSet(
                    'device_profile_1_set',
                    'CUSTOM_NOVA_ACCEL_NVLINK_4',
                    ('device_profile_1_0', 'device_profile_1_1'),
                )
            ],
            asked.sets,
        )
        self.assertEqual(
            {
                'CUSTOM_NOVA_ACCEL_NVLINK_4': (
                    'device_profile_1_0',
                    'device_profile_1_1',
                )
            },
            asked.link_traits,
        )

    def test_each_request_has_its_own_groups(self):
        asked = profile_groups.placeable(
            [a_group(CUSTOM_QAT=1), joined('nvlink', PGPU=4)]
        )
        [one, other] = (asked.request_groups() for _request in range(2))
        self.assertEqual(
            [
                'device_profile_0',
                'device_profile_1_0',
                'device_profile_1_1',
                'device_profile_1_set',
            ],
            [group.requester_id for group in one],
        )
        self.assertIsInstance(one[3], set_group.SetGroup)
        self.assertEqual(
            {'CUSTOM_NOVA_ACCEL_NVLINK_4', naming.OWNERSHIP_TRAIT},
            one[3].required_traits,
        )
        before = [group.to_queryparams() for group in other]
        for group in one:
            group.resources['FPGA'] = 1
            group.required_traits.add('CUSTOM_CHANGED')
        self.assertEqual(before, [group.to_queryparams() for group in other])

    def test_gpu_and_network_card(self):
        groups = [joined('pcie', PGPU=1), joined('pcie', CUSTOM_NIC=1)]
        for asked, port in (
            (profile_groups.placeable(groups), ''),
            (profile_groups.whole(groups), ''),
            (profile_groups.whole(groups, 'port'), 'port'),
        ):
            ids = [f'device_profile_{index}{port}' for index in range(2)]
            self.assertEqual(
                list(zip(ids, groups, strict=True)), of_groups(asked)
            )
            self.assertEqual(
                [
                    profile_groups.AskedSet(
                        f'device_profile_0_set{port}',
                        'CUSTOM_NOVA_ACCEL_PCIE_2',
                        tuple(ids),
                    )
                ],
                asked.sets,
            )

    def test_pools_without_that_link_do_not_count(self):
        """Also where they are larger."""
        board_host.BoardHost(
            'other', module_ids=hgx_host.PAIRS_ACROSS_SWITCHES
        ).report()
        self.assertEqual(
            [4],
            [
                sum(group.resources.values())
                for _id, group in of_groups(
                    profile_groups.placeable([joined('nvlink', CUSTOM_QAT=4)])
                )
            ],
        )

    def test_a_size_that_nothing_joins(self):
        """Placement may know it."""
        group = joined('nvlink', PGPU=6)
        asked = profile_groups.placeable([group])
        self.assertEqual([('device_profile_0', group)], of_groups(asked))
        self.assertEqual(
            ['CUSTOM_NOVA_ACCEL_NVLINK_6'], list(asked.link_traits)
        )

    def test_cyborgs_client_knows_no_parts(self):
        error = self.assertRaises(
            exceptions.NotFound,
            profile_groups.whole,
            [joined('nvlink', PGPU=4)],
        )
        self.assertIn('PGPU=4 joined by NVLink', str(error))
        self.assertIn('nova_accel:device_profile', str(error))


class TestPlaceable(testtools.TestCase):
    """A host has a pool of three, and two FPGAs of one region each."""

    def setUp(self):
        super().setUp()
        self.useFixture(quick_database.QuickDatabase())
        reports.SimulatedHost(regions=(1, 1), functions=3).report()

    def asked(self, *groups):
        return of_groups(profile_groups.placeable(groups))

    def test_what_fits_is_whole(self):
        groups = [a_group(CUSTOM_QAT=3), a_group(FPGA=1)]
        self.assertEqual(
            [('device_profile_0', groups[0]), ('device_profile_1', groups[1])],
            self.asked(*groups),
        )

    def test_parts(self):
        trait = 'CUSTOM_NOVA_ACCEL'
        self.assertEqual(
            [
                ('device_profile_0', a_group(CUSTOM_QAT=1)),
                ('device_profile_1_0', a_group(trait, CUSTOM_QAT=3)),
                ('device_profile_1_1', a_group(trait, CUSTOM_QAT=2)),
                ('device_profile_2', a_group(FPGA=1)),
            ],
            self.asked(
                a_group(CUSTOM_QAT=1),
                a_group(trait, CUSTOM_QAT=5),
                a_group(FPGA=1),
            ),
        )

    def test_too_large(self):
        error = self.assertRaises(
            exceptions.NotFound,
            self.asked,
            a_group(FPGA=1),
            a_group(FPGA=2),
        )
        self.assertIn('FPGA=2, which group 1 asks for', str(error))

    def test_a_larger_pool_was_just_reported(self):
        group = a_group(CUSTOM_QAT=5)
        self.assertEqual(2, len(self.asked(group)))
        reports.SimulatedHost('compute-2', functions=5).report()
        self.assertEqual([('device_profile_0', group)], self.asked(group))

    def test_no_size_is_known(self):
        """Placement may know a trait that hosts do not report."""
        for group in (
            a_group('CUSTOM_RACK_7', CUSTOM_QAT=5),
            a_group(PGPU=5),
            a_group(CUSTOM_QAT=5, FPGA=1),
        ):
            self.assertEqual([('device_profile_0', group)], self.asked(group))

    def test_the_database_gives_no_answer(self):
        self.useFixture(fixtures.FakeLogger())
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.scheduler.known_stock.current',
                lambda max_age_s: None,
            )
        )
        group = a_group(CUSTOM_QAT=5)
        self.assertEqual([('device_profile_0', group)], self.asked(group))


class TestShapes(testtools.TestCase):
    """Hosts whose cards are whole, or two halves, or seven eighths."""

    WHOLE = card_slice.WHOLE_CARD

    def setUp(self):
        super().setUp()
        self.useFixture(quick_database.QuickDatabase())
        reports.SimulatedHost(regions=(), cards=1, functions=1).report()

    def groups(self, *shapes, **more):
        return device_profile.parse_groups(
            [{'accel:shape': shape, **more} for shape in shapes]
        )

    def test_units_take_a_share_of_their_card(self):
        groups = [
            *self.groups(reports.WHOLE, reports.HALF, reports.EIGHTH),
            a_group(CUSTOM_QAT=1),
        ]
        for asked in (
            profile_groups.placeable(groups),
            profile_groups.whole(groups),
        ):
            self.assertEqual(
                [self.WHOLE, self.WHOLE // 2, self.WHOLE // 8, 0],
                [each.share for each in asked.groups],
            )
            self.assertEqual(
                [
                    {
                        'CUSTOM_SHAPE_WHOLE': 1,
                        'CUSTOM_CARD_SHARE': self.WHOLE,
                    },
                    {
                        'CUSTOM_SHAPE_MIG_3G_40GB': 1,
                        'CUSTOM_CARD_SHARE': self.WHOLE // 2,
                    },
                    {
                        'CUSTOM_SHAPE_MIG_1G_10GB': 1,
                        'CUSTOM_CARD_SHARE': self.WHOLE // 8,
                    },
                    {'CUSTOM_QAT': 1},
                ],
                [group.resources for group in asked.request_groups()],
            )

    def test_several_units_take_several_shares(self):
        groups = self.groups(
            reports.HALF, **{'resources:CUSTOM_SHAPE_MIG_3G_40GB': '2'}
        )
        for asked in (
            profile_groups.placeable(groups),
            profile_groups.whole(groups),
        ):
            self.assertEqual(
                [self.WHOLE], [each.share for each in asked.groups]
            )

    def test_parts_on_several_cards(self):
        """Each part takes the share of its own units."""
        reports.SimulatedHost(regions=(), cards=2).report()
        asked = profile_groups.placeable(
            self.groups(
                reports.HALF, **{'resources:CUSTOM_SHAPE_MIG_3G_40GB': '3'}
            )
        )
        self.assertEqual(
            [(2, self.WHOLE), (1, self.WHOLE // 2)],
            [
                (sum(each.group.resources.values()), each.share)
                for each in asked.groups
            ],
        )

    def test_a_shape_that_no_card_can_take(self):
        for call in (profile_groups.placeable, profile_groups.whole):
            error = self.assertRaises(
                exceptions.NotFound, call, self.groups('mig:7g.80gb')
            )
            self.assertEqual(
                'no host has a card that can be CUSTOM_SHAPE_MIG_7G_80GB, '
                'with the traits that the group requires',
                error.public,
            )

    def test_a_shape_of_a_card_with_other_traits(self):
        self.assertRaises(
            exceptions.NotFound,
            profile_groups.placeable,
            self.groups(reports.HALF, **{'trait:CUSTOM_B': 'required'}),
        )

    def test_a_card_that_was_just_reported(self):
        groups = self.groups(reports.HALF)
        reports.SimulatedHost().report()
        self.assertRaises(
            exceptions.NotFound, profile_groups.placeable, groups
        )
        reports.SimulatedHost('compute-2', cards=1).report()
        [asked] = profile_groups.placeable(groups).groups
        self.assertEqual(self.WHOLE // 2, asked.share)

    def test_the_database_gives_no_answer(self):
        """That is no shape that no card can take."""
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.scheduler.known_stock.current',
                lambda max_age_s: None,
            )
        )
        self.assertRaises(
            exceptions.ServiceUnavailable,
            profile_groups.placeable,
            self.groups(reports.HALF),
        )
