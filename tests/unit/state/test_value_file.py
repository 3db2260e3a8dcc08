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

import pathlib

import fixtures
import testtools

from nova_accel.state import value_file


class TestMemoryFile(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.path = (
            pathlib.Path(self.useFixture(fixtures.TempDir()).path)
            / 'place'
            / 'file.json'
        )
        self.path.parent.mkdir()

    def reopened(self):
        return value_file.ValueFile(
            self.path,
            lambda value: set(value['known']),
            lambda value: {'known': sorted(value)},
            set(),
            'all is lost',
            'It would be lost',
        )

    def test_what_is_written_is_known_after_a_restart(self):
        self.assertEqual(set(), self.reopened().value)
        self.reopened().write({'b', 'a'})
        self.assertEqual({'a', 'b'}, self.reopened().value)

    def test_nothing_new_is_not_written(self):
        memory = self.reopened()
        memory.write(set())
        self.assertFalse(self.path.exists())
        memory.write({'a'})
        self.path.unlink()
        memory.write({'a'})
        self.assertFalse(self.path.exists())

    def test_a_damaged_file_is_none(self):
        for content in ('{"kn', '[]', '{}', '{"known": 7}', '[' * 200_000):
            self.path.write_text(content)
            memory = self.reopened()
            self.assertEqual(set(), memory.value)
            (why,) = memory.damaged
            self.assertIn(str(self.path), why)
            # It is read once, and people can look at it.
            self.assertFalse(self.path.exists())
            self.assertEqual(
                content, self.path.with_name('file.json.damaged').read_text()
            )
        self.assertEqual(5, self.log.output.count('all is lost'))
        self.assertEqual((), self.reopened().damaged)

    def test_what_a_disk_has_refused_is_written_the_next_time(self):
        memory = self.reopened()
        self.path.parent.rmdir()
        for _time in range(2):
            memory.write({'a'})
            self.assertEqual({'a'}, memory.value)
        # It would be said at each claim.
        self.assertEqual(1, self.log.output.count('It would be lost'))
        self.path.parent.mkdir()
        memory.write({'a'})
        self.assertEqual({'a'}, self.reopened().value)
        self.path.unlink()
        self.path.parent.rmdir()
        memory.write({'b'})
        self.assertEqual(2, self.log.output.count('It would be lost'))

    def test_a_disk_that_cannot_be_read(self):
        self.path.mkdir()
        self.assertEqual(set(), self.reopened().value)
        self.assertIn('all is lost', self.log.output)
