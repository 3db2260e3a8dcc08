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
import pathlib

import fixtures
import testtools

from nova_accel.model import naming
from nova_accel.virt.publishing import known_types
from unit.virt.fpga import fpga_card

TYPE = '5f6a2d0e-7c43-4b1f-9d0e-2b1c8a4e6f70'
TRAIT = naming.region_trait('FPGA', 'Intel', TYPE)
UNTOLD = fpga_card.DEVICE
TOLD = dataclasses.replace(
    UNTOLD,
    regions=(
        dataclasses.replace(UNTOLD.regions[0], type_uuid=TYPE),
        *UNTOLD.regions[1:],
    ),
    deployables=(
        dataclasses.replace(
            UNTOLD.deployables[0],
            traits=UNTOLD.deployables[0].traits | {TRAIT},
        ),
        *UNTOLD.deployables[1:],
    ),
)


class TestToldTypes(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.path = (
            pathlib.Path(self.useFixture(fixtures.TempDir()).path)
            / 'types.json'
        )

    def reopened(self, boot='boot1'):
        return known_types.KnownTypes(self.path, boot)

    def known(self, memory):
        (found,) = memory.remembered([UNTOLD])
        return found

    def test_what_was_told_is_known_after_a_restart(self):
        self.assertIs(UNTOLD, self.known(self.reopened()))
        self.reopened().remembered([TOLD])
        self.assertEqual(TOLD, self.known(self.reopened()))

    def test_while_a_guest_has_the_whole_card(self):
        """The next one comes before the host looks again."""
        memory = self.reopened()
        self.assertEqual((TOLD,), memory.remembered([TOLD]))
        for _look in range(2):
            self.assertEqual(TOLD, self.known(memory))

    def test_not_after_a_boot(self):
        self.reopened().remembered([TOLD])
        self.assertIs(UNTOLD, self.known(self.reopened('boot2')))

    def test_a_device_that_is_gone_is_forgotten(self):
        self.reopened().remembered([TOLD])
        self.reopened().remembered([])
        self.assertIs(UNTOLD, self.known(self.reopened()))

    def test_nothing_new_is_not_written(self):
        memory = self.reopened()
        memory.remembered([UNTOLD])
        self.assertFalse(self.path.exists())
        memory.remembered([TOLD])
        self.path.unlink()
        memory.remembered([TOLD])
        self.assertFalse(self.path.exists())

    def test_a_disk_that_refuses_fails_nothing(self):
        self.path.mkdir()
        self.path /= 'types.json'
        memory = self.reopened()
        self.path.parent.rmdir()
        memory.remembered([TOLD])
        self.assertEqual(TOLD, self.known(memory))
        self.assertIn('cannot be written', self.log.output)
        self.path.parent.mkdir()
        memory.remembered([TOLD])
        self.assertEqual(TOLD, self.known(self.reopened()))

    def test_a_damaged_file_is_an_empty_one(self):
        for content in (
            '{"bo',
            '[]',
            '{}',
            '{"boot_id": "boot1"}',
            '{"boot_id": "boot1", "types": {"a": {"b": 7}}}',
        ):
            self.path.write_text(content)
            self.assertIs(UNTOLD, self.known(self.reopened()))
        self.assertEqual(5, self.log.output.count(str(self.path)))
