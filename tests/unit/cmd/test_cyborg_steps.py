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

"""tests/functional/test_import_cyborg.py has a real Placement and Nova."""

import fixtures
import testtools

from nova_accel.cmd import cyborg_steps
from nova_accel.db import device_profile
from nova_accel.db import imports
from nova_accel.model import drift
from nova_accel.model.cyborg import mapping
from nova_accel.testing import database
from rig.cyborg import made_up

_GPU = {'resources:PGPU': '1'}


class TestImportAll(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.useFixture(database.Database())
        self.cyborg = made_up.MadeUpCyborg()
        profile = self.cyborg.profile('gpu', _GPU)
        [handle] = self.cyborg.deployable(
            self.cyborg.device('compute-1'), 'PGPU', made_up.pci_info(1)
        )
        self.cyborg.arq(profile, handle, 'server')

    def run_step(
        self, is_dry: bool = False, task_state: str | None = None
    ) -> list[tuple[str, str, bool]]:
        found = mapping.read(
            self.cyborg.snapshot(),
            mapping.Nova(
                [self.cyborg.node('compute-1')],
                {'server': drift.Server('compute-1', 'active', task_state)},
            ),
        )
        return [
            tuple(result) for result in cyborg_steps.import_all(found, is_dry)
        ]

    def test_first_and_again(self) -> None:
        imported = [
            ('device profile gpu', 'imported', True),
            (
                'host compute-1.example',
                'imported: 1 devices, 1 attach handles, 1 ARQs',
                True,
            ),
        ]
        self.assertEqual(imported, self.run_step(is_dry=True))
        self.assertEqual([], device_profile.get_all())
        self.assertEqual({}, imports.get_hosts())
        self.assertEqual(imported, self.run_step())
        self.assertEqual(
            [
                ('device profile gpu', 'is here already', True),
                ('host compute-1.example', 'is imported already', True),
            ],
            self.run_step(),
        )

    def test_a_busy_server_matters_before_the_import(self) -> None:
        what, result, is_done = self.run_step(task_state='rebooting')[-1]
        self.assertEqual(('host compute-1', False), (what, is_done))
        self.assertIn('server', result)
        self.run_step()
        self.assertEqual(
            ('host compute-1.example', 'is imported already', True),
            self.run_step(task_state='rebooting')[-1],
        )

    def test_a_profile_with_other_groups(self) -> None:
        device_profile.create('gpu', [{'resources:PGPU': '2'}])
        what, result, is_done = self.run_step()[0]
        self.assertEqual(('device profile gpu', False), (what, is_done))
        self.assertIn('other groups', result)

    def test_a_profile_with_the_uuid_of_another(self) -> None:
        uuid = self.cyborg.snapshot().profiles[0].uuid
        device_profile.create('other', [_GPU], uuid=uuid)
        what, result, is_done = self.run_step()[0]
        self.assertEqual(('device profile gpu', False), (what, is_done))
        self.assertIn('profile other', result)

    def test_what_is_refused_is_left(self) -> None:
        self.cyborg.profile(
            'old', {'resources:FPGA': '1', 'accel:function_id': '3AFB'}
        )
        self.cyborg.arq(
            self.cyborg.snapshot().profiles[0].id, None, 'no server'
        )
        results = {what: is_done for what, _why, is_done in self.run_step()}
        self.assertFalse(results['device profile old'])
        # Nobody misses it.
        arq = self.cyborg.snapshot().arqs[-1].uuid
        self.assertTrue(results[f'ARQ {arq}'])
