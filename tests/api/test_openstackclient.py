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

"""The commands ``openstack accelerator ...``, as an operator types them.

python-openstackclient 10.5 has them itself, and leaves out those that
python-cyborgclient has under the same names.
"""

import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys

import testtools

from api import base

_OPENSTACK = pathlib.Path(sys.executable).with_name('openstack')

_NAMESPACE = 'openstack.accelerator.v2'


class CommandTestCase(base.ClientTestCase):

    def run_command(self, command, *arguments):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith('OS_')}
        return subprocess.run(
            [_OPENSTACK, '--os-cloud', 'admin', 'accelerator',
             *command.split(), *arguments],
            env={**environment, 'OS_CLIENT_CONFIG_FILE': str(self.clouds)},
            capture_output=True, text=True, check=False)

    def type(self, command, *arguments):
        """A command that has to succeed, and says nothing."""
        done = self.run_command(command, *arguments)
        self.assertEqual((0, ''), (done.returncode, done.stdout), done.stderr)

    def ask(self, command, *arguments):
        """What a command shows, which has to succeed."""
        done = self.run_command(command, *arguments, '-f', 'json')
        self.assertEqual(0, done.returncode, done.stderr)
        return json.loads(done.stdout)


class TestDeviceProfiles(CommandTestCase):

    def test_life(self):
        made = self.ask('device profile create', 'gold',
                        json.dumps(base.GROUPS), '--description', 'an FPGA')
        shown = self.ask('device profile show', made['uuid'])
        self.assertEqual(('gold', 'an FPGA'),
                         (shown['name'], shown['description']))
        [listed] = self.ask('device profile list')
        self.assertEqual(made['uuid'], listed['uuid'])
        [detailed] = self.ask('device profile list', '--long')
        self.assertEqual('an FPGA', detailed['description'])
        self.type('device profile delete', made['uuid'])
        self.assertEqual([], self.ask('device profile list'))


class TestDevices(CommandTestCase):

    def test_looked_at_and_disabled(self):
        listed = self.ask('device list')
        uuid = next(
            device['uuid'] for device in listed if device['type'] == 'FPGA')
        self.assertEqual(len(listed), len(self.ask('device list', '--long')))
        self.assertEqual('host1', self.ask('device show', uuid)['hostname'])
        for command, status in (('disable', 'maintaining'),
                                ('enable', 'enabled')):
            self.type(f'device {command}', uuid)
            shown = self.accelerator.get(f'/devices/{uuid}')
            self.assertEqual(status, shown['status'])


class TestDeployables(CommandTestCase):

    def test_looked_at(self):
        listed = self.ask('deployable list')
        self.assertEqual(len(listed),
                         len(self.ask('deployable list', '--long')))
        uuid = self.a_deployable()['uuid']
        self.assertIn(uuid, [each['uuid'] for each in listed])
        self.assertEqual(uuid, self.ask('deployable show', uuid)['uuid'])

    def test_programmed(self):
        self.need('/deployables/{uuid}/program/{same_uuid}', 'PATCH')
        [region] = self.regions('host1')[:1]
        image = self.upload(region, b'bits')
        deployable = self.a_deployable()
        self.ask('deployable program', deployable['uuid'], image)
        self.assertEqual(1, len(self.cards.programmed))


class TestRequests(CommandTestCase):

    def test_life(self):
        self.need('/accelerator_requests/{uuid}', 'DELETE')
        self.create_profile('gold', base.GROUPS)
        made = self.ask('arq create', 'gold')
        [listed] = self.ask('arq list')
        self.assertEqual(made['uuid'], listed['uuid'])
        [detailed] = self.ask('arq list', '--long')
        self.assertEqual('gold', detailed['device_profile_name'])
        shown = self.ask('arq show', made['uuid'])
        self.assertEqual('Initial', shown['state'])
        self.type('arq delete', made['uuid'])
        self.assertEqual([], self.ask('arq list'))


class TestAttributes(CommandTestCase):

    def test_life(self):
        self.need('/attributes', 'GET', 'POST')
        self.need('/attributes/{uuid}', 'GET', 'DELETE')
        deployable = self.a_deployable()['uuid']
        made = self.ask('device attribute create', deployable, 'rack', '7')
        self.assertEqual(
            ('rack', '7'), (made['key'], made['value']))
        self.assertIn(made['uuid'], [
            each['uuid'] for each in self.ask('device attribute list')])
        shown = self.ask('device attribute show', made['uuid'])
        self.assertEqual('rack', shown['key'])
        self.type('device attribute delete', made['uuid'])
        self.assertNotIn(made['uuid'], [
            each['uuid']
            for each in self.ask('device attribute list', '--long')])


class TestAll(testtools.TestCase):

    def test_no_command_is_left_out(self):
        """All are typed above, but for what only a service may do."""
        source = pathlib.Path(__file__).read_text()
        commands = {
            entry.name.removeprefix('accelerator_').replace('_', ' ')
            for entry in importlib.metadata.entry_points(group=_NAMESPACE)}
        self.assertEqual(21, len(commands))
        for command in commands:
            if command not in ('device enable', 'device disable',
                               'arq bind', 'arq unbind'):
                self.assertIn(f"'{command}'", source)
