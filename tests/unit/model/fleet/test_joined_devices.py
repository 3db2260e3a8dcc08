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

import testtools

from nova_accel.model.fleet import fleet_sources
from nova_accel.model.fleet import joined_devices
from unit.model import boards


def _device(
    number: int, hostname: str = 'a', node: int | None = None
) -> fleet_sources.FleetDevice:
    return fleet_sources.FleetDevice(
        f'{hostname}-{number}',
        hostname,
        'pci',
        f'0000:1{number}:00.0',
        'H200',
        node,
        'enabled',
        None,
        boards.sets(number),
    )


class TestFind(testtools.TestCase):
    def test_a_board(self) -> None:
        found = joined_devices.find(_device(n, node=n // 4) for n in range(8))
        self.assertEqual(
            [
                ('board', '', ('nvlink 8',), 8, (0, 1)),
                ('half_0', 'board', ('nvlink 4', 'numa 2-4'), 4, (0,)),
                ('pair_0', 'half_0', ('nvlink 2',), 2, (0,)),
                ('pair_1', 'half_0', ('nvlink 2',), 2, (0,)),
                ('half_1', 'board', ('nvlink 4', 'numa 2-4'), 4, (1,)),
                ('pair_2', 'half_1', ('nvlink 2',), 2, (1,)),
                ('pair_3', 'half_1', ('nvlink 2',), 2, (1,)),
            ],
            [
                (
                    each.name,
                    each.within,
                    each.joins,
                    len(each.addresses),
                    each.numa_nodes,
                )
                for each in found
            ],
        )
        self.assertEqual(('0000:12:00.0', '0000:13:00.0'), found[3].addresses)

    def test_sets_of_the_same_name_on_two_hosts(self) -> None:
        found = joined_devices.find(
            _device(number, hostname)
            for number in (1, 0)
            for hostname in ('b', 'a')
        )
        self.assertEqual(
            ['a', 'a', 'a', 'b', 'b', 'b'], [each.hostname for each in found]
        )
        for each in found:
            self.assertEqual(
                (('0000:10:00.0', '0000:11:00.0'), ()),
                (each.addresses, each.numa_nodes),
            )

    def test_a_set_that_joins_nothing(self) -> None:
        root = _device(0)._replace(link_sets=('root_0000_15',))
        (found,) = joined_devices.find([root])
        self.assertEqual(('root_0000_15', ()), (found.name, found.joins))

    def test_devices_in_no_set(self) -> None:
        alone = _device(0)._replace(link_sets=())
        self.assertEqual([], joined_devices.find([alone]))
