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
from typing import Any

import fixtures
from openstack import exceptions as sdk_exceptions
from osc_lib import exceptions
import sqlalchemy as sa

from nova_accel.db import draining
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.osc import server
from unit import nova_servers
from unit.osc import fleet


class TestShow(fleet.FleetTestCase):
    def show(self, name: str) -> list[dict[str, object]]:
        names, rows = self.listed(server.Show, name)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def test_by_its_uuid(self) -> None:
        self.assertEqual(
            [
                {
                    'ARQ': self.arq['uuid'],
                    'Device profile': 'fpga',
                    'Group': 0,
                    'Resource class': 'FPGA',
                    'State': 'Bound',
                    'Health': 'healthy',
                    'Reason': None,
                    'Since': None,
                    'Leaving': False,
                    'Drained from': None,
                    'Drained until': None,
                    'Drain reason': None,
                }
            ],
            self.show(fleet.SERVER),
        )
        self.assertEqual([], self.nova.asked)

    def test_by_its_name(self) -> None:
        [row] = self.show(f'name of {fleet.SERVER}')
        self.assertEqual(self.arq['uuid'], row['ARQ'])

    def test_a_drained_host(self) -> None:
        draining.begin('compute-1', 'fans', None, 'admin')
        [row] = self.show(fleet.SERVER)
        self.assertEqual(
            (None, 'fans'), (row['Drained until'], row['Drain reason'])
        )
        self.assertIsNotNone(row['Drained from'])

    def test_no_such_server(self) -> None:
        for name, fault in (
            ('other', sdk_exceptions.NotFoundException),
            (self.arq['uuid'], exceptions.CommandError),
        ):
            self.assertRaises(fault, self.show, name)


class TestReplace(fleet.FleetTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.replaced: list[Any] = []
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.api.compute.rpc.replace',
                lambda *arguments: self.replaced.append(arguments[1:]),
            )
        )
        dataclasses.replace(self.hosts[0], faults=((0, 'dead'),)).report()

    def test_a_server_by_its_uuid_and_by_its_name(self) -> None:
        name = f'name of {fleet.SERVER}'
        for named in (fleet.SERVER, name):
            self.assertEqual(
                (0, f'Server {named} has other devices now\n'),
                self.run_command(server.Replace, named),
            )
            [(callee, uuid, arqs)] = self.replaced
            self.replaced.clear()
            self.assertEqual(
                ('compute-1.service', fleet.SERVER, [self.arq['uuid']]),
                (callee.service_host, uuid, arqs),
            )

    def test_one_accelerator(self) -> None:
        self.run_command(
            server.Replace,
            fleet.SERVER,
            '--accelerator',
            self.arq['uuid'],
        )
        self.assertEqual(1, len(self.replaced))
        error = self.assertRaises(
            exceptions.CommandError,
            self.run_command,
            server.Replace,
            fleet.SERVER,
            '--accelerator',
            fleet.SERVER,
        )
        self.assertIn('with 404', str(error))

    def test_nothing_has_failed(self) -> None:
        self.hosts[0].report()
        error = self.assertRaises(
            exceptions.CommandError,
            self.run_command,
            server.Replace,
            fleet.SERVER,
        )
        self.assertIn('has failed', str(error))

    def test_no_such_server(self) -> None:
        self.assertRaises(
            sdk_exceptions.NotFoundException,
            self.run_command,
            server.Replace,
            'nope',
        )


class TestSet(fleet.FleetTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.asked: list[Any] = []
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.api.compute.rpc.set_profile',
                lambda *arguments: self.asked.append(arguments[1:]),
            )
        )
        self.useFixture(nova_servers.NovaServers()).add(
            fleet.SERVER, fleet.PROJECT, 'compute-1.service', 'compute-1'
        )

    def test_a_server_by_its_uuid_and_by_its_name(self) -> None:
        name = f'name of {fleet.SERVER}'
        for named in (fleet.SERVER, name):
            for command, arguments, profile, groups, told in (
                (
                    server.Set,
                    ('--device-profile', 'fpga'),
                    'fpga',
                    [{'resources:FPGA': '1'}],
                    'device profile fpga',
                ),
                (server.Unset, (), None, [], 'no device profile'),
            ):
                self.assertEqual(
                    (0, f'Server {named} has {told} now\n'),
                    self.run_command(command, *arguments, named),
                )
                [(callee, *asked)] = self.asked
                self.asked.clear()
                self.assertEqual(
                    ['compute-1.service', fleet.SERVER, profile, groups],
                    [callee.service_host, *asked],
                )

    def test_what_its_guest_keeps(self) -> None:
        with engine.writer() as connection:
            connection.execute(sa.update(schema.ARQS).values(is_leaving=True))
        _status, text = self.run_command(server.Unset, fleet.SERVER)
        self.assertIn(f'keeps FPGA of {self.arq["uuid"]} until', text)

    def test_refusals(self) -> None:
        for arguments, told in (
            (('--device-profile', 'gold', fleet.SERVER), 'with 404'),
            (('--device-profile', '', fleet.SERVER), 'with 400'),
        ):
            error = self.assertRaises(
                exceptions.CommandError,
                self.run_command,
                server.Set,
                *arguments,
            )
            self.assertIn(told, str(error))
        self.assertEqual([], self.asked)
