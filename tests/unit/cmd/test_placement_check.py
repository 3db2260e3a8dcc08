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

from unit.cmd import check_base

Check = check_base.Check


class TestCheck(check_base.CheckTestCase):
    def test_placement(self) -> None:
        self.sync()
        for placement, details in (
            ('', 'allocation_candidates_generation_strategy'),
            ('', 'max_allocation_candidates limits'),
            (
                check_base.PLACEMENT.replace('breadth-first', 'depth-first'),
                'allocation_candidates_generation_strategy = breadth-first',
            ),
            (
                check_base.PLACEMENT.replace('100000', '999'),
                'less than the 1000',
            ),
            (None, '--placement-config'),
        ):
            self.assert_result(
                1, Check.CANDIDATES, details, check_base.SCHEDULER, placement
            )
        self.assert_result(
            2,
            Check.CANDIDATES,
            'cannot be read',
            check_base.SCHEDULER,
            check_base.PLACEMENT.replace('100000', 'many'),
        )

    def test_placement_in_its_usual_place(self) -> None:
        self.sync()
        path = self.directory / 'usual.conf'
        path.write_text(check_base.PLACEMENT)
        self.useFixture(
            fixtures.MonkeyPatch(
                'oslo_config.cfg.find_config_files',
                lambda project=None, *_others: (
                    [str(path)] if project == 'placement' else []
                ),
            )
        )
        code, results = self.check(check_base.SCHEDULER, None)
        self.assertEqual(0, code)
        self.assertIn('usual.conf', results[Check.CANDIDATES]['details'])
