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
import datetime
import types
from typing import Any

import fixtures
from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.cmd import audit
from nova_accel.db import adoption
from nova_accel.db import client_arqs
from nova_accel.db import host_arqs
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import finding
from nova_accel.model import nova_server
from nova_accel.model.fleet import disagreement
from nova_accel.testing import reports
from unit.cmd import base


class TestAudit(base.DriftTestCase):
    def run_audit(self, *arguments: str) -> tuple[int, str]:
        """The exit status and what is printed."""
        return base.run_command(audit.Audit, 'audit', *arguments, '-f', 'csv')

    def assert_clean(self) -> None:
        status, text = self.run_audit()
        self.assertEqual((0, 1), (status, len(text.splitlines())), text)

    def test_nothing_is_wrong(self) -> None:
        self.assert_clean()
        self.assertEqual([], self.asked)
        self.acquire()
        for server in (
            nova_server.Server(base.HERE),
            nova_server.Server(base.THERE, is_migrating=True),
            nova_server.Server(None, task_state='spawning'),
        ):
            self.servers[base.SERVER] = server
            self.assert_clean()

    def test_what_nova_has_bound_is_freed(self) -> None:
        uuid = self.bind()
        self.servers[base.SERVER] = nova_server.Server(base.THERE)
        status, text = self.run_audit()
        self.assertEqual(1, status)
        for part in (
            'compute-1',
            base.SERVER,
            uuid,
            f'on host {base.THERE}',
            'delete them',
        ):
            self.assertIn(part, text)
        self.assertEqual(1, self.taken())
        status, text = self.run_audit('--fix')
        self.assertEqual(0, status, text)
        self.assertIn('done', text)
        self.assertEqual(([], 0), (self.arqs(), self.taken()))
        self.assert_clean()

    def test_what_a_host_holds_is_left_to_it(self) -> None:
        """A guest may have it."""
        self.acquire()
        for silent, remedy in (
            (False, 'the host will unplug and free them'),
            (True, 'nova-accel-manage host forget'),
        ):
            if silent:
                self.silence()
            for arguments in ((), ('--fix',)):
                status, text = self.run_audit(*arguments)
                self.assertEqual(1, status)
                self.assertIn('its instance does not exist', text)
                self.assertIn(remedy, text)
        self.assertEqual(1, self.taken())

    def test_half_a_set_of_a_server(self) -> None:
        self.acquire()
        self.servers[base.SERVER] = nova_server.Server(base.HERE)
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.ATTACH_HANDLES).values(arq_uuid=None)
            )
        status, text = self.run_audit('--fix')
        self.assertEqual(1, status)
        self.assertIn('not all of its ARQs have a device', text)
        self.servers[base.SERVER] = nova_server.Server(
            base.HERE, task_state='rebuilding'
        )
        self.assert_clean()

    def test_what_is_made_again_after_a_reboot_of_the_host(self) -> None:
        self.acquire()
        self.servers[base.SERVER] = nova_server.Server(base.HERE)
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.ARQS).values(state='Provisioning')
            )
        self.assert_clean()

    def test_what_nobody_has_bound(self) -> None:
        (made,) = client_arqs.create('fpga', 'project')
        self.assert_clean()
        self.age(schema.ARQS, 'created_at', datetime.timedelta(days=2))
        status, text = self.run_audit()
        self.assertEqual(1, status)
        self.assertIn(f'{made["uuid"]},it is Initial', text.replace('"', ''))
        self.assertEqual(0, self.run_audit('--fix')[0])
        self.assertEqual([], self.arqs())

    def test_a_handle_of_what_is_not_bound(self) -> None:
        (made,) = client_arqs.create('fpga', 'project')
        handle = self.host.devices()[0].deployables[0].handles[0].uuid
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.ATTACH_HANDLES)
                .where(schema.ATTACH_HANDLES.c.uuid == handle)
                .values(arq_uuid=made['uuid'])
            )
        self.assertEqual(1, self.run_audit()[0])
        self.assertEqual(0, self.run_audit('--fix')[0])
        self.assertEqual(0, self.taken())

    def test_what_changes_meanwhile_is_left(self) -> None:
        uuid = self.bind()
        servers = audit.cells.servers

        def adopted_meanwhile(uuids: set[str]) -> Any:
            adoption.adopt((base.SERVER, 'compute-1', 'active'), 1, [uuid])
            return servers(uuids)

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.cmd.cells.servers', adopted_meanwhile
            )
        )
        self.run_audit('--fix')
        self.assertEqual(1, self.taken())

    def test_a_remedy_that_fails(self) -> None:
        self.bind()

        def fail(*_arguments: Any) -> None:
            raise exceptions.ServiceUnavailable('the database is away')

        with fixtures.MonkeyPatch(
            'nova_accel.db.host_arqs.delete_unadopted', fail
        ):
            status, text = self.run_audit('--fix')
        self.assertEqual(1, status)
        self.assertIn('failed: the database is away', text)

    def test_what_hosts_find_of_placement(self) -> None:
        """And have not repaired; other kinds are for the fleet's list."""
        dataclasses.replace(
            self.host,
            findings=tuple(
                finding.Finding(
                    kind, f'words of {kind}', is_repaired, base.SERVER
                )
                for kind, is_repaired in (
                    (finding.Kind.UNCOUNTED, False),
                    (finding.Kind.ALLOCATION, True),
                    (finding.Kind.GUEST_GONE, False),
                )
            ),
        ).report()
        status, text = self.run_audit()
        self.assertEqual((1, 2), (status, len(text.splitlines())), text)
        for part in ('compute-1', base.SERVER, 'words of uncounted', 'again'):
            self.assertIn(part, text)

    def test_what_placement_counts(self) -> None:
        compared = [
            finding.Finding(
                kind,
                'says',
                hostname='compute-1',
                about=base.SERVER,
                but='but',
                cure='cure',
            )
            for kind in (
                disagreement.Subject.UNCOUNTED,
                disagreement.Subject.OVERCOUNTED,
                disagreement.Subject.GONE,
            )
        ]
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.cmd.database_fleet.read',
                lambda asks_placement: types.SimpleNamespace(
                    compared=compared if asks_placement else []
                ),
            )
        )
        self.assert_clean()
        status, text = self.run_audit('--placement')
        self.assertEqual((1, 3), (status, len(text.splitlines())), text)
        self.assertIn('says, but but', text)
        self.assertIn('cure', text)

    def test_nova_does_not_answer(self) -> None:
        self.bind()

        def fail(_uuids: set[str]) -> None:
            raise RuntimeError('Nova is away')

        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.cmd.cells.servers', fail)
        )
        self.assertEqual((2, 'Nova is away\n'), self.run_audit('--fix'))
        self.assertEqual(1, self.taken())

    def test_hosts_are_read_in_pages(self) -> None:
        self.useFixture(fixtures.MonkeyPatch('nova_accel.cmd.audit.PAGE', 2))
        for number in range(2, 6):
            other = reports.SimulatedHost(f'compute-{number}')
            other.report()
            host_arqs.acquire(
                host_arqs.AcquireRequest(
                    uuidutils.generate_uuid(),
                    other.hostname,
                    'active',
                    1,
                    'project',
                    'fpga',
                    (other.allocated(),),
                )
            )
        self.assertEqual(4, len(list(audit.find())))
        self.assertEqual([1, 2, 1], self.asked)
