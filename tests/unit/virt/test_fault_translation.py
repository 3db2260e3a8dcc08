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

import fixtures
from nova import exception
import testscenarios
import testtools

from nova_accel import exceptions
from nova_accel.virt import fault_translation


class TestPublic(testtools.TestCase):
    def test_each_kind(self):
        ours = exceptions.DeviceError('0000:81:00.0: why', public='why')
        for fault, expected in (
            (ours, 'why'),
            (exception.ResizeError(reason='why'), 'Resize error: why'),
            (
                exception.InstanceFaultRollback(
                    exception.ResizeError(reason='why')
                ),
                'Resize error: why',
            ),
            # As libvirt's, which name devices.
            (OSError('0000:81:00.0: why'), 'OSError'),
        ):
            self.assertEqual(expected, fault_translation.public(fault))


class TestFaults(testscenarios.WithScenarios, testtools.TestCase):
    scenarios = [
        (
            'unavailable',
            {
                'translated': fault_translation.as_unavailable,
                'becomes': exception.ComputeResourcesUnavailable,
            },
        ),
        (
            'failed',
            {
                'translated': fault_translation.as_failed,
                'becomes': exception.InstanceDeployFailure,
            },
        ),
    ]

    def raised(self, error):
        with self.translated():
            raise error

    def test_ours_are_translated_with_what_the_owner_may_read(self):
        log = self.useFixture(fixtures.FakeLogger())
        cause = exceptions.AcceleratorsBusy(
            'none is free on compute-1', public='none is free'
        )
        error = self.assertRaises(self.becomes, self.raised, cause)
        self.assertTrue(
            error.format_message().rstrip('.').endswith(': none is free')
        )
        self.assertIs(cause, error.__cause__)
        self.assertIn('none is free on compute-1', log.output)

    def test_of_a_bitstream_that_is_at_fault_no_other_host_is_tried(self):
        error = self.assertRaises(
            exception.ImageUnacceptable,
            self.raised,
            exceptions.BitstreamUnusable(
                'CRC error of 0000:81:00.0', 'image', public='upload it again'
            ),
        )
        self.assertEqual(
            'Image image is unacceptable: upload it again',
            error.format_message(),
        )
        # Nova tries another host after these two.
        self.assertNotIsInstance(
            error,
            (
                exception.ComputeResourcesUnavailable,
                exception.RescheduledException,
            ),
        )

    def test_others_are_not(self):
        self.assertRaises(KeyError, self.raised, KeyError('key'))


class TestAborted(testtools.TestCase):
    def test_no_other_host_is_tried_over_quota(self):
        cause = exceptions.OverQuota.for_all('quota exceeded: class:FPGA')
        # Nova calls the translations in this order.
        with (
            testtools.ExpectedException(
                exception.BuildAbortException,
                'Build of instance uuid aborted: quota exceeded: class:FPGA',
            ),
            fault_translation.as_unavailable(),
            fault_translation.as_aborted('uuid'),
        ):
            raise cause

    def test_others_are_left_alone(self):
        with (
            testtools.ExpectedException(exceptions.AcceleratorsBusy),
            fault_translation.as_aborted('uuid'),
        ):
            raise exceptions.AcceleratorsBusy('none is free')
