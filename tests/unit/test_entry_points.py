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

"""The entry points of the installed package."""

from importlib import metadata

import testtools


class TestEntryPoints(testtools.TestCase):
    def test_each_can_be_loaded(self):
        points = metadata.distribution('nova_accel').entry_points
        self.assertIn('nova_accel.drivers', points.groups)
        for point in points:
            point.load()

    def test_none_is_for_tests(self):
        points = metadata.distribution('nova_accel').entry_points
        self.assertEqual(
            [],
            [
                point
                for point in points
                if point.module.startswith('nova_accel.testing')
            ],
        )
