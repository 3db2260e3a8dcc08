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

from oslotest import base

from nova_accel import exceptions
from nova_accel.testing import accelerator_api
from rig.benchmark import scale_hosts


class TestWaits(base.BaseTestCase):
    def test_times_what_is_answered(self) -> None:
        def fail() -> None:
            raise exceptions.ServiceUnavailable('away')

        waits = scale_hosts.Waits()
        waits.time(lambda: None)
        self.assertRaises(exceptions.ServiceUnavailable, waits.time, fail)
        self.assertEqual((1, 1), (len(waits.seconds), waits.failed))


class TestHost(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.useFixture(accelerator_api.AcceleratorApi())
        self.waits = scale_hosts.Waits()

    def test_reports_its_devices(self) -> None:
        host = scale_hosts.Host('compute-1', 'http://accelerator.test')
        for _time in range(2):
            host.report(self.waits)
        self.assertEqual(2, len(self.waits.seconds))
        self.assertIsNotNone(host._revision)
        self.assertEqual([], host.api.bindings())

    def test_does_not_report_twice_at_once(self) -> None:
        host = scale_hosts.Host('compute-1', 'http://accelerator.test')
        with host._reporting:
            host.report(self.waits)
        self.assertEqual((0, 0), (len(self.waits.seconds), self.waits.failed))

    def test_leaves_a_failure_to_the_next_report(self) -> None:
        host = scale_hosts.Host('compute-1', 'http://127.0.0.1:9')
        host.api._adapter.connect_retries = 0
        host.report(self.waits)
        self.assertEqual((0, 1), (len(self.waits.seconds), self.waits.failed))
