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

"""Mistakes of those who run ``nova-accel-manage``."""

import testscenarios

from nova_accel import exceptions
from nova_accel.cmd import host
from nova_accel.model import nova_server
from unit.cmd import base as cmd_base
from unit.mistakes import base

_mistake = base.mistake


def _database(url: str) -> str:
    return f'[nova_accel_database]\nconnection = {url}\n'


class TestConfiguration(
    testscenarios.WithScenarios, cmd_base.ManageTestCase, base.MistakeTestCase
):
    configuration: str

    scenarios = [
        _mistake(
            'none',
            '[nova_accel_database] connection is not set',
            'it names the database of accelerators',
            configuration='[DEFAULT]\n',
        ),
        _mistake(
            'no URL',
            '[nova_accel_database] connection is not the URL of a database',
            'whose driver is installed',
            configuration=_database('db.example'),
        ),
        _mistake(
            'a server that is away',
            'the database of accelerators does not answer',
            '[nova_accel_database] connection names 127.0.0.1:9)',
            configuration=_database('mysql+pymysql://u:p@127.0.0.1:9/accel'),
        ),
        _mistake(
            'a file that cannot be',
            'the database of accelerators does not exist: create it',
            'or correct [nova_accel_database] connection',
            configuration=_database('sqlite:////nowhere/accel.sqlite'),
        ),
    ]

    def test_it_is_told(self) -> None:
        for command in (('db', 'check'), ('db', 'sync')):
            self.errors.truncate(0)
            self.assertEqual(
                1, self.run_command(*command, configuration=self.configuration)
            )
            self.assert_told(self.errors.getvalue())


class TestCommand(
    testscenarios.WithScenarios, cmd_base.ManageTestCase, base.MistakeTestCase
):
    """With a good database, but without Nova's."""

    command: str

    scenarios = [
        _mistake(
            'a version that does not exist',
            'the database has no version feed',
            'feed',
            command='db sync feed',
        ),
        _mistake(
            "without Nova's databases",
            '[api_database] connection is not set',
            'Run the command with the configuration of nova-api',
            command='host forget compute-1',
        ),
        _mistake(
            'a profile that does not exist',
            'Device Profile not found',
            'with name=silver',
            command='explain silver',
        ),
    ]

    def test_it_is_told(self) -> None:
        self.run_command('db', 'sync')
        self.assertEqual(1, self.run_command(*self.command.split()))
        self.assert_told(self.errors.getvalue())


class TestForget(
    testscenarios.WithScenarios, cmd_base.DriftTestCase, base.MistakeTestCase
):
    """Of a host that is not gone, or that no one knows."""

    hostname = 'compute-1'
    is_silent = False

    scenarios = [
        _mistake(
            'a host that reports',
            'host compute-1 reports its devices',
            'stop its nova-compute and wait for 180 s',
        ),
        _mistake(
            'a host with servers',
            f'has accelerators of servers that are still there, or are '
            f'migrating: {cmd_base.SERVER}',
            'Evacuate or delete them, or end their migrations',
            is_silent=True,
        ),
        _mistake(
            "the compute service's name",
            'Host compute-1.service not found',
            'it has never reported its devices',
            hostname=cmd_base.HERE,
        ),
    ]

    def test_it_is_told(self) -> None:
        if self.is_silent:
            self.acquire()
            self.silence()
            self.servers[cmd_base.SERVER] = nova_server.Server(cmd_base.HERE)
        for is_dry_run in (True, False):
            error = self.assertRaises(
                exceptions.AcceleratorError,
                host.forget,
                self.hostname,
                is_dry_run,
            )
            self.assert_told(str(error))
