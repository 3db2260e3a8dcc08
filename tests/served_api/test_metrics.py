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

"""The metrics and the health check over HTTP, in the API's own pool.

No one asks with a token here, as no monitoring system does.
"""

import fixtures
from prometheus_client import parser
import requests
import testtools
from unit.api import base

from rig.serving import api as served_api

#: What Prometheus 2.42 and 3 send.
_ACCEPT = (
    'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,'
    'text/plain;version=0.0.4;q=0.4,*/*;q=0.1'
)


class MetricsTestCase(testtools.TestCase):
    def serve(self, **options: str) -> str:
        """The URL of a pool, up to the port."""
        self.useFixture(fixtures.FakeLogger())
        self.pool = self.useFixture(
            served_api.ServedApi(
                processes=2,
                sections={
                    'DEFAULT': {'transport_url': 'fake:/'},
                    'nova_accel': options,
                },
            )
        )
        url: str = self.pool.url.removesuffix('/accelerator')
        return url

    def ask(self, url: str, **headers: str) -> requests.Response:
        return requests.get(
            url, headers={'Accept': _ACCEPT, **headers}, timeout=60
        )


class TestMetrics(MetricsTestCase):
    def test_read_by_prometheus(self) -> None:
        url = self.serve(metrics_allowed_networks='127.0.0.0/8')
        answer = requests.put(
            f'{url}/v2/hosts/{base.HOSTNAME}',
            json=base.report(functions=3),
            headers={
                'X-User-Id': 'user',
                'X-Project-Id': 'service',
                'X-Roles': 'service',
                'X-Service-Roles': 'service',
                'OpenStack-API-Version': 'accelerator latest',
            },
            timeout=60,
        )
        self.assertEqual(200, answer.status_code, answer.text)
        # Whichever process answers, and whatever it remembers.
        for _again in range(5):
            answer = self.ask(f'{url}/metrics')
            self.assertEqual(200, answer.status_code, answer.text)
            self.assertEqual(
                'text/plain; version=0.0.4; charset=utf-8',
                answer.headers['Content-Type'],
            )
            found = {
                family.name: family.samples
                for family in parser.text_string_to_metric_families(
                    answer.text
                )
            }
            [free] = found['nova_accel_units_free']
            self.assertEqual(3, free.value)
            self.assertEqual('FPGA', free.labels['resource_class'])

    def test_refused_to_another_address(self) -> None:
        url = self.serve(metrics_allowed_networks='192.0.2.0/24,::1')
        for headers in (
            {},
            {'X-Forwarded-For': '192.0.2.7'},
            {'Forwarded': 'for=192.0.2.7'},
            {'X-Roles': 'admin', 'X-Auth-Token': 'any'},
        ):
            answer = self.ask(f'{url}/metrics', **headers)
            self.assertEqual(403, answer.status_code, headers)
            self.assertNotIn('nova_accel_', answer.text)

    def test_refused_through_a_proxy(self) -> None:
        """The proxy has an allowed address, and its clients may not."""
        url = self.serve(metrics_allowed_networks='127.0.0.1')
        for name in ('X-Forwarded-For', 'Forwarded', 'Via', 'X-Real-IP'):
            answer = self.ask(f'{url}/metrics', **{name: '192.0.2.7'})
            self.assertEqual(403, answer.status_code, name)
        # Not where a proxy mounts the API, and nothing is below.
        for path in ('/accelerator/metrics', '/metrics/more'):
            self.assertEqual(404, self.ask(url + path).status_code, path)

    def test_off_by_default(self) -> None:
        url = self.serve()
        self.assertEqual(404, self.ask(f'{url}/metrics').status_code)

    def test_health(self) -> None:
        url = self.serve()
        answer = self.ask(f'{url}/healthcheck')
        self.assertEqual(200, answer.status_code, answer.text)
        self.assertIn('database of accelerators', answer.text)
