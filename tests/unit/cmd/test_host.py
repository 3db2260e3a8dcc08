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


import io
import types
from typing import Any

from nova_accel import exceptions
from nova_accel.cmd import host
from nova_accel.db import binding
from nova_accel.db import engine
from nova_accel.db import schema
from nova_accel.model import drift
from nova_accel.testing import reports
from unit.cmd import base


class TestForget(base.DriftTestCase):

    def setUp(self) -> None:
        super().setUp()
        self.other = reports.SimulatedHost('compute-2')
        self.other.report()
        binding.acquire(binding.Request(
            base.SERVER, 'compute-2', 'active', 1, 'project', 'fpga',
            (self.other.allocated(),)))
        self.before = self.everything()

    def everything(self) -> dict[str, Any]:
        with engine.reader() as connection:
            return {table.name: connection.execute(table.select()).all()
                    for table in schema.METADATA.sorted_tables}

    def forget(self) -> None:
        host.Forget(types.SimpleNamespace(stdout=io.StringIO()), None).run(
            types.SimpleNamespace(hostname='compute-1'))

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
        self.servers[base.SERVER] = drift.Server(base.THERE)
        self.forget()
        left = self.everything()
        for name in ('hosts', 'devices', 'deployables', 'attach_handles',
                     'arqs', 'bindings'):
            self.assertEqual(1, len(left[name]), name)
        self.assertEqual('compute-2', left['hosts'][0].hostname)
        self.assertEqual('compute-2', left['arqs'][0].hostname)
        # Should it come back after all, it is a new host.
        self.host.report()
        self.assertEqual(3, len(self.everything()['attach_handles']))

    def test_it_says_what_it_has_deleted(self) -> None:
        self.bind()
        self.silence()
        output = io.StringIO()
        host.Forget(types.SimpleNamespace(stdout=output), None).run(
            types.SimpleNamespace(hostname='compute-1'))
        self.assertIn('2 attach_handles deleted\n1 arqs deleted\n',
                      output.getvalue())

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
                drift.Server(base.HERE),
                drift.Server(base.THERE, is_migrating=True),
                drift.Server(None, task_state='rebuilding')):
            self.servers[base.SERVER] = server
            self.assert_refused(exceptions.Conflict, base.SERVER)
