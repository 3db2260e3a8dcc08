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
import os
import pathlib
import shutil

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.state import durable_file
from nova_accel.state import record_files


@dataclasses.dataclass(frozen=True)
class Note:
    name: str
    text: str

    def to_dict(self):
        return {'name': self.name, 'text': self.text}


def parse(value):
    return Note(value['name'], value['text'])


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
            self.directory,
            parse,
            lambda note: note.name,
            'notes',
            'ask somebody',
        )

    def test_what_is_written_is_there_after_a_restart(self):
        self.assertEqual([], self.files.entries())
        self.files.write(Note('one', '1'))
        self.files.write(Note('two', '2'))
        self.files.write(Note('one', '3'))
        self.files.remove('two')
        for files in (self.files, self.open()):
            self.assertEqual(Note('one', '3'), files.read('one'))
            self.assertIsNone(files.read('two'))
            self.assertEqual([Note('one', '3')], files.entries())
        self.assertEqual(0o700, self.directory.stat().st_mode & 0o777)

    def test_what_cannot_be_understood(self):
        self.files.write(Note('good', '1'))
        texts = {
            'cut': '{"te',
            'list': '[]',
            'other': '{}',
            'deep': '[' * 200_000,
            'long': f'"{"x" * durable_file.MAX_JSON_BYTES}"',
            'binary': '\xff',
        }
        for name, text in texts.items():
            (self.directory / f'{name}.json').write_text(text, 'latin-1')
        os.mkfifo(self.directory / 'pipe.json')
        (self.directory / 'directory.json').mkdir()
        shutil.copy(
            self.directory / 'good.json', self.directory / 'copied.json'
        )
        files = self.open()
        self.assertEqual([Note('good', '1')], files.entries())
        self.assertEqual(
            {*texts, 'pipe', 'directory', 'copied'}, set(files.damaged)
        )
        self.assertIn('by its content it is good', files.damaged['copied'])
        error = self.assertRaises(exceptions.DeviceError, files.read, 'cut')
        self.assertIn(str(self.directory / 'cut.json'), str(error))
        self.assertIn('of notes is damaged', str(error))
        self.assertIn('ask somebody', str(error))
        self.assertIn(str(error), self.log.output)
        files.write(Note('cut', '2'))
        self.assertEqual(Note('cut', '2'), files.read('cut'))
        self.assertNotIn('cut', files.damaged)

    def test_a_damaged_file_is_put_aside(self):
        """When its entry is written or removed, and people can look at it."""
        for name in ('one', 'two'):
            (self.directory / f'{name}.json').write_text(f'{{"{name}')
        files = self.open()
        files.write(Note('one', '1'))
        files.remove('two')
        for again in (files, self.open()):
            self.assertEqual([Note('one', '1')], again.entries())
            self.assertEqual({}, again.damaged)
        for name in ('one', 'two'):
            self.assertEqual(
                f'{{"{name}',
                (self.directory / f'{name}.json.damaged').read_text(),
            )

    def test_what_its_reader_refuses(self):
        self.files.write(Note('one', '1'))
        self.files.refuse('one', 'two have it')
        self.assertEqual([], self.files.entries())
        error = self.assertRaises(
            exceptions.DeviceError, self.files.read, 'one'
        )
        self.assertIn('two have it', str(error))
        self.assertIn('two have it', self.log.output)

    def test_a_disk_that_refuses_changes_nothing(self):
        self.files.write(Note('one', '1'))

        def refuse(*arguments):
            raise exceptions.DiskError('No space left on device')

        for name, act in (
            ('write', lambda: self.files.write(Note('one', '2'))),
            ('remove', lambda: self.files.remove('one')),
        ):
            with fixtures.MonkeyPatch(
                f'nova_accel.state.durable_file.{name}', refuse
            ):
                self.assertRaises(exceptions.DiskError, act)
            self.assertEqual(Note('one', '1'), self.files.read('one'))
