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
import pathlib
import re
import sys

import testtools

from rig.loopback import control_plane
from rig.stubs import keystone
from served_api import base
from served_api import typist

#: Older packages, which tools/beside has the reasons of.
_BESIDE = pathlib.Path(sys.prefix) / 'beside'

#: What ``openstack -vv`` says before it runs a command.
_RAN = re.compile(
    r'^command: accelerator (?P<name>.+) -> (?P<where>\S+) \(auth=', re.M
)


def _commands(distribution):
    """(name, module and class) of each that it has."""
    entries = importlib.metadata.distribution(distribution).entry_points
    return {
        (
            entry.name.removeprefix('accelerator_').replace('_', ' '),
            f'{entry.module}.{entry.attr}',
        )
        for entry in entries.select(group='openstack.accelerator.v2')
    }


def _noun(command):
    return command.rpartition(' ')[0]


class EveryCommand:
    """A test is named for the noun of its commands, and types all of them.

    :cvar distribution: whose commands these have to be
    :cvar bind_more: what its ``arq bind`` is told at the end
    """

    bind_more = ()

    def setUp(self):
        super().setUp()
        self.ran = set()
        self.clouds = self.write_clouds(self.admin, self.operator)

    def _setup_identity(self):
        """With an administrator who may do what nova-compute may."""
        super()._setup_identity()
        self.operator = keystone.User(
            '4' * 32,
            'operator',
            self.admin.password,
            control_plane.DEMO_PROJECT,
            ('admin', 'service'),
        )
        self.keystone.add(self.operator)

    def beside(self, command):
        """The older packages that it is typed with."""
        return ()

    def type(self, command, *arguments, cloud='admin'):
        """What a command writes, which has to succeed."""
        done = typist.with_packages(
            *(_BESIDE / name for name in self.beside(command))
        ).type(
            '-vv',
            '--os-cloud',
            cloud,
            'accelerator',
            *command.split(),
            *arguments,
            OS_CLIENT_CONFIG_FILE=str(self.clouds),
        )
        self.assertEqual(0, done.status, done.errors)
        ran = _RAN.search(done.errors)
        self.ran.add((ran['name'], ran['where']))
        return done.output

    def ask(self, command, *arguments, **kwargs):
        """What a command shows."""
        return json.loads(
            self.type(command, *arguments, '-f', 'json', **kwargs)
        )

    def listed(self, command):
        """The uuids, by both forms of a list."""
        short, long = (
            [each['uuid'] for each in self.ask(command, *form)]
            for form in ((), ('--long',))
        )
        self.assertEqual(short, long)
        return short

    def assert_all_typed(self):
        noun = self._testMethodName.removeprefix('test_').replace('_', ' ')
        self.assertEqual(
            self.ran,
            {
                (name, where)
                for name, where in _commands(self.distribution)
                if _noun(name) == noun
            },
        )

    def test_device_profile(self):
        made = self.ask(
            'device profile create',
            'gold',
            json.dumps(base.GROUPS),
            '--description',
            'an FPGA',
        )
        shown = self.ask('device profile show', made['uuid'])
        self.assertEqual(
            ('gold', 'an FPGA'), (shown['name'], shown['description'])
        )
        self.assertEqual([made['uuid']], self.listed('device profile list'))
        self.type('device profile delete', made['uuid'])
        self.assertEqual([], self.listed('device profile list'))
        self.assert_all_typed()

    def test_device(self):
        uuid = next(
            device['uuid']
            for device in self.ask('device list')
            if device['type'] == 'FPGA'
        )
        self.assertIn(uuid, self.listed('device list'))
        self.assertEqual('host1', self.ask('device show', uuid)['hostname'])
        for command, status in (
            ('disable', 'maintaining'),
            ('enable', 'enabled'),
        ):
            self.type(f'device {command}', uuid)
            shown = self.accelerator.get(f'/devices/{uuid}')
            self.assertEqual(status, shown['status'])
        self.assert_all_typed()

    def test_deployable(self):
        uuid = self.a_deployable()['uuid']
        self.assertIn(uuid, self.listed('deployable list'))
        self.assertEqual(uuid, self.ask('deployable show', uuid)['uuid'])
        # python-cyborgclient asks Glance for the image by a path that Glance
        # does not have, and takes any answer.
        self.keystone.register('image', 'glance', f'{self.url}/image/v2')
        image = self.upload(self.regions('host1')[0], b'bits')
        self.ask('deployable program', uuid, image)
        self.assertEqual(1, len(self.cards.programmed))
        self.assert_all_typed()

    def test_arq(self):
        self.create_profile('gold', base.GROUPS)
        uuid = self.ask('arq create', 'gold')['uuid']
        self.assertEqual([uuid], self.listed('arq list'))
        self.assertEqual('Initial', self.ask('arq show', uuid)['state'])
        server = self.boot(self._create_flavor())['id']
        bound = self.ask(
            'arq bind',
            uuid,
            'host1',
            server,
            self.a_deployable()['rp_uuid'],
            *self.bind_more,
            cloud='operator',
        )
        self.assertEqual(
            ('Bound', 'host1', server, 'PCI'),
            tuple(
                bound[name]
                for name in (
                    'state',
                    'hostname',
                    'instance_uuid',
                    'attach_handle_type',
                )
            ),
        )
        unbound = self.ask('arq unbind', uuid, cloud='operator')
        self.assertEqual(
            ('Unbound', None), (unbound['state'], unbound['instance_uuid'])
        )
        self.type('arq delete', uuid)
        self.assertEqual([], self.listed('arq list'))
        self.assert_all_typed()

    def test_device_attribute(self):
        deployable = self.a_deployable()['uuid']
        made = self.ask('device attribute create', deployable, 'rack', '7')
        self.assertEqual(('rack', '7'), (made['key'], made['value']))
        self.assertIn(made['uuid'], self.listed('device attribute list'))
        shown = self.ask('device attribute show', made['uuid'])
        self.assertEqual('rack', shown['key'])
        self.type('device attribute delete', made['uuid'])
        self.assertNotIn(made['uuid'], self.listed('device attribute list'))
        self.assert_all_typed()


class TestOpenStackClient(EveryCommand, base.ClientTestCase):
    distribution = 'python-openstackclient'


class TestCyborgClient(EveryCommand, base.ClientTestCase):
    distribution = 'python-cyborgclient'
    bind_more = (control_plane.DEMO_PROJECT.id,)

    def beside(self, command):
        if command == 'deployable program':
            return 'openstackclient', 'openstacksdk'
        return ('openstackclient',)


class TestAll(testtools.TestCase):
    def test_no_command_is_left_out(self):
        for client in (TestOpenStackClient, TestCyborgClient):
            names = {name for name, _where in _commands(client.distribution)}
            self.assertEqual(21, len(names))
            for noun in map(_noun, names):
                self.assertTrue(
                    hasattr(client, f'test_{noun.replace(" ", "_")}'), noun
                )
