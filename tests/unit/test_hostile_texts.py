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

"""No command prints a text of a host, tenant or device as it is.

Each command of both programs runs where every text that somebody else may set
would move the cursor of a terminal, or forge a line.
"""

import ast
from collections.abc import Callable
import csv
import datetime
from importlib import metadata
import io
import json
import pathlib
import types
from typing import Any

import fixtures
import sqlalchemy as sa
import testtools

import nova_accel
from nova_accel import exceptions
from nova_accel.cmd import check_result
from nova_accel.cmd.cyborg import import_cyborg
from nova_accel.cmd.cyborg import steps
from nova_accel.db import draining as draining_db
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import finding
from nova_accel.model import nova_server
from nova_accel.model.fleet import fleet_sources
from nova_accel.overview import printing
from nova_accel.testing import pci_functions
from nova_accel.testing import reports
from unit.cmd import base as cmd_base
from unit.osc import draining
from unit.osc import fleet
from unit.osc import test_room
from unit.virt.publishing import previewed

#: Sequences for a terminal, in C0 and in C1, ends of lines, and bidi controls.
_STORED = (
    '\x1b[2J\x1b]0;title\x07\x9b2J\x85\x0b\x7f\r\nCRITICAL forged'
    '\u2028\u2029\u202a\u202e\u2066\u2069'
)

#: Nova's words may even have half of a surrogate pair, which no database has.
_SAID = f'{_STORED}\ud800'

#: The columns of long texts that have a form which the API checks.
_FORMED = {'hostname', 'resource_class'}

#: The length of other texts that somebody else may choose, in characters.
_LONG = 255

_SOURCES = pathlib.Path(nova_accel.__file__).parent


def _commands(group: str) -> dict[str, type[Any]]:
    """The commands of a program, by the names of their entry points."""
    return {
        found.name: found.load()
        for found in metadata.distribution('nova-accel').entry_points
        if found.group == group
    }


def _poison() -> None:
    """Let each text in the database that has no form end badly."""
    with engine.writer() as connection:
        for table in schema.METADATA.sorted_tables:
            texts = {
                column.name: sa.func.coalesce(column, '') + _STORED
                for column in table.columns
                if isinstance(column.type, sa.String)
                and column.type.length in (None, _LONG)
                and column.name not in _FORMED
            }
            if texts:
                connection.execute(sa.update(table).values(texts))
        devices = schema.DEVICES
        connection.execute(
            sa.update(devices).values(attributes={_STORED: _STORED})
        )


class _Hostile(testtools.TestCase):
    """Runs commands, and looks at what they print."""

    app: types.SimpleNamespace

    def printed(self, command: type[Any], *arguments: str) -> str:
        """All that a command prints, with the words of its fault."""
        for stream in (self.app.stdout, self.app.stderr):
            stream.seek(0)
            stream.truncate()
        made = command(self.app, None)
        made.cmd_name = 'command'
        fault = ''
        try:
            made.run(made.get_parser('command').parse_args([*arguments]))
        except Exception as error:
            # The program prints it.
            fault = str(error)
        said: str = self.app.stdout.getvalue()
        return said + self.app.stderr.getvalue() + fault

    def assert_harmless(self, text: str) -> None:
        for line in text.split('\n'):
            self.assertTrue(line.isprintable(), ascii(line))
            self.assertFalse(line.lstrip().startswith('CRITICAL'), line)

    def assert_list_harmless(
        self, command: type[Any], *arguments: str
    ) -> None:
        """In each format, and something hostile is shown at all."""
        other = 'csv' if issubclass(command, printing.Lister) else 'shell'
        for form in ('table', other, 'json', 'yaml', 'value'):
            text = self.printed(command, *arguments, '-f', form)
            self.assertIn('forged', text, (command, form))
            self.assert_harmless(text)
            if form == 'json':
                json.loads(self.app.stdout.getvalue())
            if form == 'csv':
                [*csv.reader(io.StringIO(self.app.stdout.getvalue()))]

    def assert_walked(
        self, group: str, cases: dict[str, Callable[[type[Any]], None]]
    ) -> None:
        commands = _commands(group)
        self.assertEqual(commands.keys(), cases.keys())
        for name, command in commands.items():
            self.assertTrue(issubclass(command, printing.Command), name)
            cases[name](command)


