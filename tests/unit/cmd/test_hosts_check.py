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

from nova_accel.model import finding
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
            1, Check.CONTRACTS, 'old-09 (0) and 2 more. Servers boot'
        )

    def test_findings(self) -> None:
        self.sync()
        gone = finding.Finding(finding.Kind.GUEST_GONE, 'no guest')
        refused = finding.Finding(finding.Kind.REFUSED, 'a line is wrong')
        repaired = finding.Finding(finding.Kind.MDEV, "no one's", True)
        reports.SimulatedHost('well').report()
        reports.SimulatedHost('compute-2', findings=(repaired,)).report()
        self.assertEqual(0, self.check()[0])
        reports.SimulatedHost(
            'compute-1', findings=(repaired, refused, gone)
        ).report()
        self.assert_result(
            1,
            Check.FINDINGS,
            'not repaired: compute-1 (guest_gone, refused).',
        )

    def test_findings_that_cannot_be_read(self) -> None:
        self.sync()

        def fail() -> None:
            raise OSError('no such table')

        with fixtures.MonkeyPatch('nova_accel.db.findings.read', fail):
            code, results = self.check()
        self.assertEqual(1, code)
        self.assertIn('no such table', results[Check.FINDINGS]['details'])
