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
from nova import context as nova_context
from nova import exception
from nova import objects

from nova_accel.model import naming
from nova_accel.scheduler import candidates
from nova_accel.scheduler import native_groups
from nova_accel.testing import reports
from nova_accel.testing import scheduling
from unit.scheduler import test_request_filter


class TestCheck(test_request_filter.RequestFilterTestCase):
    """Our host has an FPGA, in Placement too."""

    def setUp(self):
        super().setUp()
        host = reports.SimulatedHost('host', regions=(1,))
        host.report()
        self.placement.add_provider(
            'host_accel',
            {'FPGA': 1},
            self.host,
            [naming.OWNERSHIP_TRAIT],
            uuid=host.rp_uuid(0, 0),
        )
        self.asked = []
        ask = candidates.ask
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.scheduler.candidates.ask',
                lambda *args, **kwargs: (
                    self.asked.append(args) or ask(*args, **kwargs)
                ),
            )
        )

    def check(self, **resources):
        native_groups.check(
            nova_context.get_admin_context(),
            [objects.RequestGroup(resources=resources)],
        )

    def test_no_device_of_novas_own(self):
        error = self.assertRaises(
            exception.RequestFilterFailed, self.check, FPGA=1
        )
        self.assertIn(
            'the flavor asks for FPGA=1 without a device profile, and no '
            "device of Nova's own has that free",
            str(error),
        )

    def test_novas_own_are_asked_for_once(self):
        self.placement.add_provider('native', {'FPGA': 4}, self.host)
        for _time in range(3):
            self.check(FPGA=2)
        self.assertEqual(1, len(self.asked))
        self.assertRaises(exception.RequestFilterFailed, self.check, FPGA=5)

    def test_a_group_of_several_providers(self):
        """Placement serves the flavor's unnumbered group by a whole tree."""
        self.placement.add_provider('native', {'FPGA': 4}, self.host)
        self.check(FPGA=2, MEMORY_MB=64)

    def test_what_our_hosts_do_not_report(self):
        self.check(CUSTOM_BAREMETAL=1)
        self.assertEqual([], self.asked)

    def test_a_placement_that_is_away(self):
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.scheduler.candidates.ask',
                lambda *_args, **_kwargs: None,
            )
        )
        self.check(FPGA=1)

    def test_as_a_request_filter(self):
        error = self.assertRaises(
            exception.RequestFilterFailed,
            test_request_filter.merge,
            scheduling.request_spec({'resources:FPGA': '1'}),
        )
        self.assertIn('without a device profile', str(error))
        self.assertFalse(
            test_request_filter.merge(
                scheduling.request_spec({'hw:cpu_policy': 'dedicated'})
            )
        )
        self.assertEqual(1, len(self.asked))
