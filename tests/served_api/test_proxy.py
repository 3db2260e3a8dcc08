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


"""The proxies of the manual, whose own programs read their files."""

import pathlib
import shutil
import subprocess

import fixtures
import testtools

_SNIPPETS = pathlib.Path(__file__).parents[2] / 'doc/source/admin/snippets'


class TestProxies(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def check(self, program: str, *arguments: str) -> None:
        path = shutil.which(program)
        if path is None:
            self.skipTest(f'{program} is not installed')
        done = subprocess.run(
            [path, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertNotIn('warn', done.stdout.lower())

    def test_haproxy(self) -> None:
        self.check('haproxy', '-c', '-f', str(_SNIPPETS / 'haproxy.cfg'))

    def test_nginx(self) -> None:
        """The snippet belongs into the section ``http``; nginx binds."""
        snippet = (_SNIPPETS / 'nginx.conf').read_text()
        self.assertIn('listen 192.0.2.1:6666;', snippet)
        snippet = snippet.replace(
            'listen 192.0.2.1:6666;', f'listen unix:{self.directory}/socket;'
        )
        whole = self.directory / 'nginx.conf'
        # It makes these directories, which are root's by default.
        paths = ''.join(
            f'{name}_temp_path {self.directory}/{name};\n'
            for name in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi')
        )
        whole.write_text(
            f'pid {self.directory}/pid;\n'
            'events {}\n'
            f'http {{\naccess_log off;\n{paths}{snippet}\n}}\n'
        )
        self.check(
            'nginx', '-t', '-c', str(whole), '-e', str(self.directory / 'log')
        )
