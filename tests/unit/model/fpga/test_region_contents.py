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

import testtools

from nova_accel.model import naming
from nova_accel.model.devices import programmable
from nova_accel.model.fpga import region_contents
from unit.virt.fpga import fpga_card

DEVICE = dataclasses.replace(fpga_card.DEVICE, attributes={'link': 'x8'})
CONTENTS = programmable.Contents(
    '7a0b9d2e-0b5a-4d59-9d3b-3a1b8f0a5c11',
    'sha',
    'text',
    (fpga_card.FUNCTION,),
    owner=None,
)
GOOD = region_contents.KnownContents(CONTENTS)
BAD = region_contents.KnownContents(fault='CRC error')
OWN_TRAIT = fpga_card.FUNCTION_TRAIT.replace('1111_', '2222_', 1)


def overlaid(device=DEVICE, **known):
    return region_contents.overlaid(device, known)


UNCLEAN = region_contents.Unclean('project', 'why')


class TestIsOperators(testtools.TestCase):
    def test_whose_image_is_or_was_in_the_region(self):
        of_project = dataclasses.replace(CONTENTS, owner='project')
        for known, is_operators in (
            ({}, True),
            ({'is_changing': True}, False),
            ({'unclean': UNCLEAN}, False),
            ({'contents': CONTENTS}, True),
            ({'contents': CONTENTS, 'unclean': UNCLEAN}, True),
            ({'contents': of_project}, False),
        ):
            self.assertIs(
                is_operators,
                region_contents.KnownContents(**known).is_operators,
                known,
            )


class TestUncleanFor(testtools.TestCase):
    def unclean_for(self, project_id, owner):
        return region_contents.KnownContents(
            CONTENTS, unclean=region_contents.Unclean(owner, 'why')
        ).unclean_for(project_id)

    def test_who_owns_it_gets_it(self):
        self.assertIsNone(self.unclean_for('project', 'project'))

    def test_nobody_else_does(self):
        for project_id in ('another', '', None):
            self.assertEqual('why', self.unclean_for(project_id, 'project'))

    def test_of_nobody_nobody_does(self):
        for project_id in ('project', programmable.UNKNOWN_OWNER, None):
            self.assertEqual(
                'why', self.unclean_for(project_id, programmable.UNKNOWN_OWNER)
            )

    def test_what_is_clean_everybody_gets(self):
        for project_id in ('project', '', None):
            self.assertIsNone(GOOD.unclean_for(project_id))


class TestOverlaid(testtools.TestCase):
    def test_nothing_is_known(self):
        self.assertIs(DEVICE, overlaid())
        unknown = region_contents.KnownContents()
        self.assertEqual(DEVICE, overlaid(region0=unknown, region1=unknown))

    def test_all_deployables_of_a_region_have_what_it_holds(self):
        found = overlaid(region1=GOOD)
        self.assertEqual(DEVICE.deployables[0], found.deployables[0])
        for deployable in found.deployables[1:]:
            self.assertEqual(CONTENTS.bitstream_id, deployable.bitstream_id)
            self.assertIn(fpga_card.FUNCTION_TRAIT, deployable.traits)
            self.assertIn('CUSTOM_FPGA_INTEL_PAC', deployable.traits)

    def test_a_device_that_says_what_it_does_is_believed(self):
        one = DEVICE.deployables[0]
        device = dataclasses.replace(
            DEVICE,
            deployables=(
                dataclasses.replace(one, traits=one.traits | {OWN_TRAIT}),
            ),
        )
        (found,) = overlaid(device, region0=GOOD).deployables
        self.assertEqual(
            frozenset({OWN_TRAIT}),
            region_contents.function_traits(found.traits),
        )
        self.assertEqual(CONTENTS.bitstream_id, found.bitstream_id)

    def test_a_projects_circuit_is_not_believed(self):
        """Neither what its image says nor what it says of itself."""
        one = DEVICE.deployables[0]
        operators = OWN_TRAIT.replace('2222_', '3333_', 1)
        device = dataclasses.replace(
            DEVICE,
            operator_traits=frozenset({operators}),
            deployables=(
                dataclasses.replace(
                    one, traits=one.traits | {OWN_TRAIT, operators}
                ),
            ),
        )
        for known in (
            region_contents.KnownContents(
                dataclasses.replace(CONTENTS, owner='project')
            ),
            region_contents.KnownContents(
                dataclasses.replace(CONTENTS, owner=programmable.UNKNOWN_OWNER)
            ),
            region_contents.KnownContents(is_changing=True),
        ):
            (found,) = overlaid(device, region0=known).deployables
            self.assertEqual(one.traits | {operators}, found.traits)

    def test_a_projects_functions_are_no_traits(self):
        found = overlaid(
            region0=region_contents.KnownContents(
                dataclasses.replace(CONTENTS, owner='project')
            )
        )
        self.assertEqual(
            DEVICE.deployables[0].traits, found.deployables[0].traits
        )

    def test_administrators_read_why_a_region_is_unclean(self):
        found = overlaid(
            region0=region_contents.KnownContents(CONTENTS, unclean=UNCLEAN)
        )
        self.assertEqual(
            {'link': 'x8', 'region0 is unclean': 'why'}, found.attributes
        )
        self.assertIsNone(found.fault)

    def test_a_card_that_offers_nothing_is_not_faulty_for_that(self):
        self.assertIsNone(
            overlaid(
                dataclasses.replace(DEVICE, deployables=()), region0=BAD
            ).fault
        )

    def test_no_trait_can_be_made_of_the_vendor(self):
        found = overlaid(
            dataclasses.replace(DEVICE, vendor='\u2122'), region0=GOOD
        )
        self.assertEqual(
            DEVICE.deployables[0].traits, found.deployables[0].traits
        )
        self.assertEqual(
            CONTENTS.bitstream_id, found.deployables[0].bitstream_id
        )

    def test_units_of_a_pool_are_alike(self):
        (found, *_others) = overlaid(
            dataclasses.replace(DEVICE, pooled=True), region0=GOOD
        ).deployables
        self.assertEqual(DEVICE.deployables[0].traits, found.traits)

    def test_a_bad_region_does_not_make_the_others_bad(self):
        found = overlaid(region0=GOOD, region1=BAD)
        self.assertIsNone(found.fault)
        self.assertEqual(
            [None, 'CRC error', 'CRC error'],
            [deployable.fault for deployable in found.deployables],
        )
        self.assertEqual(
            {'link': 'x8', 'fault of region1': 'CRC error'}, found.attributes
        )

    def test_a_card_without_a_good_region_is_faulty(self):
        found = overlaid(region0=BAD, region1=BAD)
        self.assertEqual('region0: CRC error; region1: CRC error', found.fault)
        hot = dataclasses.replace(DEVICE, fault='it is too hot')
        self.assertEqual(
            'it is too hot', overlaid(hot, region0=BAD, region1=BAD).fault
        )


