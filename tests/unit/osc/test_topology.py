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

import dataclasses

from osc_lib import exceptions

from nova_accel.osc import topology
from unit.osc import fleet


class TestList(fleet.FleetTestCase):
    def join(self) -> None:
        """Join the cards of the second host."""
        dataclasses.replace(
            self.hosts[1],
            regions=(1, 1, 1),
            link_sets=('numa_0 numa=2-3', 'pcie_0000_40_01_0 nvlink=3 pcie=2'),
        ).report()

    def test_the_sets_of_hosts(self) -> None:
        self.join()
        addresses = '0000:00:00.0 0000:01:00.0 0000:02:00.0'
        rows = [
            (
                'compute-2',
                'numa_0',
                '',
                'numa 2-3',
                addresses,
                '0',
            ),
            (
                'compute-2',
                'pcie_0000_40_01_0',
                'numa_0',
                'nvlink 3, pcie 2',
                addresses,
                '0',
            ),
        ]
        for arguments, expected in (
            ((), rows),
            (('--host', 'compute-2'), rows),
            (('--host', 'compute-1'), []),
        ):
            self.assertEqual(
                (topology.COLUMNS, expected),
                self.listed(topology.List, *arguments),
            )
        # Servers say nothing of it.
        self.assertEqual([], self.nova.asked)

    def test_no_such_host(self) -> None:
        refused = self.assertRaises(
            exceptions.CommandError,
            self.listed,
            topology.List,
            '--host',
            'nowhere',
        )
        self.assertIn('Host nowhere not found', str(refused))

    def test_nothing_is_joined(self) -> None:
        status, text = self.run_command(topology.List)
        self.assertEqual(0, status)
        self.assertIn('"pool": "link"', text)
