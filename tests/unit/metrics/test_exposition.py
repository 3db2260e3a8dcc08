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

from concurrent import futures
import threading
import time

import fixtures
from prometheus_client import parser
import testtools

from nova_accel import exceptions
from nova_accel.db import device_profile
from nova_accel.db import host_arqs
from nova_accel.metrics import exposition
from nova_accel.testing import database
from nova_accel.testing import reports


class ReadTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.useFixture(database.Database())

    def test_a_parser_reads_it(self) -> None:
        host = reports.SimulatedHost(regions=(2,))
        host.report()
        device_profile.create('fpga', [{'resources:FPGA': '1'}])
        host_arqs.acquire(
            host_arqs.AcquireRequest(
                'instance',
                'compute-1',
                'active',
                1,
                'project',
                'fpga',
                (host.allocated(),),
            )
        )
        found = {
            family.name: family.samples
            for family in parser.text_string_to_metric_families(
                exposition.read().decode()
            )
        }
        [info] = found['nova_accel_arq_info']
        self.assertEqual('instance', info.labels['instance_id'])
        self.assertEqual('00000000:00:00.0', info.labels['pci_bus_id'])
        [free] = found['nova_accel_units_free']
        self.assertEqual(1, free.value)
        [took] = found['nova_accel_database_read_seconds']
        self.assertGreater(took.value, 0)

    def test_no_database(self) -> None:
        self.useFixture(database.Database(tables=False))
        self.assertRaises(exceptions.ServiceUnavailable, exposition.read)


class KeptTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.readings = 0
        self.fault: Exception | None = None

    def read(self) -> bytes:
        self.readings += 1
        if self.fault is not None:
            raise self.fault
        return f'{self.readings}'.encode()

    def test_for_some_seconds(self) -> None:
        kept = exposition.Kept(self.read, 1000, 1)
        self.assertEqual([b'1'] * 3, [kept.text() for _again in range(3)])
        kept = exposition.Kept(self.read, 0, 1)
        self.assertEqual([b'2', b'3'], [kept.text() for _again in range(2)])

    def test_a_failure_too(self) -> None:
        self.fault = exceptions.ServiceUnavailable('db-7 is down', public='no')
        kept = exposition.Kept(self.read, 0.05, 1)
        for _again in range(3):
            fault = self.assertRaises(exceptions.ServiceUnavailable, kept.text)
            self.assertEqual('the metrics could not be read: no', str(fault))
        self.assertEqual(1, self.readings)
        self.assertIn('db-7 is down', self.log.output)
        self.fault = None
        time.sleep(0.06)
        self.assertEqual(b'2', kept.text())

    def test_one_thread_reads(self) -> None:
        begun, go_on = threading.Event(), threading.Event()

        def slow() -> bytes:
            begun.set()
            go_on.wait(30)
            return self.read()

        kept = exposition.Kept(slow, 1000, 0.05)
        with futures.ThreadPoolExecutor(1) as executor:
            first = executor.submit(kept.text)
            begun.wait(30)
            fault = self.assertRaises(exceptions.ServiceUnavailable, kept.text)
            self.assertIn('still being read', str(fault))
            go_on.set()
            self.assertEqual(b'1', first.result(30))
        self.assertEqual(b'1', kept.text())

    def test_what_nobody_expects_is_not_kept(self) -> None:
        self.fault = ValueError('a fault of ours')
        kept = exposition.Kept(self.read, 1000, 1)
        self.assertRaises(ValueError, kept.text)
        self.fault = None
        self.assertEqual(b'2', kept.text())
