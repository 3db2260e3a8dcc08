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

from nova_accel.virt.publishing import published_traits

UUID = '0e8c2b0e-6a67-4f0b-a7ac-0b0a5a3f1d11'
GIVEN = {UUID: frozenset({'CUSTOM_A', 'CUSTOM_B'})}


class TestGivenTraits(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.path = (
            pathlib.Path(self.useFixture(fixtures.TempDir()).path)
            / 'traits.json'
        )

    def reopened(self):
        return published_traits.PublishedTraits(self.path)

    def test_what_was_given_is_known_after_a_restart(self):
        self.assertEqual({}, self.reopened().read())
        self.reopened().write(GIVEN)
        self.assertEqual(GIVEN, self.reopened().read())

    def test_nothing_new_is_not_written(self):
        memory = self.reopened()
        memory.write({})
        self.assertFalse(self.path.exists())
        memory.write(GIVEN)
        self.path.unlink()
        memory.write(dict(GIVEN))
        self.assertFalse(self.path.exists())

    def test_a_damaged_file_is_an_empty_one(self):
        log = self.useFixture(fixtures.FakeLogger())
        for content in ('{"0e', '[]', '{"0e8c": 7}'):
            self.path.write_text(content)
            self.assertEqual({}, self.reopened().read())
        self.assertEqual(3, log.output.count(str(self.path)))
