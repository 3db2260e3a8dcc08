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

from collections.abc import Callable

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.cmd.cyborg import steps
from nova_accel.db import client_arqs
from nova_accel.db import device_profile
from nova_accel.db import imports
from nova_accel.model import nova_server
from nova_accel.model.cyborg import hosts
from nova_accel.model.cyborg import mapping
from nova_accel.testing import database
from rig.cyborg import made_up
from unit.cmd.cyborg import move_base

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
            mapping.NovaState(
                [self.cyborg.node('compute-1')],
                {
                    'server': nova_server.Server(
                        'compute-1', 'active', task_state
                    )
                },
            ),
        )
        return [tuple(result) for result in steps.import_all(found, is_dry)]

    def test_first_and_again(self) -> None:
        imported = [
            ('device profile gpu', 'imported', True),
            (
                'host compute-1.example',
                'imported; devices: 1, attach handles: 1, ARQs: 1',
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
        # No one misses it.
        arq = self.cyborg.snapshot().arqs[-1].uuid
        self.assertTrue(results[f'ARQ {arq}'])


class StepsTestCase(move_base.MoveTestCase):
    """The host is imported."""

    def setUp(self) -> None:
        super().setUp()
        self.assert_done(self.import_all())

    def import_all(self) -> list[steps.StepResult]:
        return list(
            steps.import_all(
                mapping.read(
                    self.read(), mapping.NovaState([self.node()], self.servers)
                )
            )
        )

    def origins(self) -> dict[str, hosts.Origin]:
        return steps.read_origins(self.read())

    def switch(self) -> list[steps.StepResult]:
        return list(steps.switch(self.origins()[move_base.NODE]))

    def undo(self) -> list[steps.StepResult]:
        return list(steps.undo(self.origins()[move_base.NODE], self))

    def finish(self) -> list[steps.StepResult]:
        return list(steps.finish(self.origins()))

    def assert_done(self, results: list[steps.StepResult]) -> None:
        self.assertEqual([], [each for each in results if not each.is_done])

    def refusal(
        self,
        step: Callable[[], object],
        kind: type[Exception] = exceptions.Conflict,
    ) -> str:
        """The step changes nothing."""
        before = (self.placement.state(), imports.get_hosts(), {*self.told})
        fault = str(self.assertRaises(kind, step))
        self.assertEqual(
            before, (self.placement.state(), imports.get_hosts(), self.told)
        )
        return fault


class TestSwitch(StepsTestCase):
    def test_first_and_again(self) -> None:
        self.report()
        results = self.switch()
        self.assert_done(results)
        self.assertIn("2 of Cyborg's providers emptied", results[-1].result)
        self.assert_switched()
        self.placement.changes.clear()
        self.assertIn(
            "0 of Cyborg's providers emptied", self.switch()[-1].result
        )
        self.assertEqual([], self.placement.changes)

    def test_a_host_that_has_not_reported(self) -> None:
        self.assertIn('has not reported', self.refusal(self.switch))
        imports.remove_host(
            move_base.NODE,
            {row['uuid'] for row in imports.get_held(move_base.NODE)},
            0,
        )
        self.assertIn(
            'is not imported', self.refusal(self.switch, exceptions.NotFound)
        )

    def test_a_host_that_cyborg_does_not_have(self) -> None:
        fault = self.assertRaises(
            exceptions.NotFound,
            steps.read_origins,
            self.read(),
            ['other'],
        )
        self.assertIn('node other', str(fault))

    def test_what_the_host_does_not_report(self) -> None:
        self.report(second=None)
        [left] = self.switch()
        self.assertEqual(('server server-1', False), (left.what, left.is_done))
        self.assertIn('does not report', left.result)
        self.assertEqual(
            self.theirs[1]['server-1'], self.placement.allocations['server-1']
        )
        self.assertEqual(
            {self.host.rp_uuid(0): {'FPGA': 1}},
            self.placement.allocations['server-0'],
        )
        self.report()
        self.assert_done(self.switch())
        self.assert_switched()

    def test_one_that_is_not_moved(self) -> None:
        self.report()
        self.placement.provider(self.host.rp_uuid(1))
        [left] = self.switch()
        self.assertEqual(('server server-1', False), (left.what, left.is_done))
        self.assertIn('no room', left.result)
        self.report()
        self.assert_done(self.switch())
        self.assert_switched()

    def test_a_consumer_without_an_arq(self) -> None:
        self.report()
        self.placement.set_inventories(self.providers[0], FPGA=2)
        self.placement.allocate('migration', self.providers[0], FPGA=1)
        [left] = self.switch()
        self.assertEqual(
            ('consumer migration', False), (left.what, left.is_done)
        )
        del self.placement.allocations['migration']
        self.assert_done(self.switch())
        self.assert_switched()

    def test_a_server_that_was_deleted(self) -> None:
        self.report()
        client_arqs.delete_by_instance('server-1')
        del self.placement.allocations['server-1']
        self.assert_done(self.switch())
        self.assertEqual({}, self.placement.inventories[self.providers[1]])

    def test_the_connection_is_lost(self) -> None:
        self.report()
        self.assert_done(self.repeat(self.switch))
        self.assert_switched()


class TestUndo(StepsTestCase):
    def switched(self) -> None:
        self.report()
        self.assert_done(self.switch())
        self.silence()

    def assert_as_before(self) -> None:
        self.assertEqual(self.theirs, self.placement.state())
        self.assertEqual({}, imports.get_hosts())

    def test_there_and_back(self) -> None:
        self.switched()
        [result] = self.undo()
        self.assertIn('with 2 ARQs; 0 of servers', result.result)
        self.assert_as_before()
        self.assertEqual(set(), self.told)
        [result] = self.undo()
        self.assertEqual(('is not imported', True), result[1:])

    def test_a_host_that_was_not_switched(self) -> None:
        """Its providers are left as they are, whatever that is."""
        self.placement.set_inventories(self.providers[0], FPGA=2)
        self.theirs = self.placement.state()
        self.assert_done(self.undo())
        self.assert_as_before()
        self.assertEqual([], self.placement.changes)

    def test_the_connection_is_lost(self) -> None:
        self.switched()
        self.assert_done(self.repeat(self.undo))
        self.assert_as_before()

    def test_cyborg_is_told_of_a_server_that_was_deleted(self) -> None:
        self.switched()
        [unit] = [
            each
            for each in imports.get_held(move_base.NODE)
            if each['instance_uuid'] == 'server-1'
        ]
        client_arqs.delete_by_instance('server-1')
        del self.placement.allocations['server-1']
        [result] = self.undo()
        self.assertIn('with 1 ARQs; 1 of servers', result.result)
        self.assertEqual({unit['uuid']}, self.told)

    def test_a_host_that_reports(self) -> None:
        self.report()
        self.assert_done(self.switch())
        self.assertIn(move_base.NODE, self.refusal(self.undo))

    def test_a_busy_server(self) -> None:
        self.switched()
        self.servers['server-1'] = nova_server.Server(
            'compute-1', 'active', 'rebooting'
        )
        self.assertIn('at work on servers server-1', self.refusal(self.undo))

    def test_a_server_that_cyborg_does_not_know(self) -> None:
        client_arqs.delete_by_instance('server-1')
        del self.placement.allocations['server-1']
        self.report()
        self.switch()
        [made] = client_arqs.create('fpga', 'project')
        client_arqs.bind(
            {
                made['uuid']: {
                    'hostname': move_base.NODE,
                    'instance_uuid': 'new server',
                    'device_rp_uuid': self.host.rp_uuid(1),
                }
            }
        )
        self.silence()
        self.assertIn('new server', self.refusal(self.undo))

    def test_one_that_is_not_moved(self) -> None:
        """Nothing of ours goes before all is Cyborg's again."""
        self.switched()
        path = '/allocations/server-1'
        self.placement.faults[path] = 409
        [left] = self.undo()
        self.assertEqual(('server server-1', False), (left.what, left.is_done))
        self.assertEqual({move_base.NODE: True}, imports.get_hosts())
        self.assertLess(self.placement.ours, self.placement.inventories.keys())
        self.placement.faults.clear()
        self.assert_done(self.undo())
        self.assert_as_before()

    def test_after_the_end(self) -> None:
        self.switched()
        self.assert_done(self.finish())
        self.assertIn('no way back', self.refusal(self.undo))


class TestFinish(StepsTestCase):
    def test_first_and_again(self) -> None:
        self.report()
        self.switch()
        deleted, host = self.finish()
        self.assertEqual("2 of Cyborg's providers deleted", deleted.result)
        self.assertEqual(f'host {move_base.NODE}', host.what)
        self.assertIn('SIGHUP to it on compute-1', host.result)
        self.assertEqual(self.placement.ours, {*self.placement.inventories})
        [deleted] = self.finish()
        self.assertEqual("0 of Cyborg's providers deleted", deleted.result)

    def test_a_host_that_is_not_switched(self) -> None:
        fault = self.refusal(self.finish)
        self.assertIn('2 servers or migrations', fault)
        self.assertIn(move_base.NODE, fault)

    def test_the_connection_is_lost(self) -> None:
        self.report()
        self.switch()
        self.assert_done(self.repeat(self.finish))
        self.assertEqual(self.placement.ours, {*self.placement.inventories})


class TestRemoveProfiles(StepsTestCase):
    def test_with_the_last_host(self) -> None:
        profiles = mapping.read(self.read(), mapping.NovaState()).profiles
        self.assertEqual([], list(steps.remove_profiles(profiles)))
        self.assert_done(self.undo())
        [result] = steps.remove_profiles(profiles)
        self.assertIn('1 deleted', result.result)
        self.assertEqual([], device_profile.get_all())
        self.assertEqual([], list(steps.remove_profiles(profiles)))
