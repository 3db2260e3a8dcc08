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
import types

from crash import effects
from functional import one_server
from nova_accel.db.sql import engine


class TestKilled(one_server.OneServerTestCase):
    """nova-compute is killed, and started again; tests/crash has the rest.

    Here the process goes on, and with it what Nova does when it leaves a
    context: only what has nothing to undo is as after a kill.
    """

    def setUp(self):
        super().setUp()
        self.effects = self.useFixture(
            effects.Effects(
                types.SimpleNamespace(), engine.manager().writer.get_engine()
            )
        )

    @contextlib.contextmanager
    def killed_before(self, effect):
        """What is begun here has no effect from that one on."""
        with self.effects.counted(
            effects.Point(None, effect, effects.Fault.KILLED_BEFORE)
        ):
            yield
            self._wait_for_assert(lambda: self.assertTrue(self.effects.struck))
        self.effects.mend()
        self.restart_compute_service(self.host)
        self.settle(self.host)

    def test_in_delete(self):
        with self.killed_before('device unplug of MdevDriver'):
            self.api.delete_server(self.server['id'])
        self._wait_until_deleted(self.server)
        self.assert_nothing_left()

    def test_in_hard_reboot(self):
        with self.killed_before('guest createWithFlags of Domain'):
            self.act('reboot', {'type': 'HARD'})
        self.wait_for_status('ACTIVE')
        self.assert_runs_with_all()
        self.delete(self.server)

    def test_in_suspend(self):
        """The guest has let go of its devices, and runs."""
        with self.killed_before('guest managedSave of Domain'):
            self.act('suspend')
        self.assert_runs_with_all()
        self.act('os-resetState', {'state': 'active'})
        self.assert_hard_reboot_helps()
        self.delete(self.server)
