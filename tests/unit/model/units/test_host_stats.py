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

import testtools

from nova_accel.model.units import host_stats


class TestHostStats(testtools.TestCase):
    def test_what_is_told_is_read(self):
        stats = host_stats.to_stats({'PGPU': 8, 'FPGA': 4})
        self.assertEqual(12, host_stats.units(stats))
        self.assertEqual('8', stats['nova_accel_units:PGPU'])

    def test_a_host_without_accelerators(self):
        self.assertEqual({}, host_stats.to_stats({}))
        self.assertEqual({}, host_stats.to_stats({'PGPU': 0}))
        self.assertEqual(0, host_stats.units({'num_instances': '3'}))

    def test_nothing_that_is_told_breaks_it(self):
        for told in (None, '', 'many', '1.5', [], {}, '9' * 5000, '-3'):
            self.assertEqual(
                0, host_stats.units({host_stats.KEY: told}), repr(told)
            )

    def test_it_is_bounded(self):
        self.assertEqual(
            host_stats.MAX_UNITS,
            host_stats.units({host_stats.KEY: '9' * 100}),
        )
        stats = host_stats.to_stats(
            {f'CUSTOM_{number}': 10**30 for number in range(1000)}
        )
        self.assertEqual(host_stats.MAX_CLASSES + 1, len(stats))
        self.assertEqual({str(host_stats.MAX_UNITS)}, set(stats.values()))

    def test_nova_does_not_take_them_for_its_own(self):
        """It adds up all statistics whose names begin like its own."""
        for name in host_stats.to_stats({'PGPU': 8}):
            self.assertFalse(name.startswith(('num_', 'io_', 'failed_')))
