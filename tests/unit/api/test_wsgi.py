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

"""The process of its own: it configures all of Nova, so not in this one."""

import pathlib
import re
import subprocess
import sys

import fixtures
import testtools

from nova_accel import conf
from nova_accel.testing import database
from rig.serving import nova_conf

_ASK = """
import os, sys, webob
from paste import deploy
from nova_accel.api import wsgi
paste = os.path.join(os.environ['OS_NOVA_CONFIG_DIR'], 'api-paste.ini')
name, *paths = sys.stdin.read().split()
application = (wsgi.application if name == wsgi.NAME
               else deploy.loadapp(f'config:{paste}', name=name))
for path in paths:
    answer = webob.Request.blank(path).get_response(application)
    print(path, answer.status_int)
"""


_SAY = """
import sys
from nova_accel.api import wsgi
names = sys.stdin.read().split()
print(' '.join(['loaded:', *(name for name in names if name in sys.modules)]))
from nova import rpc
print('notifies:', rpc.NOTIFIER is not None)
from nova.db.api import api
from nova_accel.api.compute import nova_setup
for _time in range(2):
    nova_setup.ensure()
api.get_engine()
# A first attempt may have failed after Nova's databases were used.
rpc.NOTIFIER = None
nova_setup.ensure()
print('bus:', rpc.TRANSPORT.conf.control_exchange)
print('database:', api.get_engine().url)
"""

#: What is a third of the memory of a pool, and what few requests need.
_LATER = (
    'nova.config',
    'nova.context',
    'nova.db.main.api',
    'nova.objects',
    'nova.rpc',
    'nova.utils',
    'openstack',
    'oslo_messaging',
)


class WsgiTest(testtools.TestCase):
    def start(
        self,
        connection: str,
        paths: str,
        application: str = 'nova_accel',
    ) -> subprocess.CompletedProcess[str]:
        """Ask the pool's application, or another one of the file."""
        return self.run_pool(connection, _ASK, f'{application} {paths}')

    def run_pool(
        self, connection: str, script: str, text: str, more: str = ''
    ) -> subprocess.CompletedProcess[str]:
        """Run a script where a pool would run, on a text.

        :param more: lines of ``nova.conf``
        """
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        nova_conf.write_api(directory, connection)
        with (directory / 'nova.conf').open('a') as file:
            file.write(more)
        self.useFixture(
            fixtures.EnvironmentVariable('OS_NOVA_CONFIG_DIR', str(directory))
        )
        return subprocess.run(
            [sys.executable, '-c', script],
            input=text,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def a_database(self) -> str:
        """The URL of one with all tables."""
        self.useFixture(database.Database())
        connection: str = conf.CONF.nova_accel_database.connection
        return connection

    def test_serves_versions_to_anyone_and_the_rest_with_a_token(self) -> None:
        paths = (
            '/accelerator',
            '/accelerator/',
            '/accelerator/v2',
            '/accelerator/v2/',
            '/',
            '/v2',
            '/accelerator/v2/device_profiles',
            '/v2/device_profiles',
            '/accelerator/nothing',
            '/servers',
        )
        process = self.start(self.a_database(), ' '.join(paths))
        self.assertEqual(
            [
                f'{path} {status}'
                for path, status in zip(
                    paths, [200] * 6 + [401] * 2 + [404] * 2, strict=True
                )
            ],
            # The others are the log.
            [
                line
                for line in process.stdout.splitlines()
                if re.fullmatch(r'/\S* \d{3}', line)
            ],
            process.stdout,
        )

    def test_no_path_forges_a_line_of_a_log(self) -> None:
        """Neither in the pool nor in nova-api, whose filter logs the path."""
        for paths, application in (
            ('/accelerator/a%0A /accelerator/v2/a%0A', 'nova_accel'),
            ('/a%0A', 'nova_accel_api'),
        ):
            process = self.start(self.a_database(), paths, application)
            self.assertEqual(
                [f'{path} 400' for path in paths.split()],
                [
                    line
                    for line in process.stdout.splitlines()
                    if line.startswith('/')
                    # A warning begins with the file that it is about.
                    and not line.startswith(sys.prefix)
                ],
                process.stdout,
            )

    def test_what_is_no_path(self) -> None:
        """The file's urlmap asks for a slash."""
        process = self.start(self.a_database(), '* controller')
        lines = process.stdout.splitlines()
        self.assertIn('* 400', lines, process.stdout)
        self.assertIn('controller 400', lines, process.stdout)

    def test_what_few_requests_need_comes_later(self) -> None:
        notifying = '[notifications]\nnotification_format = versioned\n'
        for more, loaded, notifies in (
            ('', '', False),
            (notifying, ' '.join(_LATER), True),
        ):
            process = self.run_pool(
                self.a_database(),
                _SAY,
                ' '.join(_LATER),
                more + '[api_database]\nconnection = sqlite://\n',
            )
            for line in (
                f'loaded: {loaded}'.strip(),
                f'notifies: {notifies}',
                'bus: nova',
                'database: sqlite://',
            ):
                self.assertIn(line, process.stdout.splitlines())

    def test_does_not_start_without_a_database(self) -> None:
        process = self.start('', '/')
        self.assertNotEqual(0, process.returncode)
        self.assertIn('[nova_accel_database] connection', process.stdout)

    def test_does_not_start_on_an_older_schema(self) -> None:
        process = self.start('sqlite://', '/')
        self.assertNotEqual(0, process.returncode)
        self.assertIn('run "nova-accel-manage db sync"', process.stdout)
