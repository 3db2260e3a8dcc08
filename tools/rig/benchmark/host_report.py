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

"""The benchmark of the report of a host that has many devices."""

import statistics
import time
from typing import Any

from nova_accel.testing import reports
from rig.benchmark import http_client

_DEVICES = 256

_TIMES = 31

_HEADERS = {
    'Content-Type': 'application/json',
    'X-User-Id': 'nova',
    'X-Project-Id': 'a' * 32,
    'X-Roles': 'service',
    'OpenStack-API-Version': 'accelerator latest',
}


def figures(port: int) -> dict[str, float]:
    """How long an API takes for the report of 256 unchanged devices.

    ``report_256_ms`` is that of a host that sends all of them, and
    ``report_256_compared_ms`` that of one that gives them another digest, so
    that each row is compared. ``report_256_digest_ms`` is that of
    nova-compute, which sends their digest alone. The medians count.
    """
    host = reports.SimulatedHost(
        'benchmark-report', regions=(), functions=_DEVICES
    )
    client = http_client.HttpClient(port, _HEADERS)
    facts = {
        'node_uuid': host.node_uuid,
        'service_host': host.service_host,
        'contract': host.contract,
    }
    whole = {**facts, 'devices': host.reported(), 'digest': 'same'}

    def report(body: dict[str, Any], status: int) -> float:
        begin = time.perf_counter()
        found, text = client.ask('PUT', f'/v2/hosts/{host.hostname}', body)
        assert found == status, f'{found} {text!r}'
        return (time.perf_counter() - begin) * 1000

    report(whole, 200)
    result = {}
    for name, body, status in (
        ('report_256_ms', {**whole, 'orders_seen': 0}, 204),
        ('report_256_compared_ms', whole, 200),
        (
            'report_256_digest_ms',
            {**facts, 'digest': 'same', 'orders_seen': 0},
            204,
        ),
    ):
        took = []
        for number in range(_TIMES):
            if status == 200:
                body = {**body, 'digest': f'other {number}'}
            took.append(report(body, status))
        result[name] = round(statistics.median(took), 1)
        # The last digest is that of the next ones again.
        report(whole, 200)
    return result
