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
from nova import version
from oslo_reports import guru_meditation_report as report
import testtools

from nova_accel import guru_report
from nova_accel.conf import CONF


class TellTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        CONF(
            [], project='nova', default_config_files=[], default_config_dirs=[]
        )
        self.addCleanup(CONF.reset)
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.guru_report._FACTS', {})
        )
        # It lists green threads by looking at all objects of the process, and
        # fails if other tests have left a proxy of one that is gone.
        self.useFixture(
            fixtures.MonkeyPatch(
                'oslo_reports.generators.threading._find_objects',
                lambda _kind: [],
            )
        )
        sections = list(
            getattr(report.TextGuruMeditation, 'persistent_sections', [])
        )
        report.TextGuruMeditation.persistent_sections = []
        self.addCleanup(
            setattr,
            report.TextGuruMeditation,
            'persistent_sections',
            sections,
        )

    def written(self) -> str:
        """The report that a service of Nova writes on SIGUSR2."""
        return report.TextGuruMeditation(version).run()

    def test_section(self) -> None:
        guru_report.add_section(
            'Cards', lambda: {'devices': {'pci_1': 'faulty'}}
        )
        text = self.written()
        self.assertIn('Cards', text)
        self.assertIn('pci_1 = faulty', text)

    def test_the_last_one_counts(self) -> None:
        for number in (1, 2):
            guru_report.add_section(
                'Cards', lambda number=number: {'n': number}
            )
        text = self.written()
        self.assertEqual(1, text.count('Cards'))
        self.assertIn('n = 2', text)

    def test_a_fault_of_ours_leaves_nova_s_report(self) -> None:
        guru_report.add_section('Cards', lambda: {'n': 1 // 0})
        text = self.written()
        self.assertIn('error = ZeroDivisionError', text)
        self.assertIn('Package', text)
