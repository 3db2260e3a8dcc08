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

import argparse

import fixtures

from nova_accel.db import device
from nova_accel.db import host as host_db
from nova_accel.model.devices import hardware
from nova_accel.osc import published
from nova_accel.testing import reports
from unit.osc import base


class TestWait(base.CommandTestCase):
    """Time passes by waiting."""

    def setUp(self) -> None:
        super().setUp()
        self.passed = 0.0
        self.useFixture(
            fixtures.MockPatch('time.monotonic', lambda: self.passed)
        )
        self.useFixture(fixtures.MockPatch('time.sleep', self.pass_time))
        self.reports_at: float | None = None
        self.host = reports.SimulatedHost('compute-1', (1, 1))
        self.host.report()
        self.told: list[str] = []
        device.set_status(self.host.device_uuid(), hardware.Status.MAINTAINING)

    def pass_time(self, seconds: float) -> None:
        self.passed += seconds
        if self.reports_at is not None and self.passed >= self.reports_at:
            self.host.follow()

    def wait(self, wait_s: int = 30, *uuids: str) -> set[str]:
        return published.wait(
            self.api.adapter,
            ['compute-1'],
            wait_s,
            self.told.append,
            uuids or None,
        )

    def test_the_host_reports(self) -> None:
        self.reports_at = 3
        self.assertEqual(set(), self.wait())
        self.assertEqual(3, self.passed)
        self.assertIn('compute-1 has published it', self.told[0])

    def test_the_host_does_not_report(self) -> None:
        self.assertEqual({self.host.device_uuid()}, self.wait())
        self.assertEqual(30, self.passed)
        self.assertIn('compute-1 has not reported yet', self.told[0])

    def test_it_is_only_looked(self) -> None:
        self.wait(0)
        self.assertEqual(0, self.passed)

    def test_other_devices_do_not_matter(self) -> None:
        self.assertEqual(set(), self.wait(30, self.host.device_uuid(1)))
        self.assertEqual(0, self.passed)

    def test_a_device_that_is_gone(self) -> None:
        """It left the list when it was enabled."""
        gone = self.host.device_uuid()
        reports.SimulatedHost('compute-1', (None, 1)).report()
        device.set_status(gone, hardware.Status.ENABLED)
        reports.SimulatedHost('compute-1', (None, 1)).report()
        self.assertNotIn(gone, [each['uuid'] for each in device.get_all()])
        self.assertEqual(set(), self.wait(30, gone))

    def test_a_host_that_is_gone(self) -> None:
        host_db.forget('compute-1', -1)
        self.assertEqual(set(), self.wait())

    def test_how_long(self) -> None:
        parser = argparse.ArgumentParser(exit_on_error=False)
        published.add_wait(parser)
        self.assertEqual(7, parser.parse_args(['--wait', '7']).wait)
        for text in ('-1', '3601', 'x'):
            self.assertRaises(
                argparse.ArgumentError, parser.parse_args, [f'--wait={text}']
            )
