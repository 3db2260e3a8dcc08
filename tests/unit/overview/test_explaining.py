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

from collections.abc import Iterable
from collections.abc import Iterator

import testtools

from nova_accel.overview import explaining


class _Explain(explaining.Explain):
    def pages(
        self, profile: str, hostname: str | None
    ) -> Iterator[Iterable[explaining.Row]]:
        yield [(0, hostname or 'all', '', profile, 'FPGA', 2, 1, '')]


class _Pages(explaining.Explain):
    def pages(
        self, profile: str, hostname: str | None
    ) -> Iterator[Iterable[explaining.Row]]:
        for name in ('b', 'a'):
            yield [
                (group, name, '', provider, 'FPGA', 1, 1, '')
                for group in range(2)
                for provider in ('y', 'x')
            ]


class TestExplain(testtools.TestCase):
    def explained(
        self,
        *arguments: str,
        of: type[explaining.Explain] = _Explain,
    ) -> list[explaining.Row]:
        command = of(None, None)
        command.cmd_name = 'explain'
        columns, rows = command.take_action(
            command.get_parser('explain').parse_args(arguments)
        )
        self.assertEqual(explaining.COLUMNS, columns)
        return list(rows)

    def test_all_hosts(self) -> None:
        self.assertEqual(
            [(0, 'all', '', 'gold', 'FPGA', 2, 1, '')], self.explained('gold')
        )

    def test_one_host(self) -> None:
        self.assertEqual(
            [(0, 'host', '', 'gold', 'FPGA', 2, 1, '')],
            self.explained('gold', '--host', 'host'),
        )

    def test_the_groups_of_a_provider_come_together(self) -> None:
        """The pages stay as they come: the first has the first hosts."""
        self.assertEqual(
            [
                (name, provider, group)
                for name in ('b', 'a')
                for provider in ('x', 'y')
                for group in range(2)
            ],
            [
                (row[1], row[3], row[0])
                for row in self.explained('p', of=_Pages)
            ],
        )
