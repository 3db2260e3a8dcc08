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
from nova_accel.host import mig
from nova_accel.host import nvidia_smi
from nova_accel.model import pci_address
from nova_accel.privileged import vendor_tool

CARD = pci_address.PciAddress(0, 0x3D, 0, 0)

#: Of an A100, with driver 450 and with 470.
PROFILES = """\
+--------------------------------------------------------------------------+
| GPU instance profiles:                                                   |
| GPU   Name          ID    Instances   Memory     P2P    SM    DEC   ENC  |
|                           Free/Total   GiB              CE    JPEG  OFA  |
|==========================================================================|
|   0  MIG 1g.5gb     19     7/7        4.75       No     14     0     0   |
|                                                          1     0     0   |
+--------------------------------------------------------------------------+
|   0  MIG 1g.5gb+me  20     1/1        4.75       No     14     1     0   |
|                                                          1     1     1   |
+--------------------------------------------------------------------------+
|   0  MIG 3g.20gb     9     2/2        19.62      No     42     2     0   |
|                                                          3     0     0   |
+--------------------------------------------------------------------------+
|   0  MIG 7g.40gb     0     1/1        39.50      No     98     5     0   |
|                                                          7     1     1   |
+--------------------------------------------------------------------------+
"""

#: Of an H100, with driver 580.
NEW_PROFILES = """\
+-----------------------------------------------------------------------------+
| GPU instance profiles:                                                      |
| GPU   Name               ID    Instances   Memory     P2P    SM    DEC   ENC|
|                                Free/Total   GiB              CE    JPEG  OFA|
|=============================================================================|
|   0  MIG 1g.5gb          19     0/7        4.75       No     16     1     0 |
|                                                               1     1     0 |
+-----------------------------------------------------------------------------+
|   0  MIG 1g.5gb-me       21     7/7        4.75       No     16     0     0 |
|                                                               1     0     0 |
+-----------------------------------------------------------------------------+
|   0  MIG 3g.20gb          9     0/2        19.50      No     60     3     0 |
|                                                               3     3     0 |
+-----------------------------------------------------------------------------+
|   0  MIG 7g.40gb          0     0/1        39.50      No     132    7     0 |
|                                                               8     7     1 |
+-----------------------------------------------------------------------------+
"""

PLACES = """\
GPU  0 Profile ID 19 Placements: {0,1,2,3,4,5,6}:1
GPU  0 Profile ID 20 Placements: {0,1,2,3,4,5,6}:1
GPU  0 Profile ID 21 Placements: {0,1,2,3,4,5,6}:1
GPU  0 Profile ID  9 Placements: {0,4}:4
GPU  0 Profile ID  0 Placement : {0}:8
"""

INSTANCES = """\
+----------------------------------------------------+
| GPU instances:                                     |
| GPU   Name          Profile  Instance   Placement  |
|                       ID       ID       Start:Size |
|====================================================|
|   0  MIG 1g.5gb       19       11          6:1     |
+----------------------------------------------------+
|   0  MIG 3g.20gb       9        2          0:4     |
+----------------------------------------------------+
"""

NONE = (6, 'No GPU instances found: Not Found\n')
OFF = (6, 'No MIG-enabled devices found.\n')


