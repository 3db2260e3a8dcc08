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

import types

from nova.compute import task_states
import testtools

from nova_accel.virt import rebuild


class NovaDriver:
    """What the mixin is mixed into."""

    def rebuild(self, context, instance, image_meta, evacuate=False):
        self.asked = (context, instance, image_meta, evacuate)
        raise NotImplementedError


class Driver(rebuild.RebuildMixin, NovaDriver):
    pass


class TestRebuildMixin(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.driver = Driver()
        self.instance = types.SimpleNamespace(
            uuid='5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01',
            task_state=task_states.REBUILDING,
        )

    def rebuild(self, **evacuate):
        """As nova-compute does: all by keyword."""
        self.assertRaises(
            NotImplementedError,
            self.driver.rebuild,
            context='context',
            instance=self.instance,
            image_meta='image',
            **evacuate,
        )

    def assert_in_place(self, expected, *states):
        for self.instance.task_state in states:
            self.assertIs(
                expected, self.driver._rebuilds_in_place(self.instance)
            )

    def test_in_place(self):
        self.assert_in_place(False, task_states.REBUILDING)
        self.rebuild(evacuate=False)
        self.assertEqual(
            ('context', self.instance, 'image', False), self.driver.asked
        )
        self.assert_in_place(
            True,
            task_states.REBUILDING,
            task_states.REBUILD_BLOCK_DEVICE_MAPPING,
            task_states.REBUILD_SPAWNING,
        )

    def test_in_place_before(self):
        self.rebuild()
        self.assert_in_place(
            False, task_states.DELETING, task_states.REBUILDING
        )

    def test_of_what_was_evacuated_to_here(self):
        self.rebuild(evacuate=True)
        self.assertIs(True, self.driver.asked[-1])
        self.assert_in_place(False, task_states.REBUILDING)
