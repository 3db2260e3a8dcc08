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

from nova_accel import exceptions
from nova_accel.host import fabric_manager
from nova_accel.model import pci_address
from nova_accel.model.links import fabric
from nova_accel.privileged import vendor_tool
from nova_accel.testing import fabric_manager as simulated
from nova_accel.testing import fmpm


class Client:
    """Says what a test wants."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.calls = []

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append((name, *arguments))
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


class TestAnswers(testtools.TestCase):
    def manager(self, *answers):
        self.client = Client(*answers)
        return fabric_manager.FabricManager(7, self.client)

    def test_in_use_and_not_in_use_are_no_faults(self):
        manager = self.manager((0, ''), (249, 'in use'))
        function = pci_address.PciAddress(0, 1, 0, 4)
        self.assertTrue(manager.activate(3, [function]))
        self.assertFalse(manager.activate(3))
        self.assertEqual(
            [('activate', 3, ['0000:01:00.4'], 7), ('activate', 3, [], 7)],
            self.client.calls,
        )
        manager = self.manager((0, ''), (252, ''))
        self.assertTrue(manager.deactivate(3))
        self.assertFalse(manager.deactivate(3))
        manager = self.manager((0, ''), (253, ''))
        self.assertTrue(manager.restore([3]))
        self.assertFalse(manager.restore([3]))

    def test_not_ready(self):
        for call in (
            lambda manager: manager.partitions(),
            lambda manager: manager.usable_partitions(),
            lambda manager: manager.activate(3),
            lambda manager: manager.deactivate(3),
            lambda manager: manager.restore([3]),
        ):
            self.assertRaises(
                exceptions.FabricNotReady, call, self.manager((248, ''))
            )

    def test_refused(self):
        error = self.assertRaises(
            exceptions.FabricError,
            self.manager((254, 'Failed.\nfmReturn: -2\n')).activate,
            3,
        )
        self.assertEqual(
            'cannot activate partition 3 of the NVSwitch fabric: Fabric '
            'Manager refused (Failed. fmReturn: -2)',
            str(error),
        )
        self.assertNotIn('artition', error.public)

    def test_no_answer(self):
        for answer, text in (
            (OSError('no root'), 'no root'),
            (ValueError('endless'), 'endless'),
            ((vendor_tool.BUSY, ''), 'another call'),
            ((124, ''), 'no answer within 7 s'),
            ((137, ''), 'no answer within 7 s'),
            ((-9, ''), 'refused'),
        ):
            error = self.assertRaises(
                exceptions.FabricError, self.manager(answer).partitions
            )
            self.assertIn(text, str(error))

    def test_no_partitions_are_managed(self):
        self.assertIsNone(self.manager((253, '')).partitions())
        self.assertIsNone(self.manager((253, '')).usable_partitions())

    def test_a_list_that_is_no_list(self):
        self.assertRaises(
            exceptions.DeviceError, self.manager((0, 'x')).partitions
        )


class TestSimulated(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.daemon = self.useFixture(simulated.FabricManager())
        self.manager = fabric_manager.FabricManager(30)

    def usable(self):
        return {
            each.number
            for each in self.manager.usable_partitions()
            if each.is_supported
        }

    def test_all(self):
        self.assertEqual(set(simulated.H100), self.usable())
        self.assertTrue(self.manager.activate(3))
        self.assertIn(
            fabric.Partition(3, frozenset({1, 3}), True, True, (1, 3)),
            self.manager.partitions(),
        )
        self.assertFalse(self.manager.activate(7))
        self.assertTrue(self.manager.deactivate(3))
        self.assertFalse(self.manager.deactivate(3))

    def test_links_that_are_down(self):
        self.daemon.break_link(3)
        self.assertEqual(set(simulated.H100) - {0, 1, 3}, self.usable())
        # Without these lists it is known by the numbers of links alone.
        self.daemon.refuse('--get-nvlink-failed-devices')
        self.daemon.refuse('--list-unsupported-partitions', fmpm.NOT_SUPPORTED)
        self.assertEqual(set(simulated.H100) - {0, 1, 3}, self.usable())

    def test_what_fabric_manager_has_given_up(self):
        self.daemon.call_unsupported([0, 4])
        self.assertEqual(set(simulated.H100) - {0, 4}, self.usable())
        self.assertEqual(15, len(self.manager.usable_partitions()))
