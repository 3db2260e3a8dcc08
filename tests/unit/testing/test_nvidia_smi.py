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

from nova_accel.testing import fake_sysfs
from nova_accel.testing import nvidia_cards
from nova_accel.testing import nvidia_smi

ADDRESS = '0000:3d:00.0'


class TestNvidiaSmi(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.card = nvidia_cards.Card(ADDRESS, ['0000:3d:00.4'])
        sysfs = self.useFixture(fake_sysfs.FakeSysfs())
        self.tool = self.useFixture(nvidia_smi.NvidiaSmi(sysfs, [self.card]))

    def smi(self, *arguments):
        return self.tool.answer(['-i', ADDRESS, *arguments])

    def test_the_mode(self):
        self.assertEqual(
            (6, 'No MIG-enabled devices found.\n'), self.smi('mig', '-lgi')
        )
        self.assertEqual(
            (0, 'Enabled MIG Mode for GPU 00000000:3D:00.0\nAll done.\n'),
            self.smi('-mig', '1'),
        )
        self.assertEqual(
            (6, 'No GPU instances found: Not Found\n'), self.smi('mig', '-lgi')
        )
        self.smi('mig', '-cgi', '9:4', '-C')
        status, text = self.smi('-mig', '0')
        self.assertEqual(19, status)
        self.assertIn('Unable to disable MIG Mode for GPU', text)

    def test_another_card(self):
        self.assertEqual(
            (6, 'No devices were found\n'),
            self.tool.answer(['-i', '0000:99:00.0', '-mig', '1']),
        )

    def test_creating(self):
        self.card.is_on = True
        self.assertEqual(
            (
                0,
                'Successfully created GPU instance ID  0 on GPU  0 using '
                'profile MIG 3g.40gb (ID  9)\nSuccessfully created compute '
                'instance ID  0 on GPU  0 GPU instance ID  0 using profile '
                'MIG 3g.40gb (ID  0)\n',
            ),
            self.smi('mig', '-cgi', '9:4', '-C'),
        )
        for wanted, status in (
            ('9:4', 23),
            ('0:0', 23),
            ('9:2', 2),
            ('77:0', 2),
            ('9:0', 0),
            ('19:0', 23),
        ):
            found, text = self.smi('mig', '-cgi', wanted)
            self.assertEqual(status, found, text)
        # The eighth slice of memory has no compute slice of its own.
        self.assertEqual(
            6,
            sum(each.profile.compute for each in self.card.instances.values()),
        )
        self.card.is_root = False
        for command in (['-cgi', '9:4'], ['-lgi']):
            self.assertEqual(4, self.smi('mig', *command)[0])
        self.assertEqual(4, self.smi('-mig', '0')[0])

    def test_destroying(self):
        self.card.is_on = True
        self.smi('mig', '-cgi', '9:4', '-C')
        for command, status in (
            (['-gi', '0', '-dgi'], 19),
            (['-gi', '0', '-dci'], 0),
            (['-gi', '0', '-dci'], 6),
            (['-gi', '0', '-dgi'], 0),
            (['-gi', '0', '-dgi'], 6),
        ):
            self.assertEqual(status, self.smi('mig', *command)[0], command)

    def test_what_a_vgpu_has_stays(self):
        self.card.is_on = True
        self.smi('mig', '-cgi', '9:4', '-C')
        self.tool._give(self.card, '0000:3d:00.4', 1125)
        for command in (['-gi', '0', '-dci'], ['-gi', '0', '-dgi']):
            self.assertEqual(19, self.smi('mig', *command)[0], command)
        self.assertRaises(
            OSError, self.tool._give, self.card, '0000:3d:00.5', 1125
        )

    def test_what_fits(self):
        """Of types without an instance, those of the first one's size."""
        self.assertEqual(4, len(self.card.fitting()))
        self.tool._give(self.card, '0000:3d:00.4', 1132)
        self.assertEqual([1132], [each.number for each in self.card.fitting()])
        self.tool._give(self.card, '0000:3d:00.5', 1132)
        self.assertEqual([], self.card.fitting())

    def test_tables(self):
        self.card.is_on = True
        self.smi('mig', '-cgi', '9:4', '-C')
        _status, profiles = self.smi('mig', '-lgip')
        self.assertRegex(profiles, 'MIG 3g.40gb +9 +1/2 ')
        self.assertRegex(profiles, 'MIG 1g.10gb +19 +4/7 ')
        self.assertEqual({79}, {len(each) for each in profiles.splitlines()})
        _status, instances = self.smi('mig', '-lgi')
        self.assertRegex(instances, 'MIG 3g.40gb +9 +0 +4:4 ')
        self.assertEqual({59}, {len(each) for each in instances.splitlines()})
        _status, places = self.smi('mig', '-lgipp')
        self.assertIn('GPU  0 Profile ID  9 Placements: {0,4}:4\n', places)
        self.assertIn('GPU  0 Profile ID  0 Placement : {0}:8\n', places)
