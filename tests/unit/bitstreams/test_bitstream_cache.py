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
import errno
import hashlib
import os
import pathlib

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.bitstreams import bitstream_cache
from nova_accel.model.fpga import fpga_bitstream
from rig.stubs import bitstreams


def described(data, **properties):
    return fpga_bitstream.from_image(bitstreams.image(data, **properties))


def writing(data):
    def fetch(file):
        file.write(data)
        return hashlib.sha256(data).hexdigest()

    return fetch


class CacheTestCase(testtools.TestCase):
    MAX_BYTES = 100

    def setUp(self):
        super().setUp()
        self.directory = (
            pathlib.Path(self.useFixture(fixtures.TempDir()).path)
            / 'made'
            / 'cache'
        )
        self.cache = self.reopened()

    def reopened(self):
        """The cache as the next nova-compute finds it."""
        return bitstream_cache.Cache(self.directory, self.MAX_BYTES)

    def added(self, data, last_used_s=None, **properties):
        """A bitstream that is in the cache and not in use."""
        bitstream = described(data, **properties)
        entry = self.cache.add(bitstream, writing(data))
        self.cache.release(entry)
        if last_used_s is not None:
            os.utime(entry.path, (last_used_s, last_used_s))
        return bitstream

    def has(self, bitstream):
        entry = self.cache.pin(bitstream)
        if entry is not None:
            self.cache.release(entry)
        return entry is not None

    def names(self):
        return {path.name for path in self.directory.iterdir()} - {'images'}


class TestCache(CacheTestCase):
    def test_a_file_is_named_by_its_content(self):
        entry = self.cache.add(described(b'bits'), writing(b'bits'))
        self.assertEqual(hashlib.sha256(b'bits').hexdigest(), entry.sha256)
        self.assertEqual(self.directory / entry.sha256, entry.path)
        self.assertEqual(b'bits', entry.path.read_bytes())
        self.assertEqual({entry.sha256}, self.names())

    def test_nobody_else_may_look(self):
        self.added(b'bits')
        modes = {
            path.name: path.stat().st_mode & 0o777
            for path in self.directory.rglob('*')
        }
        self.assertEqual(0o700, modes.pop('images'))
        self.assertEqual({0o600}, set(modes.values()))
        self.directory.chmod(0o755)
        self.reopened()
        self.assertEqual(0o700, self.directory.stat().st_mode & 0o777)

    def test_after_a_restart(self):
        bitstream = self.added(b'bits')
        self.cache = self.reopened()
        self.assertTrue(self.has(bitstream))

    def test_an_image_that_changed_is_another_one(self):
        bitstream = self.added(b'bits')
        for changes in (
            {'hash_value': '00' * 64},
            {'hash_algorithm': 'sha3_512'},
            {'size': 5},
        ):
            self.assertFalse(
                self.has(dataclasses.replace(bitstream, **changes)), changes
            )
        self.assertTrue(
            self.has(dataclasses.replace(bitstream, name='renamed'))
        )

    def test_images_with_the_same_content_share_it(self):
        one, other = self.added(b'bits'), self.added(b'bits')
        self.assertTrue(self.has(one) and self.has(other))
        self.assertEqual(1, len(self.names()))

    def test_what_is_refused_leaves_nothing(self):
        def refusing(file):
            file.write(b'bits')
            raise exceptions.BitstreamRefused('corrupt')

        bitstream = described(b'bits')
        self.assertRaises(
            exceptions.BitstreamRefused, self.cache.add, bitstream, refusing
        )
        self.assertEqual(set(), self.names())
        self.assertFalse(self.has(bitstream))

    def test_it_is_on_the_disk_before_it_has_its_name(self):
        steps = []
        for name in ('fsync', 'replace'):
            real = getattr(os, name)
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'os.{name}',
                    lambda *args, name=name, real=real: (
                        steps.append(name) or real(*args)
                    ),
                )
            )
        self.cache.add(described(b'bits'), writing(b'bits'))
        self.assertEqual(['fsync', 'replace', 'fsync'], steps[:3])

    def test_leftovers_of_a_crash(self):
        bitstream = self.added(b'bits')
        (self.directory / 'new-abc').write_bytes(b'half')
        (self.directory / 'images' / 'x.new').write_text('{')
        gone = self.added(b'gone')
        (self.directory / hashlib.sha256(b'gone').hexdigest()).unlink()
        self.cache = self.reopened()
        self.assertEqual({hashlib.sha256(b'bits').hexdigest()}, self.names())
        self.assertEqual(
            [f'{bitstream.id}.json'],
            [path.name for path in (self.directory / 'images').iterdir()],
        )
        self.assertFalse(self.has(gone))

    def test_a_directory_that_is_none(self):
        file = self.directory.parent / 'file'
        file.write_text('')
        error = self.assertRaises(
            exceptions.ConfigurationError, bitstream_cache.Cache, file, 100
        )
        self.assertIn('bitstream_cache_directory', str(error))