class TestManage(cmd_base.DriftTestCase, _Hostile):
    def setUp(self) -> None:
        super().setUp()
        self.app = types.SimpleNamespace(
            stdout=io.StringIO(),
            stderr=io.StringIO(),
            options=types.SimpleNamespace(debug=False),
        )
        self.directory = self.useFixture(fixtures.TempDir()).path
        self.host = reports.SimulatedHost(
            regions=(2,),
            findings=(
                finding.Finding(finding.Kind.NOT_DONE, 'x', False, None, 'd'),
            ),
        )
        self.host.report()
        self.acquire()
        _poison()
        for name, fake in (
            ('cells.read', self.nova),
            ('cells.connect', lambda: None),
            ('embedded_flavor.change_key', self.refuse),
            ('cyborg.import_cyborg.ImportCyborg._do', self.imported),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(f'nova_accel.cmd.{name}', fake)
            )

    def nova(self, uuids: set[str]) -> fleet_sources.NovaReading:
        return fleet_sources.NovaReading(
            servers={
                uuid: fleet_sources.FleetServer(
                    _SAID,
                    'active',
                    name=_SAID,
                    flavor=_SAID,
                    image=_SAID,
                )
                for uuid in uuids
            }
        )

    def refuse(self, *_arguments: object) -> bool:
        raise exceptions.Conflict(f'it is {_SAID}')

    def imported(self, *_arguments: object) -> list[steps.StepResult]:
        return [steps.StepResult(_SAID, _SAID)]

    def test_every_command(self) -> None:
        listed = self.assert_list_harmless
        [profile] = self._uuids(schema.DEVICE_PROFILES)

        def printed(*arguments: str) -> Callable[[type[Any]], None]:
            def run(command: type[Any]) -> None:
                self.assert_harmless(self.printed(command, *arguments))

            return run

        self.servers[cmd_base.SERVER] = nova_server.Server(_SAID)
        self.assert_walked(
            'nova_accel.manage',
            {
                'audit': listed,
                'db_check': printed(),
                'db_sync': printed(),
                'db_version': printed(),
                'device-spec_check': self._device_spec_check,
                'discover': self._discover,
                'explain': lambda command: listed(command, profile),
                'fleet_list': self._fleet_list,
                'fleet_map': self._fleet_map,
                # Only profiles that were named well are listed.
                'fleet_room': printed(_SAID),
                'host_forget': printed('compute-1'),
                'host_list': listed,
                'host_remove': printed('compute-1'),
                'import-cyborg': lambda command: listed(
                    command, '--from', 'x'
                ),
                'metrics': self._metrics,
                'server_to-compat': lambda command: listed(
                    command, cmd_base.SERVER
                ),
                'server_to-native': lambda command: listed(
                    command, cmd_base.SERVER
                ),
            },
        )

    def _host(self) -> str:
        """A host whose devices have hostile names; a file with lines."""
        self.useFixture(
            previewed.Previewed(
                [
                    pci_functions.function(
                        '0000:3d:00.0',
                        'abcd',
                        '0001',
                        class_code='010802',
                        vendor=_SAID,
                        product=_SAID,
                    )
                ]
            )
        )
        path = pathlib.Path(self.directory, 'lines.conf')
        path.write_text(
            '[nova_accel]\n'
            'device_spec = {"vendor_id": "abcd", "driver": "nvme"}\n'
        )
        return str(path)

    def _device_spec_check(self, command: type[Any]) -> None:
        self.assert_list_harmless(command, self._host())

    def _discover(self, command: type[Any]) -> None:
        self._host()
        self.assert_list_harmless(command)

    def _uuids(self, table: sa.Table) -> list[str]:
        with engine.reader() as connection:
            return [*connection.scalars(sa.select(table.c.uuid))]

    def _fleet_list(self, command: type[Any]) -> None:
        for arguments in ((), ('--long',), ('--drift',)):
            self.assert_list_harmless(command, *arguments)
        text = self.printed(command, '--json')
        self.assert_harmless(text)
        self.assertIn(
            _SAID,
            [unit['server_name'] for unit in json.loads(text)['units']],
        )

    def _fleet_map(self, command: type[Any]) -> None:
        path = pathlib.Path(self.directory, 'map.html')
        self.printed(command, '--output', str(path))
        self.assertIn('forged', path.read_text())
        self.assert_harmless(path.read_text())

    def _metrics(self, command: type[Any]) -> None:
        path = pathlib.Path(self.directory, 'a.prom')
        text = self.printed(command)
        self.printed(command, '--textfile', str(path))
        for found in (text, path.read_text()):
            self.assertIn('forged', found)
            self.assert_harmless(found)

    def test_json_of_an_import(self) -> None:
        text = self.printed(
            import_cyborg.ImportCyborg, '--from', 'x', '--json'
        )
        self.assert_harmless(text)
        self.assertEqual(_SAID, json.loads(text)['results'][0]['what'])

    def test_a_fault_of_any_kind(self) -> None:
        def fail(*_arguments: object) -> None:
            raise ValueError(_SAID)

        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.cmd.cells.servers', fail)
        )
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.cmd.cells.read', fail)
        )
        commands = _commands('nova_accel.manage')
        for name, arguments in (
            ('audit', ()),
            ('fleet_list', ()),
            ('host_forget', ('compute-1',)),
        ):
            for self.app.options.debug in (False, True):
                text = self.printed(commands[name], *arguments)
                self.assertIn('forged', text)
                self.assert_harmless(text)

    def test_an_upgrade_check(self) -> None:
        for make in (
            check_result.success,
            check_result.warning,
            check_result.failure,
        ):
            self.assert_harmless(make(_SAID).details)


