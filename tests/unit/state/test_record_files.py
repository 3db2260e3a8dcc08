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

from nova_accel import exceptions
from nova_accel.state import record_files


@dataclasses.dataclass(frozen=True)
class Note:
    text: str

    def to_dict(self):
        return {'text': self.text}


def parse(value):
    return Note(value['text'])


class TestEntryFiles(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.directory = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'a', 'journal'
        )
        self.files = self.open()

    def open(self):
        return record_files.RecordFiles(
            self.directory, parse, 'notes', 'ask somebody'
        )

    def test_what_is_written_is_there_after_a_restart(self):
        self.assertEqual([], self.files.entries())
        self.files.write('one', Note('1'))
        self.files.write('two', Note('2'))
        self.files.write('one', Note('3'))
        self.files.remove('two')
        for files in (self.files, self.open()):
            self.assertEqual(Note('3'), files.read('one'))
            self.assertIsNone(files.read('two'))
            self.assertEqual([Note('3')], files.entries())
        self.assertEqual(0o700, self.directory.stat().st_mode & 0o777)

    def test_what_cannot_be_understood(self):
        self.files.write('good', Note('1'))
        for name, text in (('cut', '{"te'), ('list', '[]'), ('other', '{}')):
            (self.directory / f'{name}.json').write_text(text)
        files = self.open()
        self.assertEqual([Note('1')], files.entries())
        self.assertEqual({'cut', 'list', 'other'}, set(files.damaged))
        error = self.assertRaises(exceptions.DeviceError, files.read, 'cut')
        self.assertIn(str(self.directory / 'cut.json'), str(error))
        self.assertIn('of notes is damaged', str(error))
        self.assertIn('ask somebody', str(error))
        self.assertIn(str(error), self.log.output)
        files.write('cut', Note('2'))
        self.assertEqual(Note('2'), files.read('cut'))
        self.assertEqual({'list', 'other'}, set(files.damaged))

    def test_a_disk_that_refuses_changes_nothing(self):
        self.files.write('one', Note('1'))

        def refuse(*arguments):
            raise exceptions.DiskError('No space left on device')

        for name, act in (
            ('write', lambda: self.files.write('one', Note('2'))),
            ('remove', lambda: self.files.remove('one')),
        ):
            with fixtures.MonkeyPatch(
                f'nova_accel.state.durable_file.{name}', refuse
            ):
                self.assertRaises(exceptions.DiskError, act)
            self.assertEqual(Note('1'), self.files.read('one'))
