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

"""A tenant's bitstream says anything: its host and others do not mind.

Each set of properties goes through a boot on a host whose driver, journals,
API, database, Placement and Glance's client are real; Nova's manager is
imitated, for a boot through all of Nova takes seconds.
"""

import os
import uuid

import hypothesis
from hypothesis import strategies as st
from nova import context as nova_context
from nova.compute import vm_states
import testtools
from unit.model import hostile_metadata

from crash import cloud as cloud_module
from crash import tenants_bitstreams
from nova_accel.model.profiles import device_profile
from nova_accel.testing import fake_fpga
from nova_accel.testing import scheduling
from rig import compute_parts

_NATIVE = device_profile.FLAVOR_KEY

_SETS = {'quick': 20, 'full': 200}[
    os.environ.get('HYPOTHESIS_PROFILE', 'quick')
]


class TestHostileMetadata(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = self.useFixture(cloud_module.Cloud())
        self.cards = self.useFixture(fake_fpga.Programming())
        self.placement = self.useFixture(scheduling.Placement())
        self.images = self.useFixture(tenants_bitstreams.TenantsBitstreams())
        self.host, _other = self.cloud.hosts
        self.loaded = 0

    def publish(self):
        """The worker's cycle, and what Nova's next update makes of it."""
        accelerators = self.host.driver._accelerators
        publisher = compute_parts.publisher(accelerators)
        accelerators.cycle.run()
        # Else the API has not accepted it.
        publisher.wait_published(0)
        self.assertEqual((), publisher._told)
        context = nova_context.get_admin_context()
        client = self.placement.client
        tree = client.get_provider_tree_and_ensure_root(
            context, self.host.node_uuid, name=self.host.name
        )
        accelerators.providers.update(tree, None)
        client.update_from_provider_tree(context, tree)
        traits = scheduling.checked(
            client.get('/traits', version='1.6')
        ).json()['traits']
        self.assertEqual(
            [], [trait for trait in traits if '_FUNCTION_' in trait]
        )

    def boot(self, bitstream_id=None):
        return self.cloud.nova.boot(
            self.host,
            _NATIVE,
            'fpga',
            {}
            if bitstream_id is None
            else {'accel:bitstream_id': bitstream_id},
        )

    def check(self, properties):
        before = len(self.cards.programmed)
        tenants = self.boot(self.images.upload(**properties))
        self.loaded += len(self.cards.programmed) - before
        self.publish()
        self.host.start()
        self.publish()
        if tenants.vm_state == vm_states.ACTIVE:
            self.cloud.nova.hard_reboot(tenants)
            self.assertEqual(vm_states.ACTIVE, tenants.vm_state)
        other = self.boot()
        self.assertEqual(vm_states.ACTIVE, other.vm_state)
        self.assertTrue(self.host.runs(other))
        for server in (tenants, other):
            self.cloud.nova.delete(server)
        self.assertEqual({}, self.cloud.nova.instances)

    def test_each_goes_through_a_boot(self):
        self.publish()
        region_uuid = next(
            region.type_uuid
            for device in compute_parts.current_state(
                self.host.driver._accelerators
            ).view.devices
            for region in device.regions
        )

        @hypothesis.settings(
            max_examples=_SETS,
            deadline=None,
            database=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(hostile_metadata.properties(), st.booleans())
        @hypothesis.example({'function_uuid': '---'}, True)
        @hypothesis.example({'function_uuid': 'x' * 300}, True)
        @hypothesis.example({'function_uuid': '\u2122'}, True)
        @hypothesis.example(
            {
                'function_uuid': ','.join(
                    str(uuid.UUID(int=number)) for number in range(1100)
                )
            },
            True,
        )
        @hypothesis.example({'function_uuid': str(uuid.uuid4())}, True)
        def check(properties, fits):
            self.check(
                {
                    **properties,
                    **({'region_uuid': region_uuid} if fits else {}),
                }
            )

        check()
        # Else this would be about nothing.
        self.assertGreater(self.loaded, 0)
