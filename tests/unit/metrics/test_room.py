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


import fixtures
import testtools

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.cmd import fleet
from nova_accel.db import device_profile
from nova_accel.db import host_arqs
from nova_accel.metrics import exposition
from nova_accel.metrics import room
from nova_accel.testing import database
from nova_accel.testing import reports


class ReadTest(testtools.TestCase):
    """Three hosts with two FPGAs each, of which servers have one each."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(database.Database())
        room._read.cache_clear()
        self.addCleanup(room._read.cache_clear)
        for name, amount in (('one', 1), ('both', 2), ('three', 3)):
            device_profile.create(name, [{'resources:FPGA': '1'}] * amount)
        for number in range(3):
            host = reports.SimulatedHost(f'compute-{number}', regions=(1, 1))
            host.report()
            host_arqs.acquire(
                host_arqs.AcquireRequest(
                    instance_uuid=f'instance-{number}',
                    hostname=host.hostname,
                    role='active',
                    attempt=1,
                    project_id='project',
                    device_profile_name='one',
                    allocations=(host.allocated(),),
                )
            )

    def test_room_that_moves_make(self) -> None:
        self.assertEqual(
            [
                room.RoomNumbers('one', 3, 3),
                room.RoomNumbers('both', 0, 1),
                room.RoomNumbers('three', 0, 0),
            ],
            room.read(['one', 'both', 'three', 'no-such']),
        )

    def test_none_is_asked_for(self) -> None:
        self.assertEqual((), room.read([]))

    def test_it_is_kept(self) -> None:
        now = self.useFixture(
            fixtures.MockPatch('time.monotonic', return_value=1000.0)
        ).mock
        before = room.read(['both'])
        reports.SimulatedHost('compute-9', regions=(1, 1)).report()
        self.assertEqual(before, room.read(['both']))
        now.return_value += 300
        self.assertEqual([room.RoomNumbers('both', 1, 2)], room.read(['both']))

    def rows(self, *profiles: str) -> list[tuple[str, int, int]]:
        """The rows of ``nova-accel-manage fleet room``."""
        command = fleet.Room(None, None)
        parsed = command.get_parser('fleet room').parse_args([*profiles])
        return [*command.take_action(parsed)[1]]

    def test_the_command(self) -> None:
        self.assertEqual([('both', 0, 1)], self.rows('both'))
        error = self.assertRaises(
            exceptions.NotFound, self.rows, 'both', 'no-such'
        )
        self.assertIn('no-such', str(error))
        error = self.assertRaises(exceptions.InvalidRequest, self.rows)
        self.assertIn('metrics_device_profiles', str(error))
        conf.CONF.set_override(
            'metrics_device_profiles', ['one'], 'nova_accel'
        )
        self.addCleanup(
            conf.CONF.clear_override, 'metrics_device_profiles', 'nova_accel'
        )
        self.assertEqual([('one', 3, 3)], self.rows())

    def test_the_metric(self) -> None:
        self.assertNotIn(b'profile_servers', exposition.read())
        conf.CONF.set_override(
            'metrics_device_profiles', ['both'], 'nova_accel'
        )
        self.addCleanup(
            conf.CONF.clear_override, 'metrics_device_profiles', 'nova_accel'
        )
        text = exposition.read().decode()
        for sample in (
            'nova_accel_profile_servers{device_profile="both",'
            'servers="fit now"} 0.0',
            'nova_accel_profile_servers{device_profile="both",'
            'servers="fit if moved"} 1.0',
        ):
            self.assertIn(sample, text)
