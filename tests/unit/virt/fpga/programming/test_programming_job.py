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
import testtools

from nova_accel import exceptions
from nova_accel.model.fpga import programming_record
from nova_accel.virt.fpga.programming import programming_job


class TestJob(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.virt.fpga.programming.programming_job._GRACE_S', 0
            )
        )
        self.executor = futures.ThreadPoolExecutor(1)
        self.addCleanup(self.executor.shutdown)
        self.may_end = threading.Event()
        self.addCleanup(self.may_end.set)
        self.touched = []

    def job(self, left_s=30):
        return programming_job.Job(
            'region0', programming_record.Asker(), time.monotonic() + left_s
        )

    def work(self, job, began=None):
        with job.touching():
            if began is not None:
                began.set()
            self.may_end.wait(30)
            self.touched.append(job)

    def test_what_fails_is_raised(self):
        job = self.job()
        job.wait()
        job.run(self.executor.submit(self.work, job))
        self.may_end.set()
        job.wait()
        programming_job.abandon([job])
        job.run(self.executor.submit(self.work, job))
        error = self.assertRaises(exceptions.DeviceError, job.wait)
        self.assertIn('given up', str(error))
        self.assertEqual(1, len(self.touched))

    def test_it_is_awaited_for_so_long(self):
        job = self.job(0.05)
        job.run(self.executor.submit(self.work, job))
        error = self.assertRaises(exceptions.DeviceError, job.wait)
        self.assertIn('not programmed in time', str(error))
        # Nor is its end for ever.
        programming_job.abandon([job])

    def test_what_touches_the_card_ends_first(self):
        job, began = self.job(), threading.Event()
        job.run(self.executor.submit(self.work, job, began))
        began.wait(30)
        threading.Timer(0.05, self.may_end.set).start()
        programming_job.abandon([job])
        self.assertEqual([job], self.touched)

    def test_no_time_left(self):
        job = self.job(0)
        error = self.assertRaises(exceptions.DeviceError, self.work, job)
        self.assertIn('no time left', str(error))
        self.assertEqual([], self.touched)

    def test_one_that_fails_ends_the_others(self):
        first, second = self.job(0.05), self.job()
        for job in (first, second):
            job.run(self.executor.submit(self.work, job))
        self.assertRaises(
            exceptions.DeviceError, programming_job.wait_for, [first, second]
        )
        self.assertRaises(exceptions.DeviceError, second.check_wanted)

    def test_what_has_not_begun_does_not(self):
        first, second = self.job(), self.job()
        first.run(self.executor.submit(self.work, first))
        second.run(self.executor.submit(self.work, second))
        programming_job.abandon([second])
        self.may_end.set()
        first.wait()
        self.executor.shutdown()
        self.assertEqual([first], self.touched)
