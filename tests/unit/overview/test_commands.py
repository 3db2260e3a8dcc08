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

import argparse
import io
import types

import testtools

from nova_accel.model.fleet import fleet
from nova_accel.overview import commands
from nova_accel.testing import simulated_fleet


class _List(commands.List):
    simulated = simulated_fleet.SimulatedFleet(24)

    def read(self, parsed_args: argparse.Namespace) -> fleet.Fleet:
        return fleet.join(self.simulated.ours, self.simulated.nova)


class TestList(testtools.TestCase):
    def run_command(
        self,
        *arguments: str,
        simulated: simulated_fleet.SimulatedFleet = _List.simulated,
    ) -> tuple[int, str]:
        """The exit status and what is printed."""
        output = io.StringIO()
        command = _List(
            types.SimpleNamespace(stdout=output),
            None,
        )
        command.cmd_name = 'list'
        command.simulated = simulated
        status = command.run(command.get_parser('list').parse_args(arguments))
        return status, output.getvalue()

    def test_no_answer_is_blank(self) -> None:
        none = simulated_fleet.SimulatedFleet(0)
        for arguments, line in (
            (('--drift',), 'Nothing is wrong.\n'),
            ((), 'No host has reported devices.\n'),
        ):
            self.assertEqual(
                (0, line), self.run_command(*arguments, simulated=none)
            )

    def test_one_host(self) -> None:
        wrong = simulated_fleet.SimulatedFleet(24)
        held = next(unit for unit in wrong.units if unit.arq is not None)
        assert held.arq is not None
        assert held.arq.instance_uuid is not None
        del wrong.servers[held.arq.instance_uuid]
        hosts = {device.uuid: device.hostname for device in wrong.ours.devices}
        for host in wrong.hosts:
            status, text = self.run_command(
                '--drift', '--host', host.name, '-f', 'value', simulated=wrong
            )
            self.assertEqual(
                host.name == hosts[held.device_uuid],
                held.arq.instance_uuid in text,
            )
            self.assertEqual(int('leak' in text), status)

    def test_exit_status(self) -> None:
        self.assertEqual(0, self.run_command('--drift')[0])
        wrong = simulated_fleet.SimulatedFleet(24)
        del wrong.servers[next(iter(wrong.servers))]
        for arguments in ((), ('--json',)):
            status, text = self.run_command(
                '--drift', *arguments, simulated=wrong
            )
            self.assertEqual(commands.WRONG, status)
            self.assertIn('leak', text)
            self.assertEqual(
                0, self.run_command(*arguments, simulated=wrong)[0]
            )