class TestOpenstackclient(fleet.FleetTestCase, _Hostile):
    def setUp(self) -> None:
        super().setUp()
        draining_db.begin('compute-1', 'fans', None, 'admin')
        _poison()
        self.nova.servers[fleet.SERVER].update(
            {
                'name': _SAID,
                'flavor': {'original_name': _SAID},
                'image': {'id': _SAID},
                'OS-EXT-SRV-ATTR:host': _SAID,
            }
        )
        self.directory = self.useFixture(fixtures.TempDir()).path
        with engine.reader() as connection:
            self.profile = str(
                connection.scalar(sa.select(schema.DEVICE_PROFILES.c.uuid))
            )

    def _availability(self, command: type[Any]) -> None:
        """No device of a poisoned database is of a class that exists."""
        told = {
            'min_servers': 1,
            'max_servers': 1,
            'is_limited_by_quota': False,
            'obstacle': None,
            'drain_ends_at': _SAID,
            'hosts': [{'hostname': _SAID, 'servers': 1}],
            'not_free': [
                {'resource_class': _SAID, 'reason': _SAID, 'units': 1}
            ],
        }
        with fixtures.MonkeyPatch(
            'nova_accel.osc.accelerator_calls.call',
            lambda *_arguments: {'availability': told},
        ):
            self.assert_list_harmless(command, 'gold')

    def test_every_command(self) -> None:
        listed = self.assert_list_harmless

        def unknown_host(command: type[Any]) -> None:
            self.assert_harmless(self.printed(command, _SAID))

        def unknown_profile(command: type[Any]) -> None:
            self.assert_harmless(self.printed(command, '--for', _SAID))

        self.assert_walked(
            'openstack.accelerator.v2',
            {
                'accelerator_device_drain': self._change_device,
                'accelerator_device_holder_list': lambda command: listed(
                    command, '--long'
                ),
                'accelerator_device_profile_availability': self._availability,
                'accelerator_device_profile_explain': lambda command: listed(
                    command, self.profile
                ),
                'accelerator_device_profile_set': lambda command: listed(
                    command, self.profile, '--description', _STORED
                ),
                'accelerator_device_undrain': self._change_device,
                'accelerator_fleet_list': self._list,
                'accelerator_fleet_map': self._map,
                # See TestDrain.
                'accelerator_host_drain': unknown_host,
                'accelerator_host_drain_list': listed,
                'accelerator_host_drain_show': lambda command: listed(
                    command, 'compute-1'
                ),
                'accelerator_host_undrain': unknown_host,
                # See TestRoom.
                'accelerator_room_make': unknown_profile,
                'accelerator_room_plan': unknown_profile,
                'accelerator_server_replace': self._replace,
                'accelerator_server_set': lambda command: self._set(
                    command, '--device-profile', _STORED
                ),
                'accelerator_server_unset': self._set,
                'accelerator_server_show': lambda command: listed(
                    command, fleet.SERVER
                ),
                'accelerator_topology_list': self._topology,
                'accelerator_usage_show': self._usage,
            },
        )

    def _list(self, command: type[Any]) -> None:
        for argument in ('--long', '--drift'):
            self.assert_list_harmless(command, argument)

    def _topology(self, command: type[Any]) -> None:
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.DEVICES).values(
                    link_sets=[f'{_STORED} nvlink={_STORED}']
                )
            )
        self.assert_list_harmless(command)

    def _change_device(self, command: type[Any]) -> None:
        for arguments in ((_SAID,), (_SAID, '--host', _SAID)):
            self.assert_harmless(self.printed(command, *arguments))
        with engine.reader() as connection:
            uuid = connection.scalar(
                sa.select(schema.DEVICES.c.uuid).order_by(schema.DEVICES.c.id)
            )
        self.assert_list_harmless(command, uuid, '--wait', '0')

    def _replace(self, command: type[Any]) -> None:
        self.assert_harmless(self.printed(command, _SAID))
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.api.compute.rpc.replace', lambda *_arguments: None
            )
        )
        text = self.printed(command, fleet.SERVER)
        self.assertIn('has other devices now', text)
        self.assert_harmless(text)

    def _set(self, command: type[Any], *arguments: str) -> None:
        self.assert_harmless(self.printed(command, *arguments, _SAID))
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.api.compute.profile_setting.set_profile',
                lambda *_arguments: None,
            )
        )
        text = self.printed(command, *arguments, fleet.SERVER)
        self.assertIn('device profile', text)
        self.assert_harmless(text)

    def _usage(self, command: type[Any]) -> None:
        with engine.writer() as connection:
            connection.execute(
                sa.insert(schema.HELD_PERIODS).values(
                    arq_uuid=fleet.SERVER,
                    began_at=schema.now() - datetime.timedelta(hours=1),
                    **dict.fromkeys(
                        ('project_id', 'product', 'resource_class', 'shape'),
                        _STORED,
                    ),
                )
            )
        self.assert_list_harmless(command)
        self.assert_harmless(self.printed(command, '--project', _SAID))

    def _map(self, command: type[Any]) -> None:
        path = pathlib.Path(self.directory, 'map.html')
        self.printed(command, '--output', str(path))
        self.assertIn('forged', path.read_text())
        self.assert_harmless(path.read_text())