class TestTricks(CacheTestCase):
    def test_an_id_that_is_a_path(self):
        bitstream = dataclasses.replace(
            described(b'bits'), id='../../../tmp/x'
        )
        for call in (
            self.cache.pin,
            lambda found: self.cache.add(found, writing(b'bits')),
        ):
            self.assertRaises(exceptions.BitstreamRefused, call, bitstream)

    def test_an_index_that_points_elsewhere(self):
        bitstream = self.added(b'bits')
        secret = self.directory.parent / 'secret'
        secret.write_bytes(b'bits')
        index = self.directory / 'images' / f'{bitstream.id}.json'
        content = index.read_text()
        sha256 = hashlib.sha256(b'bits').hexdigest()
        for name in ('../secret', str(secret), 'images'):
            index.write_text(content.replace(sha256, name))
            self.assertFalse(self.has(bitstream), name)
        for text in ('', '[]', '{}', 'null', '[' * 200_000, '{"sha256": []}'):
            index.write_text(text)
            self.assertFalse(self.has(bitstream), text[:20])
            # nova-compute starts, and the note is gone.
            self.cache = self.reopened()
            self.assertFalse(index.exists())

    def test_a_note_that_is_no_file(self):
        bitstream = self.added(b'bits')
        index = self.directory / 'images' / f'{bitstream.id}.json'
        index.unlink()
        index.mkdir()
        self.cache = self.reopened()
        self.assertFalse(self.has(bitstream))

    def test_a_link_in_the_place_of_a_file(self):
        bitstream = self.added(b'bits')
        path = self.directory / hashlib.sha256(b'bits').hexdigest()
        path.rename(self.directory.parent / 'elsewhere')
        path.symlink_to(self.directory.parent / 'elsewhere')
        self.assertFalse(self.has(bitstream))

    def test_a_file_of_another_size(self):
        bitstream = self.added(b'bits')
        path = self.directory / hashlib.sha256(b'bits').hexdigest()
        path.write_bytes(b'bit')
        self.assertFalse(self.has(bitstream))


class TestRoom(CacheTestCase):
    def test_the_least_recently_used_makes_room(self):
        first, second = (
            self.added(bytes([n]) * 40, last_used_s=n) for n in (1, 2)
        )
        self.assertTrue(self.has(first))
        third = self.added(b'3' * 40)
        self.assertEqual(
            [True, False, True],
            [self.has(each) for each in (first, second, third)],
        )

    def test_as_many_as_it_takes(self):
        small = [self.added(bytes([n]) * 20, last_used_s=n) for n in range(5)]
        self.added(b'x' * 50)
        self.assertEqual(
            [False, False, False, True, True],
            [self.has(each) for each in small],
        )

    def test_what_is_in_use_stays(self):
        bitstream = self.added(b'a' * 60)
        entry = self.cache.pin(bitstream)
        large = described(b'b' * 50)
        error = self.assertRaises(
            exceptions.DeviceError, self.cache.add, large, writing(b'b' * 50)
        )
        self.assertIn('bitstream_cache_size_mb', str(error))
        self.assertTrue(entry.path.exists())
        # Pinned by two, it stays until both are done.
        second = self.cache.pin(bitstream)
        self.cache.release(entry)
        self.assertRaises(
            exceptions.DeviceError, self.cache.add, large, writing(b'b' * 50)
        )
        self.cache.release(second)
        self.cache.add(large, writing(b'b' * 50))
        self.assertFalse(self.has(bitstream))

    def test_what_is_coming_counts(self):
        def nested(file):
            self.assertRaises(
                exceptions.DeviceError,
                self.cache.add,
                described(b'b' * 50),
                writing(b'b' * 50),
            )
            return writing(b'a' * 60)(file)

        self.cache.add(described(b'a' * 60), nested)
        # And no more when it has come or failed.
        self.added(b'c' * 40)

    def test_removed_unless_someone_else_uses_it(self):
        bitstream = self.added(b'bits')
        entries = [self.cache.pin(bitstream) for _time in range(2)]
        self.cache.release(entries[0], keep=False)
        self.assertTrue(entries[1].path.exists())
        self.cache.release(entries[1], keep=False)
        self.assertFalse(self.has(bitstream))


class TestFullDisk(CacheTestCase):
    def full(self, until, number=errno.ENOSPC):
        def allocate(_descriptor, _begin, _size):
            if not until():
                raise OSError(number, os.strerror(number))

        self.useFixture(fixtures.MonkeyPatch('os.posix_fallocate', allocate))

    def test_others_make_room(self):
        first, second = (self.added(bytes([n]), last_used_s=n) for n in (1, 2))
        self.full(until=lambda: len(self.names()) < 3)
        third = self.added(b'3')
        self.assertEqual(
            [False, True, True],
            [self.has(each) for each in (first, second, third)],
        )

    def test_nothing_can_make_room(self):
        self.full(until=lambda: False)
        error = self.assertRaises(exceptions.DeviceError, self.added, b'bits')
        self.assertIn('No space left', str(error))
        self.assertEqual(set(), self.names())

    def test_full_in_the_middle(self):
        def fetch(_file):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        self.assertRaises(
            exceptions.DeviceError, self.cache.add, described(b'bits'), fetch
        )
        self.assertEqual(set(), self.names())

    def test_a_file_system_that_cannot_allocate(self):
        self.full(until=lambda: False, number=errno.EOPNOTSUPP)
        self.assertTrue(self.has(self.added(b'bits')))

    def test_a_disk_that_fails(self):
        self.full(until=lambda: False, number=errno.EIO)
        self.assertRaises(exceptions.DeviceError, self.added, b'bits')
