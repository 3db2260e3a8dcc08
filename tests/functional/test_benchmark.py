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
import subprocess
import sys

from nova import test as nova_test
import testtools

from functional import base
from rig.benchmark import cloud as benchmark_cloud
from rig.benchmark import fpga as benchmark_fpga
from rig.benchmark import main as benchmark
from rig.benchmark import scheduler_cloud
from rig.benchmark import scheduler_cost

HOST = 'host1'


class TestBenchmark(benchmark_cloud.BenchmarkCloud, base.AcceleratorTestCase):
    """Not how long it takes, but how much is asked."""

    hosts = ()

    def __init__(self, *args, **kwargs):
        base.AcceleratorTestCase.__init__(self, *args, **kwargs)

    def measure(self, cards, is_pooled):
        self.start(HOST, cards, 8, is_pooled)
        return benchmark.figures(self, HOST, times=1)

    def test_pooled(self):
        self.assert_cheap(self.measure(4, is_pooled=True), providers=1)

    def test_apart(self):
        self.assert_cheap(self.measure(2, is_pooled=False), providers=16)

    def assert_cheap(self, found, providers):
        self.assertEqual(providers, found['providers'])
        self.assertEqual(
            {'http_calls': 1, 'sql_statements': 1}, found['unchanged_report']
        )
        plain = found['placement_calls_of_boot_without']
        # Which of the profile's traits exist is known after the first boot.
        self.assertEqual(plain, found['placement_calls_of_boot'])
        # Nova asks for the allocations of each provider in every claim.
        for calls in (plain, found['placement_calls_of_resource_update']):
            self.assertEqual(
                2 + providers, calls['nova.compute.resource_tracker']
            )


class TestFpga(benchmark_fpga.BootCloud, base.AcceleratorTestCase):
    """As above."""

    hosts = ()

    def test_nothing_is_done_twice(self):
        found = benchmark_fpga.boots(self, image_s=0, program_s=0)
        self.assertEqual(1, found['programmings'])
        self.assertEqual(0, found['second_boot_programmings'])
        self.assertEqual(0, found['second_boot_bytes'])


class TestScheduler(scheduler_cloud.SchedulerCloud):
    """As above."""

    HOSTS = 20

    def __init__(self, *args, **kwargs):
        nova_test.TestCase.__init__(self, *args, **kwargs)

    def test_what_is_asked(self):
        found = scheduler_cost.figures(self, rounds=1)
        for name, amount in (
            ('statements', 2),
            ('plain_statements', 0),
            ('placement_calls', 0),
            ('plain_placement_calls', 0),
            ('candidates_calls', 0),
            ('candidates_calls_of_50', 0),
            ('placement_calls_of_50', 0),
            ('all_candidates_calls', 1),
            # The device profile, and what has changed.
            ('availability_statements', 2),
            # It has answered for all requests that are the same.
            ('alternatives_questions', 1),
        ):
            self.assertEqual(amount, found[name], name)


class TestCommand(testtools.TestCase):
    def test_prints_one_object(self):
        done = subprocess.run(
            [
                sys.executable,
                '-m',
                'rig.benchmark.main',
                'fpga',
                '--bitstream-mb=1',
                '--times=1',
                '--image-s=1',
                '--program-s=1',
            ],
            capture_output=True,
            check=True,
            timeout=240,
        )
        self.assertEqual(1, json.loads(done.stdout)['programmings'])
