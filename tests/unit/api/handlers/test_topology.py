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

from typing import Any
from urllib import parse

import fixtures

from nova_accel import conf
from nova_accel.db import fleet
from nova_accel.model.fleet import fleet_wire
from nova_accel.testing import reports
from unit.api import base


class TopologyTest(base.ApiTestCase):
    def get(self, query: str = '') -> Any:
        return self.ok(
            'GET', f'/topology{query}', version='2.4', roles=base.ADMIN
        )

    def names(self, body: Any) -> list[str]:
        return [host['hostname'] for host in body['topology']]

    def test_what_is_told(self) -> None:
        self.report_host(functions=2)
        (host,) = self.get()['topology']
        (device,) = host['devices']
        self.assertEqual(
            (base.HOSTNAME, base.HOSTNAME, False, []),
            (
                host['hostname'],
                host['service_host'],
                host['is_silent'],
                host['unheld'],
            ),
        )
        self.assertEqual(
            ('0000:0c:00.0', 'INTEL PAC_ARRIA10', 0, 'enabled', None),
            tuple(
                device[name]
                for name in (
                    'address',
                    'product',
                    'numa_node',
                    'status',
                    'fault',
                )
            ),
        )
        self.assertEqual(
            [('free', 'region0', None)] * 2,
            [
                (unit['state'], unit['part'], unit['arq'])
                for unit in device['units']
            ],
        )

    def test_it_is_the_database(self) -> None:
        for number in range(3):
            reports.SimulatedHost(
                f'compute-{number}', (2,), link_sets=('four', 'two pcie=2')
            ).report()
        self.assertEqual(
            [['four', 'two pcie=2']] * 3,
            [
                device['link_sets']
                for host in self.get()['topology']
                for device in host['devices']
            ],
        )
        self.assertEqual(
            fleet.read(conf.CONF.nova_accel.host_silence_s),
            fleet_wire.from_json(self.get()['topology']),
        )

    def test_pages(self) -> None:
        for name in ('c', 'a', 'b'):
            reports.SimulatedHost(name).report()
        first = self.get('?limit=2')
        self.assertEqual(['a', 'b'], self.names(first))
        (link,) = first['topology_links']
        query = parse.urlsplit(link['href']).query
        self.assertEqual(
            {'limit': ['2'], 'marker': ['b']}, parse.parse_qs(query)
        )
        last = self.get(f'?{query}')
        self.assertEqual(['c'], self.names(last))
        self.assertNotIn('topology_links', last)

    def test_a_page_is_bounded(self) -> None:
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.db.fleet.MAX_ON_A_PAGE', 1)
        )
        for name in ('a', 'b', 'c'):
            reports.SimulatedHost(name, (1,)).report()
        first = self.get()
        self.assertEqual(['a'], self.names(first))
        self.assertIn('marker=a', first['topology_links'][0]['href'])

    def test_one_host(self) -> None:
        for name in ('a', 'b'):
            reports.SimulatedHost(name).report()
        self.assertEqual(['b'], self.names(self.get('?hostname=b')))
        self.refused(404, 'GET', '/topology?hostname=nowhere', version='2.4')

    def test_wrong_arguments(self) -> None:
        for query in ('?limit=0', '?limit=x', '?host=a', '?sort=uuid'):
            self.refused(
                400,
                'GET',
                f'/topology{query}',
                version='2.4',
                roles=base.ADMIN,
            )