class TestMigCard(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.answers = {
            '-lgip': (0, PROFILES),
            '-lgipp': (0, PLACES),
            '-lgi': (0, INSTANCES),
        }
        self.modes = (0, 'Enabled, Enabled\n')
        for name, function in (
            ('listed', lambda _card, what, _seconds: self.answers[what]),
            ('mode', lambda _card, _seconds: self.modes),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova_accel.privileged.mig.{name}', function
                )
            )
        self.card = mig.MigCard(CARD)

    def assert_strange(self, call, *texts):
        error = self.assertRaises(exceptions.DeviceError, call)
        for text in (str(CARD), *texts):
            self.assertIn(text, str(error))

    def test_profiles(self):
        for text in (PROFILES, NEW_PROFILES):
            self.answers['-lgip'] = (0, text)
            self.assertEqual(
                (
                    mig.Profile('1g.5gb', 1, tuple(range(7)), 19),
                    mig.Profile('3g.20gb', 4, (0, 4), 9),
                    mig.Profile('7g.40gb', 8, (0,), 0),
                ),
                self.card.profiles(),
            )
        self.assertEqual(8, mig.slices(self.card.profiles()))

    def test_a_card_that_is_off(self):
        for text in (OFF, (6, 'No MIG-supported devices found.\n')):
            self.answers['-lgip'] = text
            self.assertIsNone(self.card.profiles())

    def test_instances(self):
        self.assertEqual(
            (mig.Instance(11, 19, 6, 1), mig.Instance(2, 9, 0, 4)),
            self.card.instances(),
        )
        self.answers['-lgi'] = NONE
        self.assertEqual((), self.card.instances())

    def test_modes(self):
        for text, is_on in (
            ('Enabled, Enabled\n', True),
            ('Enabled, Disabled\n', True),
            ('Disabled, Enabled\n', False),
            ('[N/A], [N/A]\n', False),
        ):
            self.modes = (0, text)
            self.assertEqual(is_on, self.card.is_on())
        for text in (
            *('', 'Enabled\n', 'enabled, enabled\n', 'Enabled, Enabled\n' * 2),
            'No devices were found\n',
        ):
            self.modes = (0, text)
            self.assert_strange(self.card.is_on, 'mig.mode.current')

    def test_a_tool_that_fails(self):
        for status, text in (
            (vendor_tool.BUSY, 'has not ended'),
            (124, 'no end within 60 s'),
            (127, '127'),
            (255, 'Unknown Error'),
        ):
            for what, call in (
                ('-lgip', self.card.profiles),
                ('-lgipp', self.card.profiles),
                ('-lgi', self.card.instances),
            ):
                before = self.answers[what]
                self.answers[what] = (status, 'Unknown Error\n\x1b')
                self.assert_strange(call, text)
                self.answers[what] = before

    def test_none_is_no_other_failure(self):
        for text in (
            'No GPU instances found: Insufficient Permissions\n',
            f'{NONE[1]}{INSTANCES}',
        ):
            self.answers['-lgi'] = (6, text)
            self.assert_strange(self.card.instances, 'exit status 6')

    def test_a_list_of_nothing(self):
        for text in ('', '\n', 'GPU instances:', INSTANCES[:350]):
            self.answers['-lgi'] = (0, text)
            self.assert_strange(self.card.instances, '-lgi')
            self.answers['-lgip'] = (0, text)
            self.assert_strange(self.card.profiles, '-lgip')

    def test_a_row_that_is_not_whole(self):
        """It could be the one that matters."""
        for what, call, text in (
            ('-lgi', self.card.instances, INSTANCES),
            ('-lgipp', self.card.profiles, PLACES),
            ('-lgip', self.card.profiles, PROFILES),
        ):
            good = self.answers[what]
            rows = [each for each in text.splitlines() if _is_row(each)]
            for row in rows:
                for wrong in (
                    row[:-7],
                    row.replace(' 0 ', ' 1 ', 1),
                    row.replace(':', ';').replace('/', '|'),
                    row + ' ',
                    row.replace('9', '\u0669').replace('0', '\u0660'),
                ):
                    if wrong.strip() == row or wrong == row:
                        continue
                    self.answers[what] = (0, text.replace(row, wrong))
                    self.assert_strange(call, what)
            self.answers[what] = good

    def test_profiles_without_places(self):
        self.answers['-lgipp'] = (0, PLACES.replace('ID  9', 'ID  8'))
        self.assert_strange(self.card.profiles, 'profile 9')

    def test_a_privileged_process_that_fails(self):
        def fail(*_arguments):
            raise ValueError('address: no')

        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.privileged.mig.listed', fail)
        )
        self.assert_strange(self.card.instances, 'address: no')

    def test_no_call_while_a_guest_is_started(self):
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.host.nvidia_smi._GIVES_WAY_S', 0.01
            )
        )
        with nvidia_smi._turns.start():
            error = self.assertRaises(
                exceptions.DeviceError, self.card.instances
            )
        self.assertIn('while a guest is started', str(error))


def _is_row(line):
    return 'MIG ' in line or line.startswith('GPU ')
