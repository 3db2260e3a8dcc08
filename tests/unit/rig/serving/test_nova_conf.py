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

import pathlib

import fixtures
import testtools

from rig.serving import nova_conf
from unit import nova_user


class TestNovaConf(testtools.TestCase):
    def test_file(self) -> None:
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / 'conf'
        nova_conf.write(
            path,
            {
                'one': {'name': 'value', 'given_often': ['a', 'b']},
                'two': {'name': 'other'},
            },
        )
        self.assertEqual(
            [
                '[one]',
                'name = value',
                'given_often = a',
                'given_often = b',
                '',
                '[two]',
                'name = other',
                '',
            ],
            path.read_text().split('\n'),
        )

    def test_nothing_of_nova_is_switched_off(self) -> None:
        sections = nova_conf.sections(
            'http://ks', nova_user.NOVA, '/state', ['A', 'B']
        )
        scheduler = sections['filter_scheduler']
        self.assertEqual('A,B,AcceleratorFilter', scheduler['enabled_filters'])
        self.assertIn(
            'nova.scheduler.filters.all_filters',
            scheduler['available_filters'],
        )
        self.assertIn(
            'nova.scheduler.weights.all_weighers',
            str(scheduler['weight_classes']).split(','),
        )

    def test_paste_file_has_our_api(self) -> None:
        self.assertIn('/accelerator', nova_conf.api_paste_path().read_text())
