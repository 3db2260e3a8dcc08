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

from nova_accel import exceptions
from nova_accel.cmd import explain
from nova_accel.db import device_profile
from nova_accel.testing import reports
from unit.cmd import base


class TestRows(base.DriftTestCase):
    def rows(
        self, profile: str, hostname: str | None = None
    ) -> list[tuple[object, ...]]:
        command = explain.Explain(None, None)
        command.cmd_name = 'explain'
        arguments = [] if hostname is None else ['--host', hostname]
        _columns, rows = command.take_action(
            command.get_parser('explain').parse_args([profile, *arguments])
        )
        return [*rows]

    def test_each_group_of_each_host(self) -> None:
        device_profile.create(
            'two', [{'resources:FPGA': '1'}, {'resources:FPGA': '2'}]
        )
        cannot = '2 wanted, and it has 1'
        self.assertEqual(
            [
                (group, 'compute-1', self.host.rp_uuid(0, region), why)
                for region in sorted(
                    (0, 1), key=lambda region: self.host.rp_uuid(0, region)
                )
                for group, why in ((0, ''), (1, cannot))
            ],
            [(*row[:2], row[3], row[-1]) for row in self.rows('two')],
        )

    def test_in_pages(self) -> None:
        self.useFixture(fixtures.MonkeyPatch('nova_accel.cmd.explain.PAGE', 2))
        for number in range(2, 6):
            reports.SimulatedHost(f'compute-{number}').report()
        found = [row[1] for row in self.rows('fpga')]
        self.assertEqual(
            ['compute-1', *(f'compute-{number}' for number in range(1, 6))],
            found,
        )

    def test_one_host(self) -> None:
        reports.SimulatedHost('compute-2').report()
        device_profile.create('gpu', [{'resources:PGPU': '1'}])
        self.assertEqual(
            ['compute-2'], [row[1] for row in self.rows('fpga', 'compute-2')]
        )
        self.assertEqual(
            [
                (0, '', '', '', 'PGPU', 0, 0, why)
                for why in (
                    'no host reports PGPU',
                    'host compute-2 does not report PGPU',
                )
            ],
            [*self.rows('gpu'), *self.rows('gpu', 'compute-2')],
        )
        self.assertRaises(exceptions.NotFound, self.rows, 'fpga', 'nowhere')

    def test_joined_groups(self) -> None:
        device_profile.create(
            'joined', [{'resources:FPGA': '2', 'accel:link': 'nvlink'}] * 2
        )
        self.assertEqual(
            {'no set that joins 4 by nvlink has it'},
            {row[-1] for row in self.rows('joined')},
        )
