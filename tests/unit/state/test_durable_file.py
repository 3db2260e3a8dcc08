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

import os
import pathlib
import threading

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.state import durable_file

MUCH = bytes(16 * 1024 * 1024)


class TestDurableFile(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.path = self.directory / 'file'

    def test_the_last_content_is_there(self):
        for text in ('first', 'second'):
            durable_file.write(self.path, text)
        self.assertEqual('second', self.path.read_text())
        self.assertEqual([self.path], list(self.directory.iterdir()))
        self.assertEqual(0o600, self.path.stat().st_mode & 0o777)

    def test_for_other_readers(self):
        durable_file.write(self.path, 'text', 0o644)
        self.assertEqual(0o644, self.path.stat().st_mode & 0o777)

    def test_chunks(self):
        with self.path.open('wb') as file:
            durable_file.write_chunks(file, iter([b'one', b'', b'two'] * 9))
        self.assertEqual(b'onetwo' * 9, self.path.read_bytes())

    def test_the_disk_takes_chunks_while_more_come(self):
        synced = threading.Event()

        def chunks():
            yield MUCH
            self.assertTrue(synced.wait(30))
            yield b'last'

        with (
            fixtures.MockPatch(
                'os.fdatasync', side_effect=lambda _file: synced.set()
            ),
            self.path.open('wb') as file,
        ):
            durable_file.write_chunks(file, chunks())

    def test_the_disk_fails_while_chunks_come(self):
        for number in (0, 9):
            with (
                fixtures.MockPatch(
                    'os.fdatasync',
                    side_effect=[OSError(5, 'I/O error'), *[None] * 9],
                ),
                self.path.open('wb') as file,
            ):
                self.assertRaises(
                    OSError,
                    durable_file.write_chunks,
                    file,
                    iter([MUCH, *[b'chunk'] * number]),
                )

    def test_removed_twice(self):
        durable_file.write(self.path, 'text')
        for _time in range(2):
            durable_file.remove(self.path)
        self.assertEqual([], list(self.directory.iterdir()))

    def test_a_full_disk(self):
        durable_file.write(self.path, 'first')
        with fixtures.MockPatch('os.fsync', side_effect=OSError(28, 'full')):
            error = self.assertRaises(
                exceptions.DiskError, durable_file.write, self.path, 'x'
            )
            self.assertIn(
                'file cannot be written on the host: full', str(error)
            )
            self.assertRaises(
                exceptions.DiskError, durable_file.remove, self.path
            )
        durable_file.write(self.path, 'first')
        self.assertEqual([self.path], list(self.directory.iterdir()))
        self.assertEqual('first', self.path.read_text())

    def test_a_directory_that_is_gone(self):
        for act in (
            lambda path: durable_file.write(path, 'text'),
            durable_file.remove,
        ):
            self.assertRaises(
                exceptions.DiskError, act, self.directory / 'gone' / 'file'
            )


class TestReadJson(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.path = (
            pathlib.Path(self.useFixture(fixtures.TempDir()).path) / 'file'
        )

    def test_what_was_written(self):
        durable_file.write(self.path, '{"a": [1, null]}')
        self.assertEqual({'a': [1, None]}, durable_file.read_json(self.path))

    def test_no_file(self):
        self.assertRaises(FileNotFoundError, durable_file.read_json, self.path)

    def test_what_is_no_json(self):
        for content, fault in (
            (b'{"a', 'Unterminated'),
            (b'\xff\xfe\x00', ''),
            (b'[' * 200_000, 'nested too deeply'),
            (b'7' * 10_000, ''),
            (b'"' + b'x' * 99 + b'"', 'more than 100 bytes'),
        ):
            self.path.write_bytes(content)
            error = self.assertRaises(
                ValueError,
                durable_file.read_json,
                self.path,
                100 if 'bytes' in fault else durable_file.MAX_JSON_BYTES,
            )
            self.assertIn(fault, str(error))

    def test_what_never_ends(self):
        os.mkfifo(self.path)
        error = self.assertRaises(
            ValueError, durable_file.read_json, self.path
        )
        self.assertIn('no regular file', str(error))

    def test_put_aside(self):
        self.path.write_text('bad')
        for _time in range(2):
            durable_file.put_aside(self.path)
            self.assertFalse(self.path.exists())
        self.assertEqual(
            'bad', self.path.with_name('file.damaged').read_text()
        )

    def test_a_disk_that_refuses_to_put_it_aside(self):
        self.path.write_text('bad')
        aside = self.path.with_name('file.damaged')
        aside.mkdir()
        self.assertRaises(
            exceptions.DiskError, durable_file.put_aside, self.path
        )
        self.assertEqual('bad', self.path.read_text())
