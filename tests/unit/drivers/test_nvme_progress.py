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

import struct
import types

import testtools

from nova_accel.drivers import nvme_progress


def log(progress, status=2, action=2, estimate_s=0xFFFFFFFF):
    """The beginning of a log, with an estimate of the time to erase blocks."""
    return struct.pack(
        '<HBBI3I', progress, status, 1, action, 0, estimate_s, 0
    )


class TestStall(testtools.TestCase):
    def look(self, stall, *logs, each_s=200):
        """Whether it is over, at each look."""
        return [
            stall(
                types.SimpleNamespace(
                    outcome=types.SimpleNamespace(
                        result=lambda said=said: said
                    ),
                    idle_for=number * each_s,
                )
            )
            for number, said in enumerate(logs)
        ]

    def test_progress_counts_and_no_step_back(self):
        stall = nvme_progress.Stall()
        self.assertEqual(
            [False, False, False, False, True],
            self.look(
                stall, *map(log, (0x4000, 0x8000, 0x7000, 0x8000, 0x8000))
            ),
        )
        self.assertEqual((50, True), (stall.percent, stall.is_over))

    def test_an_estimate_gives_it_more_time(self):
        for estimate_s, limit_s in ((5, 600), (900, 900), (9000, 3600)):
            stall = nvme_progress.Stall()
            self.look(stall, log(0, estimate_s=estimate_s))
            self.assertEqual(limit_s, stall.limit_s)


class TestStatus(testtools.TestCase):
    def test_bits_above_are_something_else(self):
        self.assertEqual(2, nvme_progress.status(log(0, status=0b1010)))
