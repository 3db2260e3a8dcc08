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

import contextlib
import subprocess
import sys

import fixtures
import requests
import testtools

COMMAND = [sys.executable, '-m', 'rig.serving.main']

WHO = {'X-User-Id': 'user', 'X-Project-Id': 'project'}


class TestServeApi(testtools.TestCase):
    def serve(self, *arguments):
        """:returns: the process and the URL"""
        process = subprocess.Popen(
            [*COMMAND, *arguments], stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(self.end, process)
        return process, process.stdout.readline().strip()

    def end(self, process):
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        return process.wait(30)

    def ask(self, url, roles=None, **kwargs):
        headers = {} if roles is None else {**WHO, 'X-Roles': roles}
        return requests.request(
            kwargs.pop('method', 'GET'),
            f'{url}/device_profiles',
            headers=headers,
            timeout=60,
            **kwargs,
        )

    def test_believes_the_headers(self):
        _process, url = self.serve()
        self.assertEqual(401, self.ask(url).status_code)
        self.assertEqual(
            {'device_profiles': []}, self.ask(url, 'reader').json()
        )
        body = [{'name': 'gold', 'groups': [{'resources:FPGA': '1'}]}]
        for roles, status in (('reader,member', 403), ('admin', 201)):
            answer = self.ask(url, roles, method='POST', json=body)
            self.assertEqual(status, answer.status_code)

    def test_keeps_the_database_that_is_named(self):
        directory = self.useFixture(fixtures.TempDir()).path
        database = f'--db=sqlite:///{directory}/file'
        body = [{'name': 'gold', 'groups': [{'resources:FPGA': '1'}]}]
        process, url = self.serve(database)
        self.ask(url, 'admin', method='POST', json=body)
        self.assertEqual(0, self.end(process))
        self.assertRaises(requests.ConnectionError, self.ask, url)
        _process, url = self.serve(database)
        [profile] = self.ask(url, 'reader').json()['device_profiles']
        self.assertEqual('gold', profile['name'])

    def refusal(self, *arguments):
        """What is said to arguments with which nothing is served."""
        done = subprocess.run(
            [*COMMAND, *arguments], capture_output=True, text=True, check=False
        )
        self.assertEqual((1, ''), (done.returncode, done.stdout))
        return done.stderr

    def test_listens_on_the_loopback_alone(self):
        self.assertIn(
            '0.0.0.0 is no address of the loopback',
            self.refusal('--address=0.0.0.0'),
        )

    def test_says_why_it_does_not_start(self):
        self.assertIn(
            '[nova_accel_database] connection', self.refusal('--db=frob://')
        )