class TestWithShell(testtools.TestCase):
    def test_what_is_known_of_the_shell(self):
        for shell, changes in (
            (region_contents.KnownContents(), {}),
            (
                GOOD,
                {
                    'attributes': {
                        'link': 'x8',
                        'shell bitstream': CONTENTS.bitstream_id,
                    }
                },
            ),
            (BAD, {'fault': 'the shell: CRC error'}),
        ):
            self.assertEqual(
                dataclasses.replace(DEVICE, **changes),
                region_contents.with_shell(DEVICE, shell),
            )


class TestRemembered(testtools.TestCase):
    """A guest has the whole card, so that the host cannot ask it."""

    TYPE = '5f6a2d0e-7c43-4b1f-9d0e-2b1c8a4e6f70'
    TRAIT = naming.region_trait('FPGA', 'Intel', TYPE)

    def setUp(self):
        super().setUp()
        one, *others = DEVICE.deployables
        self.told = dataclasses.replace(
            DEVICE,
            regions=(
                programmable.Region('region0', self.TYPE),
                programmable.Region('region1'),
            ),
            deployables=(
                dataclasses.replace(one, traits=one.traits | {self.TRAIT}),
                *others,
            ),
        )

    def remembered(self, device, before):
        return region_contents.remembered(
            device, region_contents.reported_types(before)
        )

    def test_what_it_told_before(self):
        self.assertEqual(self.told, self.remembered(DEVICE, self.told))

    def test_each_region_told_its_own(self):
        other_type = '6f6a2d0e-7c43-4b1f-9d0e-2b1c8a4e6f70'
        other_trait = naming.region_trait('FPGA', 'Intel', other_type)
        one, *others = self.told.deployables
        told = dataclasses.replace(
            self.told,
            regions=(
                programmable.Region('region0', self.TYPE),
                programmable.Region('region1', other_type),
            ),
            deployables=(
                one,
                *(
                    dataclasses.replace(
                        each, traits=each.traits | {other_trait}
                    )
                    for each in others
                ),
            ),
        )
        self.assertEqual(
            {
                'region0': region_contents.ReportedType(
                    self.TYPE, frozenset({self.TRAIT})
                ),
                'region1': region_contents.ReportedType(
                    other_type, frozenset({other_trait})
                ),
            },
            region_contents.reported_types(told),
        )
        self.assertEqual(told, self.remembered(DEVICE, told))

    def test_it_tells_another(self):
        """It was flashed meanwhile."""
        other = dataclasses.replace(
            self.told,
            regions=(
                programmable.Region('region0', OWN_TRAIT),
                programmable.Region('region1'),
            ),
        )
        self.assertIs(other, self.remembered(other, self.told))

    def test_it_never_told(self):
        for before in (DEVICE, dataclasses.replace(DEVICE, regions=())):
            self.assertIs(DEVICE, self.remembered(DEVICE, before))

    def test_an_operators_trait_is_the_operators(self):
        told = dataclasses.replace(
            self.told, operator_traits=frozenset({self.TRAIT})
        )
        self.assertEqual(
            DEVICE.deployables, self.remembered(DEVICE, told).deployables
        )
