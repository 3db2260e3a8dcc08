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

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.model import device_profile
from nova_accel.scheduler import asked_parts
from nova_accel.testing import database
from nova_accel.testing import reports


def a_group(*required, **resources):
    return device_profile.Group(resources, frozenset(required))


class TestWhole(testtools.TestCase):
    def test_ids(self):
        groups = [a_group(FPGA=64), a_group(VGPU=1)]
        self.assertEqual(
            [('device_profile_0', groups[0]), ('device_profile_1', groups[1])],
            list(asked_parts.whole(groups)),
        )
        self.assertEqual(
            ['device_profile_0port', 'device_profile_1port'],
            [id_ for id_, _group in asked_parts.whole(groups, 'port')],
        )


class TestPlaceable(testtools.TestCase):
    """A host has a pool of three, and two FPGAs of one region each."""

    def setUp(self):
        super().setUp()
        self.useFixture(database.Database())
        reports.SimulatedHost(regions=(1, 1), functions=3).report()

    def asked(self, *groups):
        return list(asked_parts.placeable(groups))

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
