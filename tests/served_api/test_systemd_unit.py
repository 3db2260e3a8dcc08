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

"""The systemd unit of the pool for Nova's services.

What systemd would do is done here: it runs the command, waits until it is told
that the service is ready, and ends it by SIGTERM.
"""

from concurrent import futures
import configparser
import pathlib
import re
import shutil
import socket
import subprocess
import sys

import fixtures
import requests
import testtools

from nova_accel import conf
from nova_accel.testing import database
from rig.serving import nova_conf
from rig.serving import process

_INSTALLED = pathlib.Path(__file__).parents[2] / 'etc/nova_accel'

_UNIT = _INSTALLED / 'systemd/nova-accel-api.service'

_UWSGI = pathlib.Path(sys.executable).with_name('uwsgi')

_START_S = 90

_SPAWNED = re.compile(r'spawned uWSGI worker (\d+) \(pid: (\d+)')

#: A line of ``log-format``.
_ANSWERED = re.compile(r'^\S+ \S+ (\d+) \[.*"GET /accelerator ', re.M)


class TestUnit(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        parser = configparser.RawConfigParser(strict=False)
        parser.optionxform = str
        parser.read(_UNIT)
        self.service = parser['Service']

    def test_it_names_what_the_package_installs(self) -> None:
        program, option, path = self.service['ExecStart'].split()
        self.assertEqual(
            ('uwsgi', '--ini'), (program.rpartition('/')[2], option)
        )
        self.assertEqual('/etc/nova_accel', path.rpartition('/')[0])
        self.assertTrue((_INSTALLED / pathlib.Path(path).name).is_file())

    def test_its_directories(self) -> None:
        """No one else reaches the sockets, and no disk is filled."""
        parser = configparser.RawConfigParser()
        parser.read(_INSTALLED / 'nova-accel-api-uwsgi.ini')
        self.assertEqual(
            f'/run/{self.service["RuntimeDirectory"]}',
            parser['uwsgi']['sockets'],
        )
        self.assertEqual('0700', self.service['RuntimeDirectoryMode'])
        self.assertEqual('600', parser['uwsgi']['chmod-socket'])
        place, _, options = self.service['TemporaryFileSystem'].partition(':')
        self.assertEqual('/tmp', place)
        self.assertIn('size=', options)

    def test_systemd_understands_it(self) -> None:
        program = shutil.which('systemd-analyze')
        if program is None:
            self.skipTest('systemd is not installed')
        path = self.directory / _UNIT.name
        path.write_text(
            _UNIT.read_text().replace('/usr/local/bin/uwsgi', str(_UWSGI))
        )
        done = subprocess.run(
            [program, 'verify', '--man=no', path],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.assertEqual((0, ''), (done.returncode, done.stdout))

    def test_ready_and_stopped(self) -> None:
        self.assertEqual('notify', self.service['Type'])
        self.assertNotIn('KillSignal', self.service)
        port = self.configure()
        ready = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(ready.close)
        ready.bind(str(self.directory / 'notify'))
        ready.settimeout(_START_S)
        pool = self.useFixture(
            process.Process(
                [_UWSGI, '--ini', self.directory / 'pool.ini'],
                self.directory / 'log',
                {
                    'NOTIFY_SOCKET': str(self.directory / 'notify'),
                    'OS_NOVA_CONFIG_DIR': str(self.directory),
                },
            )
        )
        told = b''
        while b'READY=1' not in told:
            told = ready.recv(1024)
        # uWSGI loses a signal to a worker that it has just forked.
        pool.wait_for(lambda: self.workers(pool.log, port) == {1, 2})
        self.assertEqual(0, pool.stop(), pool.log.read_text())

    def workers(self, log: pathlib.Path, port: int) -> set[int]:
        """The workers that have answered; each is asked once more.

        :returns: their numbers
        """
        url = f'http://127.0.0.1:{port}/accelerator'
        with futures.ThreadPoolExecutor() as askers:
            answers = askers.map(
                lambda _each: requests.get(url, timeout=60), range(4)
            )
            self.assertEqual(
                {200}, {answer.status_code for answer in answers}, log
            )
        numbers = {
            pid: int(number)
            for number, pid in _SPAWNED.findall(log.read_text())
        }
        return {numbers[pid] for pid in _ANSWERED.findall(log.read_text())}

    def configure(self) -> int:
        """Write the files that the unit's command reads.

        :returns: the port where the pool listens
        """
        self.useFixture(database.Database())
        nova_conf.write_api(
            self.directory, conf.CONF.nova_accel_database.connection
        )
        with socket.create_server(('127.0.0.1', 0)) as server:
            port: int = server.getsockname()[1]
        sample = (_INSTALLED / 'nova-accel-api-uwsgi.ini').read_text()
        (self.directory / 'pool.ini').write_text(
            sample.replace('controller.example.com:6666', f'127.0.0.1:{port}')
            .replace('/etc/nova_accel/', '')
            .replace('/run/nova-accel-api', str(self.directory))
            .replace('[uwsgi]', f'[uwsgi]\nvirtualenv = {sys.prefix}')
        )
        return port
