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

"""What nova-compute logs at level INFO, which an operator can leave on."""

import logging
import os
import pathlib
import subprocess
import sys

import fixtures
from nova import context as nova_context
from oslo_context import context
from oslo_log import formatters
import testtools

from functional import base

_BETWEEN = """
import functional.base
import logging
logging.getLogger('nova.service').info('it ends')
logging.getLogger('nova.service').warning('it does not end')
"""


class TestBetweenTests(testtools.TestCase):
    def test_only_warnings_are_shown(self):
        shown = subprocess.run(
            [sys.executable, '-c', _BETWEEN],
            cwd=pathlib.Path(__file__).parents[1],
            env={**os.environ, 'PYTHONSAFEPATH': ''},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        ).stdout
        self.assertIn('it does not end', shown)
        self.assertNotIn('it ends', shown)


class TestLog(base.AcceleratorTestCase):
    def setUp(self):
        super().setUp()
        self.keep_the_requests_context()
        # As oslo.log writes it, with the context.
        self.log = self.useFixture(
            fixtures.FakeLogger(
                'nova_accel',
                logging.INFO,
                # Which the formatter replaces by that of a context.
                '%(message)s',
                nuke_handlers=False,
                formatter=formatters.ContextFormatter,
            )
        )

    def keep_the_requests_context(self):
        """Nova's fixture has Placement in the thread that asks it.

        Placement's own contexts would take the place of the request's there.
        """
        store = context.RequestContext.update_store

        def update_store(found):
            if isinstance(found, nova_context.RequestContext):
                store(found)

        self.useFixture(
            fixtures.MockPatchObject(
                context.RequestContext, 'update_store', update_store
            )
        )

    def lines(self, words):
        return [line for line in self.log.output.splitlines() if words in line]

    def request_id(self, server, action):
        [found] = [
            each['request_id']
            for each in self.api.get_instance_actions(server['id'])
            if each['action'] == action
        ]
        return found

    def test_what_a_server_gets_and_returns(self):
        server = self.boot_with(base.FPGA)
        [arq] = self.arqs(server)
        what = f'FPGA {self.arq_device(arq)} (active)'
        [got] = self.lines(f'Instance {server["id"]} got {what}')
        self.assertIn(self.request_id(server, 'create'), got)
        self._reboot_server(server, hard=True)
        self.settle('host1')
        self.assertEqual(1, len(self.lines(f'Instance {server["id"]}')))
        self.delete(server)
        [returned] = self.lines(f'Instance {server["id"]} returned {what}')
        self.assertIn(' req-', returned)

    def test_what_is_published_only_when_it_changes(self):
        self.start_accelerated_compute('host2')
        [published] = self.lines('Published ')
        self.assertRegex(
            published, 'Published 8 units of CUSTOM_QAT, 2 units of FPGA'
        )
        for _minute in range(3):
            self.settle('host2')
        self.assertEqual([published], self.lines('Published '))
