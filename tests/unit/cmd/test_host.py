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


import datetime
import io
import types
from typing import Any
import uuid as uuid_module

import fixtures
from keystoneauth1 import exceptions as ks_exceptions

from nova_accel import exceptions
from nova_accel.cmd import host
from nova_accel.db import draining
from nova_accel.db import host as host_db
from nova_accel.db import host_arqs
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import naming
from nova_accel.model import nova_server
from nova_accel.testing import reports
from nova_accel.testing import scheduling
from unit.cmd import base


class TestForget(base.DriftTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.other = reports.SimulatedHost('compute-2')
        self.other.report()
        host_arqs.acquire(
            host_arqs.AcquireRequest(
                base.SERVER,
                'compute-2',
                'active',
                1,
                'project',
                'fpga',
                (self.other.allocated(),),
            )
        )
        self.before = self.everything()

    def everything(self) -> dict[str, Any]:
        with engine.reader() as connection:
            return {
                table.name: connection.execute(table.select()).all()
                for table in schema.METADATA.sorted_tables
            }

    def forget(self, dry_run: bool = False) -> str:
        output = io.StringIO()
        host.Forget(types.SimpleNamespace(stdout=output), None).run(
            types.SimpleNamespace(hostname='compute-1', dry_run=dry_run)
        )
        return output.getvalue()

    def assert_refused(self, fault: type[Exception], *parts: str) -> None:
        before = self.everything()
        error = self.assertRaises(fault, self.forget)
        for part in parts:
            self.assertIn(part, str(error))
        self.assertEqual(before, self.everything())

    def test_all_that_it_has_is_deleted(self) -> None:
        self.acquire()
        self.silence()
        self.other.report()
        self.servers[base.SERVER] = nova_server.Server(base.THERE)
        self.forget()
        left = self.everything()
        for name in (
            'hosts',
            'devices',
            'deployables',
            'attach_handles',
            'arqs',
            'bindings',
        ):
            self.assertEqual(1, len(left[name]), name)
        self.assertEqual('compute-2', left['hosts'][0].hostname)
        self.assertEqual('compute-2', left['arqs'][0].hostname)
        # Should it come back after all, it is a new host.
        self.host.report()
        self.assertEqual(3, len(self.everything()['attach_handles']))

    def test_it_says_what_it_has_deleted(self) -> None:
        self.bind()
        self.silence()
        self.assertIn(
            '2 attach_handles deleted\n1 arqs deleted\n', self.forget()
        )

    def test_a_dry_run_deletes_nothing(self) -> None:
        self.bind()
        self.silence()
        before = self.everything()
        self.assertIn(
            '2 attach_handles would be deleted\n1 arqs would be deleted\n',
            self.forget(dry_run=True),
        )
        self.assertEqual(before, self.everything())

    def test_a_dry_run_is_refused_as_the_run_is(self) -> None:
        error = self.assertRaises(
            exceptions.Conflict, self.forget, dry_run=True
        )
        self.assertIn('compute-1', str(error))

    def test_refused_while_it_reports(self) -> None:
        self.assert_refused(exceptions.Conflict, 'compute-1', '180 s')

    def test_refused_for_a_host_that_is_not_known(self) -> None:
        self.host = reports.SimulatedHost('compute-1')
        self.silence()
        self.forget()
        self.assert_refused(exceptions.NotFound, 'compute-1')

    def test_refused_while_a_server_needs_it(self) -> None:
        self.acquire()
        self.silence()
        for server in (
            nova_server.Server(base.HERE),
            nova_server.Server(base.THERE, is_migrating=True),
            nova_server.Server(None, task_state='rebuilding'),
        ):
            self.servers[base.SERVER] = server
            self.assert_refused(exceptions.Conflict, base.SERVER)


class TestList(base.DriftTestCase):
    def test_each_host_with_what_it_has(self) -> None:
        draining.begin('compute-1', 'new firmware', None, 'admin')
        self.silence()
        reports.SimulatedHost('compute-2').report()
        columns, rows = host.List(None, None).take_action(None)
        self.assertEqual(host.COLUMNS, columns)
        self.assertEqual(
            [
                ('compute-1', 'silent', 1, 2, 'new firmware'),
                ('compute-2', 'reports', 1, 1, ''),
            ],
            [(row[0], row[2], *row[4:]) for row in rows],
        )

    def test_a_drain_that_is_announced(self) -> None:
        start = datetime.datetime(2120, 1, 1, 6, tzinfo=datetime.UTC)
        draining.begin('compute-1', 'new firmware', None, 'admin', start)
        _columns, rows = host.List(None, None).take_action(None)
        [row] = rows
        self.assertEqual('from 2120-01-01 06:00 UTC: new firmware', row[6])


class TestRemove(base.DriftTestCase):
    """Of a host whose nova-compute has Nova's own driver again."""

    def setUp(self) -> None:
        super().setUp()
        self.placement = self.useFixture(scheduling.Placement())
        root = self.provider('compute-1', self.host.node_uuid)
        self.pci = self.provider('compute-1_pci', parent=root)
        card = self.provider('compute-1_accel_card', parent=root, ours=True)
        self.region = self.provider(
            'compute-1_accel_card_region0', parent=card, ours=True
        )

    def provider(
        self,
        name: str,
        uuid: str | None = None,
        parent: str | None = None,
        ours: bool = False,
    ) -> str:
        with fixtures.MonkeyPatch(
            'oslo_utils.uuidutils.generate_uuid',
            lambda: uuid or str(uuid_module.uuid4()),
        ):
            return self.placement.add_provider(
                name,
                {'FPGA': 2},
                parent,
                [naming.OWNERSHIP_TRAIT] if ours else (),
            )

    def remove(self) -> str:
        output = io.StringIO()
        host.Remove(types.SimpleNamespace(stdout=output), None).run(
            types.SimpleNamespace(hostname='compute-1')
        )
        return output.getvalue()

    def providers(self) -> list[str]:
        answer = scheduling.checked(
            self.placement.client.get('/resource_providers', version='1.20')
        )
        return sorted(
            each['name'] for each in answer.json()['resource_providers']
        )

    def assert_refused(self, fault: type[Exception], part: str) -> None:
        self.assertIn(part, str(self.assertRaises(fault, self.remove)))
        self.assertEqual(4, len(self.providers()))
        self.assertEqual(1, len(host_db.get_all(180)))

    def test_only_ours_is_deleted(self) -> None:
        self.silence()
        output = self.remove()
        self.assertEqual(['compute-1', 'compute-1_pci'], self.providers())
        self.assertEqual([], host_db.get_all(180))
        for part in (
            'compute-1_accel_card_region0 deleted in Placement',
            '2 attach_handles deleted',
            'Not removed: ',
        ):
            self.assertIn(part, output)

    def test_refused_while_it_reports(self) -> None:
        self.assert_refused(exceptions.Conflict, 'reports its devices')

    def test_refused_while_a_server_has_a_device(self) -> None:
        self.acquire()
        self.silence()
        self.servers[base.SERVER] = nova_server.Server(base.HERE)
        self.assert_refused(exceptions.Conflict, base.SERVER)

    def test_refused_while_placement_has_anything_allocated(self) -> None:
        """A server that became ACTIVE without its device."""
        self.silence()
        scheduling.checked(
            self.placement.client.put(
                f'/allocations/{base.SERVER}',
                {
                    'allocations': {self.region: {'resources': {'FPGA': 1}}},
                    'project_id': 'project',
                    'user_id': 'user',
                    'consumer_generation': None,
                },
                version='1.28',
            )
        )
        self.assert_refused(exceptions.Conflict, base.SERVER)

    def test_a_host_that_is_not_known(self) -> None:
        self.silence()
        self.remove()
        self.assertRaises(exceptions.NotFound, self.remove)

    def test_placement_is_away(self) -> None:
        self.silence()
        with fixtures.MonkeyPatch(
            'keystoneauth1.adapter.Adapter.get', _refuse
        ):
            self.assertRaises(exceptions.ServiceUnavailable, self.remove)
        self.remove()


def _refuse(*_args: Any, **_kwargs: Any) -> Any:
    raise ks_exceptions.ConnectFailure('away')
