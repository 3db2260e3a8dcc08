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

import json
from typing import Any
from urllib import parse

import fixtures

from nova_accel.testing import reports
from unit.api import base

_PATH = '/device_profiles'


class ExplainTest(base.ApiTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.report_host(functions=2)
        self.create_profile(
            'gold',
            base.GROUP,
            {'resources:FPGA': '2'},
            {
                'resources:FPGA': '3',
                'trait:CUSTOM_A': 'required',
                'trait:CUSTOM_FAKE_DEVICE': 'forbidden',
            },
            {'resources:CUSTOM_QAT': '1'},
        )

    def explain(self) -> list[tuple[list[str], list[list[str]]]]:
        """Of each group the hosts that can serve it, and all reasons."""
        groups = self.ok(
            'GET', f'{_PATH}/gold/explain', version='2.4', roles=base.ADMIN
        )['explain']['groups']
        return [
            (
                group['hostnames'],
                [
                    provider['reasons']
                    for provider in group['resource_providers']
                ],
            )
            for group in groups
        ]

    def test_what_is_told(self) -> None:
        found = self.ok('GET', f'{_PATH}/gold/explain', version='2.4')[
            'explain'
        ]
        self.assertEqual(
            ('gold', [0, 1, 2, 3]),
            (
                found['device_profile_name'],
                [
                    group['device_profile_group_id']
                    for group in found['groups']
                ],
            ),
        )
        self.assertEqual(
            {
                'device_profile_group_id': 0,
                'group': base.GROUP,
                'hostnames': [base.HOSTNAME],
                'resource_providers': [
                    {
                        'uuid': base.RP,
                        'hostname': base.HOSTNAME,
                        'resource_class': 'FPGA',
                        'total': 2,
                        'free': 2,
                        'device_uuids': [base.DEVICE],
                        'device_addresses': ['0000:0c:00.0'],
                        'reasons': [],
                    }
                ],
            },
            found['groups'][0],
        )
        self.assertEqual(
            found,
            self.ok(
                'GET',
                f'{_PATH}/{found["device_profile_uuid"]}/explain',
                version='2.4',
            )['explain'],
        )

    def test_all_reasons(self) -> None:
        here = [base.HOSTNAME]
        cannot = [
            'missing traits: CUSTOM_A',
            'forbidden traits: CUSTOM_FAKE_DEVICE',
            '3 wanted, and it has 2',
        ]
        self.assertEqual(
            [(here, [[]]), (here, [[]]), ([], [cannot]), ([], [])],
            self.explain(),
        )
        self.create_profile()
        self.bind(self.create_arq())
        self.assertEqual(
            [(here, [[]]), ([], [['2 wanted, 1 free (1 in use)']])],
            self.explain()[:2],
        )
        self.ok('POST', f'/devices/{base.DEVICE}/disable')
        self.assertEqual(
            (
                [],
                [
                    [
                        '1 wanted, 0 free (1 disabled by an '
                        'administrator, 1 in use)'
                    ]
                ],
            ),
            self.explain()[0],
        )
        self.ok('POST', f'/devices/{base.DEVICE}/enable')
        self.assertEqual(
            (
                [],
                [
                    [
                        '1 wanted, 0 free (1 reserved in Placement '
                        'until host compute-1 reports, 1 in use)'
                    ]
                ],
            ),
            self.explain()[0],
        )
        self.place_orders()
        self.assertEqual((here, [[]]), self.explain()[0])
        self.useFixture(base.SilentHosts())
        self.assertEqual(
            ([], [['its host does not report']]), self.explain()[0]
        )

    def place_orders(self) -> None:
        """Have the host tell that Placement has its orders."""
        placed = self.report_host()['orders']['revision']
        self.ok(
            'PUT',
            f'/hosts/{base.HOSTNAME}',
            {**base.report(), 'orders_published': placed},
            roles=base.SERVICE,
        )

    def test_unknown_and_older_versions(self) -> None:
        self.assertIn(
            'name=nope',
            self.refused(404, 'GET', f'{_PATH}/nope/explain', version='2.4'),
        )
        self.refused(406, 'GET', f'{_PATH}/gold/explain', version='2.3')


class PagesTest(base.ApiTestCase):
    def setUp(self) -> None:
        super().setUp()
        for number in range(5):
            reports.SimulatedHost(
                f'compute-{number}', regions=(2,), functions=8
            ).report()
        self.create_profile(
            'gold', {'resources:FPGA': '1'}, {'resources:CUSTOM_QAT': '1'}
        )

    def page(self, query: str = '') -> dict[str, Any]:
        found: dict[str, Any] = self.ok(
            'GET',
            f'{_PATH}/gold/explain{query}',
            version='2.4',
            roles=base.ADMIN,
        )
        return found

    def hostnames(self, page: dict[str, Any]) -> list[str]:
        """The hosts of a page, of which each group has all providers."""
        fpga, qat = page['explain']['groups']
        self.assertEqual(fpga['hostnames'], qat['hostnames'])
        self.assertEqual(
            sorted(fpga['hostnames'] * 2),
            sorted(each['hostname'] for each in fpga['resource_providers']),
        )
        self.assertEqual(
            fpga['hostnames'],
            [each['hostname'] for each in qat['resource_providers']],
        )
        found: list[str] = fpga['hostnames']
        return found

    def pages(self, query: str = '') -> list[list[str]]:
        """The hosts of each page, by the links."""
        page = self.page(query)
        found = [self.hostnames(page)]
        while 'explain_links' in page:
            [link] = page['explain_links']
            self.assertEqual('next', link['rel'])
            page = self.page(f'?{parse.urlsplit(link["href"]).query}')
            found.append(self.hostnames(page))
        return found

    def test_pages(self) -> None:
        hosts = [f'compute-{number}' for number in range(5)]
        self.assertEqual([hosts], self.pages())
        self.assertEqual(
            [hosts[:2], hosts[2:4], hosts[4:]], self.pages('?limit=2')
        )
        self.assertEqual([hosts, []], self.pages('?limit=5'))
        self.assertEqual([hosts[3:]], self.pages('?marker=compute-2'))

    def test_one_host(self) -> None:
        self.assertEqual([['compute-3']], self.pages('?hostname=compute-3'))
        self.assertIn(
            'Host nowhere not found',
            self.refused(
                404,
                'GET',
                '/device_profiles/gold/explain?hostname=nowhere',
                version='2.4',
            ),
        )

    def test_a_page_ends_when_it_is_long(self) -> None:
        """It has one host at least, whatever that has."""
        whole = self.page()['explain']['groups']
        each = len(
            json.dumps([group['resource_providers'] for group in whole])
        ) / len(whole[0]['hostnames'])
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.api.handlers.profile_explanation._MAX_BYTES',
                int(each * 2.5),
            )
        )
        self.assertEqual([2, 2, 1], [len(page) for page in self.pages()])
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.api.handlers.profile_explanation._MAX_BYTES', 1
            )
        )
        self.assertEqual([1] * 5, [len(page) for page in self.pages()])

    def test_what_is_refused(self) -> None:
        for query in ('limit=none', 'limit=0', 'sort=name'):
            self.refused(
                400, 'GET', f'{_PATH}/gold/explain?{query}', version='2.4'
            )