class TestDrain(draining.DrainTestCase, _Hostile):
    def test_servers_that_do_not_leave(self) -> None:
        self.useFixture(
            fixtures.MonkeyPatch('time.sleep', self.nova.pass_time)
        )
        self.boot(_SAID, fails={'os-migrateLive': _SAID})
        self.boot(_SAID, status=_SAID)
        command = _commands('openstack.accelerator.v2')[
            'accelerator_host_drain'
        ]
        self.assert_list_harmless(command, 'compute-1', '--reason', _STORED)


class TestRoom(test_room.RoomTestCase, _Hostile):
    def test_servers_that_do_not_move(self) -> None:
        for hostname in self.hosts:
            self.boot(_SAID, hostname, fails={'os-migrateLive': _SAID})
        commands = _commands('openstack.accelerator.v2')
        for name in ('plan', 'make'):
            self.assert_list_harmless(
                commands[f'accelerator_room_{name}'], '--for', 'both'
            )


class TestSources(testtools.TestCase):
    def test_nothing_else_writes_to_the_output(self) -> None:
        """Only the base does, and ``main`` tells what it cannot read."""
        found = {
            str(path.relative_to(_SOURCES))
            for room in ('cmd', 'osc', 'overview')
            for path in _SOURCES.joinpath(room).rglob('*.py')
            if any(map(_prints, ast.walk(ast.parse(path.read_text()))))
        }
        self.assertEqual({'overview/printing.py', 'cmd/status.py'}, found)


def _prints(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ('stdout', 'stderr')
    return isinstance(node, ast.Name) and node.id == 'print'
