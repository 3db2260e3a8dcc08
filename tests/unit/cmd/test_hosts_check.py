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

from nova_accel.testing import reports
from unit.cmd import check_base

Check = check_base.Check


class TestHosts(check_base.CheckTestCase):
    def test_more_hosts_than_nova_asks_for(self) -> None:
        self.sync()
        for number in range(3):
            reports.SimulatedHost(f'compute-{number}').report()
        reports.SimulatedHost('plain', regions=()).report()
        most = '[scheduler]\nmax_placement_results = '
        self.assertEqual(0, self.check(f'{check_base.SCHEDULER}{most}3\n')[0])
        self.assert_result(
            1,
            Check.HOSTS,
            'max_placement_results',
            f'{check_base.SCHEDULER}{most}2\n',
        )

    def test_older_hosts(self) -> None:
        self.sync()
        reports.SimulatedHost().report()
        self.assertEqual(0, self.check()[0])
        for number in range(12):
            reports.SimulatedHost(f'old-{number:02}', contract=0).report()
        self.assert_result(
            1, Check.CONTRACTS, 'old-09 (0), and 2 more. Servers boot'
        )
