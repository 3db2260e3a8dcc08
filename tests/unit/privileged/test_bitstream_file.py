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

import fixtures
import testtools

from nova_accel import conf
from nova_accel.privileged import bitstream_file
from nova_accel.testing import driver_conformance
from unit.privileged import tree


class TestCopy(testtools.TestCase):
    """nova-compute's user may have put anything into the cache."""

    def setUp(self):
        super().setUp()
        root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.cache, self.outside = root / 'cache', root / 'outside'
        for directory in (self.cache, self.outside):
            directory.mkdir()
        self.target = root / 'target'
        tree.configure(self, bitstream_cache_directory=str(self.cache))
        self.secret = driver_conformance.cached(self.outside, b'secret')
        self.name = self.secret.name

    def assert_refused(self, path, text='bitstream'):
        error = self.assertRaises(
            (ValueError, OSError), bitstream_file.copy, str(path), self.target
        )
        self.assertIn(text, str(error))
        self.assertFalse(self.target.exists())

    def test_a_file_of_the_cache(self):
        file = driver_conformance.cached(self.cache, b'a' * (3 << 20))
        bitstream_file.copy(str(file), self.target)
        self.assertEqual(file.read_bytes(), self.target.read_bytes())
        self.assertEqual(0o600, self.target.stat().st_mode & 0o777)

    def test_a_file_elsewhere(self):
        for path in (
            self.secret,
            self.cache / '../outside' / self.name,
            f'{self.cache}/../outside/{self.name}',
            self.cache / 'images' / self.name,
            self.name,
            '/etc/shadow',
            '',
            '/',
            'a' * 10000,
        ):
            self.assert_refused(path)

    def test_a_file_of_another_name(self):
        for name in ('bitstream', 'new-1', self.name.upper(), 'images'):
            (self.cache / name).write_bytes(b'secret')
            self.assert_refused(self.cache / name, 'named by its sha256')
            (self.cache / name).unlink()

    def test_a_link_to_a_file(self):
        (self.cache / self.name).symlink_to(self.secret)
        self.assert_refused(self.cache / self.name, self.name)

    def test_a_link_in_the_place_of_the_cache(self):
        self.cache.rmdir()
        self.cache.symlink_to(self.outside)
        self.assert_refused(self.cache / self.name, str(self.cache))

    def test_what_is_no_plain_file(self):
        file = self.cache / self.name
        os.mkfifo(file)
        self.assert_refused(file, 'no plain file')
        file.unlink()
        file.mkdir()
        self.assert_refused(file, 'no plain file')

    def test_other_contents(self):
        (self.cache / self.name).write_bytes(b'another')
        self.assert_refused(self.cache / self.name, 'sha256')

    def test_a_hard_link_to_a_file_of_another_user(self):
        os.link(self.secret, self.cache / self.name)
        real = os.fstat

        def owned_by_root(file):
            found = list(real(file))
            if os.path.samestat(os.stat_result(found), self.secret.stat()):
                found[4] += 1
            return os.stat_result(found)

        self.useFixture(fixtures.MonkeyPatch('os.fstat', owned_by_root))
        self.assert_refused(self.cache / self.name, 'belongs to user')

    def test_what_is_missing(self):
        self.assert_refused(self.cache / self.name, self.name)
        self.cache.rmdir()
        self.assert_refused(self.cache / self.name, str(self.cache))

    def test_an_existing_target(self):
        file = driver_conformance.cached(self.cache, b'a')
        self.target.write_text('mine')
        self.assertRaises(
            FileExistsError, bitstream_file.copy, str(file), self.target
        )
        self.assertEqual('mine', self.target.read_text())

    def test_no_absolute_directory(self):
        tree.configure(self, bitstream_cache_directory='cache')
        self.assert_refused(self.cache / self.name, 'state_path')

    def test_where_nova_compute_has_its_cache(self):
        conf.CONF.clear_override('bitstream_cache_directory', 'nova_accel')
        state = str(self.cache.parent)
        conf.CONF.set_override('state_path', state)
        self.addCleanup(conf.CONF.clear_override, 'state_path')
        self.cache.rename(self.cache.parent / 'nova_accel_bitstreams')
        file = driver_conformance.cached(
            pathlib.Path(conf.CONF.nova_accel.bitstream_cache_directory), b'a'
        )
        bitstream_file.copy(str(file), self.target)
        self.assertTrue(self.target.exists())
