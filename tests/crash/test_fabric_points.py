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
import random

from crash import board_cloud
from crash import effects
from crash import test_points

#: The effects by which a guest gets its devices.
_LAST = (
    'guest createWithFlags of Domain',
    'guest attachDeviceFlags of Domain',
)

#: Live migration moves no whole GPU, and no other service has partitions. What
#: is joined changes only while no guest runs.
_NOT_OF_BOARDS = (
    'live_migration',
    'replace',
    'set_another',
    'set_more',
    'set_on_a_plain_server',
    'unset',
    'resize_to_more_devices',
    'take_over',
    'hard_reboot_of_what_was_taken_over',
    'delete_of_what_was_taken_over',
)

OPERATIONS = {
    name: operation
    for name, operation in test_points.OPERATIONS.items()
    if name not in _NOT_OF_BOARDS
}


class TestFabricPoints(test_points.PointsTestCase):
    """Where Fabric Manager is asked, and what is journaled around it."""

    cloud = board_cloud.BoardCloud

    def points(self, operation):
        return [
            point
            for point in super().points(operation)
            if point.effect.startswith(('fabric', 'journal'))
        ]

    def test_there_are_enough(self):
        points = [
            point
            for operation in OPERATIONS.values()
            for point in self.points(operation)
            if point.effect.startswith('fabric')
        ]
        self.assertGreater(len(points), 60)
        self.assertEqual(
            {'activate', 'deactivate'},
            {point.effect.split()[1] for point in points},
        )

    def test_fabric_manager_restarts_when_nova_compute_is_killed(self):
        for fault in (
            effects.Fault.KILLED_BEFORE,
            effects.Fault.KILLED_AFTER,
        ):
            for effect in (
                'fabric activate of FabricManager',
                'fabric deactivate of FabricManager',
            ):
                with self.cloud() as cloud:
                    server = cloud.nova.boot(
                        cloud.hosts[0], test_points._NATIVE, 'both'
                    )
                    cloud.nova.boot(
                        cloud.hosts[0], test_points._NATIVE, 'fpga'
                    )
                    cloud.nova.stop(server)
                    if 'deactivate' in effect:
                        cloud.nova.start(server)
                    with (
                        contextlib.suppress(effects.Killed),
                        cloud.effects.counted(
                            effects.Point(None, effect, fault)
                        ),
                    ):
                        (
                            cloud.nova.stop
                            if 'deactivate' in effect
                            else cloud.nova.start
                        )(server)
                    self.assertTrue(cloud.effects.struck)
                    cloud.daemons['host1'].restart()
                    cloud.restart_and_reconcile()
                    self.assertEqual([], cloud.drift(), (fault, effect))


class TestFabricManagerForgets(test_points.PointsTestCase):
    """Whenever it loses its state, no guest runs with GPUs that are apart."""

    cloud = board_cloud.BoardCloud

    def check(self, name):
        operation = OPERATIONS[name]
        effects_ = sorted(
            {(point.number, point.effect) for point in self.points(operation)}
        )
        # The last look is before the guest starts, or gets its devices.
        always = [each for each in effects_ if each[1] in _LAST]
        others = [each for each in effects_ if each[1] not in _LAST]
        if test_points._SAMPLE is not None:
            others = random.Random(name).sample(others, min(1, len(others)))
        for number, effect in always + others:
            self.assertEqual([], self.forget(operation, number, effect))

    def forget(self, operation, number, effect):
        """What is wrong if it does so just before an effect."""
        point = effects.Point(number, effect, effects.MEANWHILE)
        with self.cloud() as cloud:
            cloud.effects.meanwhile = lambda: [
                daemon.reset() for daemon in cloud.daemons.values()
            ]
            operation.run(cloud, point)
            self.assertTrue(cloud.effects.struck)
            wrong = list(cloud.violations)
            for host in cloud.hosts:
                host.run_periodic()
            return [f'{point}: {line}' for line in wrong + cloud.drift()]


for _name in OPERATIONS:
    setattr(
        TestFabricPoints,
        f'test_{_name}',
        lambda self, name=_name: self.check(name),
    )
    setattr(
        TestFabricManagerForgets,
        f'test_{_name}',
        lambda self, name=_name: self.check(name),
    )
