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
from keystoneauth1 import exceptions as ks_exc
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.compute import vm_states
from nova.limit import utils as limit_utils
from openstack import exceptions as sdk_exc
from oslo_limit import exception as limit_exc
from oslo_limit import fixture as limit_fixture
from oslo_utils import uuidutils
import testtools

from nova_accel import conf
from nova_accel.model import naming
from nova_accel.model.cards import card_slice
from nova_accel.model.profiles import device_profile
from nova_accel.scheduler import candidates
from nova_accel.scheduler import our_group
from nova_accel.scheduler import ownership
from nova_accel.scheduler import request_filter
from nova_accel.scheduler import unified_limits
from nova_accel.testing import scheduling

CONF = conf.CONF


class LimitsTestCase(testtools.TestCase):
    """A host with four FPGAs; Keystone's limits are imitated."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.configure(limit_utils.UNIFIED_LIMITS_DRIVER, 'driver')
        self.configure('compute', 'endpoint_service_type', 'oslo_limit')
        self.placement = self.useFixture(scheduling.Placement())
        host = self.placement.add_provider('host', {'VCPU': 8})
        self.placement.add_provider(
            'host_accel', {'FPGA': 4}, host, [naming.OWNERSHIP_TRAIT]
        )
        self.mapping = self.useFixture(
            fixtures.MockPatch(
                'nova.objects.InstanceMapping.get_by_instance_uuid',
                return_value=objects.InstanceMapping(cell_mapping=None),
            )
        ).mock

    def configure(self, value, name, group='quota'):
        CONF.set_override(name, value, group)
        self.addCleanup(CONF.clear_override, name, group)

    def limit(self, registered, **of_projects):
        keystone = self.useFixture(
            limit_fixture.LimitFixture(registered, of_projects)
        )
        identity = limit_utils.IdentityClient(
            keystone.mock_conn, 'service_id', 'region_id'
        )
        self.useFixture(
            fixtures.MockPatch('nova.limit.utils.IDENTITY_CLIENT', identity)
        )

    def use(self, units):
        """Have the project have so many FPGAs in use."""
        (found, *_others) = candidates.ask(
            nova_context.get_admin_context(),
            [
                objects.RequestGroup(
                    requester_id='it',
                    resources={'FPGA': units},
                    required_traits={naming.OWNERSHIP_TRAIT},
                )
            ],
        )
        self.assertTrue(self.placement.claim(found))

    def spec(self, *units, key=device_profile.FLAVOR_KEY, servers=1):
        spec = scheduling.request_spec(
            {key: 'p'},
            [
                objects.RequestGroup(
                    requester_id=device_profile.requester_id(index),
                    resources={'FPGA': amount},
                    required_traits={naming.OWNERSHIP_TRAIT},
                )
                for index, amount in enumerate(units)
            ],
        )
        spec.num_instances = servers
        spec.flavor.flavorid = 'big'
        return spec

    def enforce(self, spec):
        """Let the request through, or raise."""
        unified_limits.enforce(
            nova_context.get_admin_context(), spec, ownership.our_groups(spec)
        )

    def reason(self, spec, kind=exception.TooManyInstances):
        return str(self.assertRaises(kind, self.enforce, spec))


class TestEnforce(LimitsTestCase):
    def test_within_the_limit(self):
        self.limit({'class:FPGA': 3})
        self.use(1)
        self.enforce(self.spec(1, 1))
        self.enforce(self.spec(1, servers=2))

    def test_over_the_limit(self):
        self.limit({'class:FPGA': 3})
        self.use(2)
        for spec in (self.spec(2), self.spec(1, 1), self.spec(1, servers=2)):
            self.assertIn(
                'device profile p: quota exceeded: class:FPGA: limit 3, in '
                'use 2, wanted 2',
                self.reason(spec),
            )

    def test_a_projects_own_limit(self):
        self.limit({'class:FPGA': 0}, project={'class:FPGA': 2})
        self.enforce(self.spec(2))
        self.assertIn('limit 2, in use 0, wanted 3', self.reason(self.spec(3)))

    def test_a_limit_of_none(self):
        self.limit({'class:FPGA': 0})
        self.assertIn('limit 0', self.reason(self.spec(1)))

    def test_nova_s_filter_enforces_it(self):
        self.limit({'class:FPGA': 0})
        self.assertRaises(
            exception.TooManyInstances,
            request_filter.check_accelerators,
            nova_context.get_admin_context(),
            self.spec(1),
        )

    def test_no_limit(self):
        for registered in ({'class:FPGA': -1}, {}):
            self.limit(registered)
            self.enforce(self.spec(4))

    def test_a_limit_that_is_required(self):
        self.limit({})
        self.configure(
            ['servers', 'class:FPGA'], 'unified_limits_resource_list'
        )
        self.assertIn('limit 0', self.reason(self.spec(1)))


class TestNotCounted(LimitsTestCase):
    """Whatever is counted is refused."""

    def setUp(self):
        super().setUp()
        self.limit({'class:FPGA': 0})

    def test_limits_are_not_unified(self):
        self.configure('nova.quota.DbQuotaDriver', 'driver')
        self.enforce(self.spec(1))

    def test_no_accelerators(self):
        self.enforce(scheduling.request_spec({}))

    def test_cyborgs_key(self):
        """nova-api has counted it."""
        self.enforce(self.spec(1, key=device_profile.CYBORG_FLAVOR_KEY))

    def test_ports(self):
        port = uuidutils.generate_uuid()
        spec = self.spec()
        spec.requested_networks = objects.NetworkRequestList(
            objects=[
                objects.NetworkRequest(port_id=port, device_profile='nic')
            ]
        )
        spec.requested_resources = [
            objects.RequestGroup(
                requester_id=device_profile.requester_id(0, port),
                resources={'FPGA': 1},
                required_traits={naming.OWNERSHIP_TRAIT},
            )
        ]
        self.enforce(spec)

    def test_shares_of_cards(self):
        """The units themselves are what is limited."""
        self.limit(
            {'class:CUSTOM_SHAPE_WHOLE': 1, 'class:CUSTOM_CARD_SHARE': 0}
        )
        spec = scheduling.request_spec(
            {device_profile.FLAVOR_KEY: 'p'},
            [
                our_group.make(
                    device_profile.requester_id(0),
                    device_profile.Group({'CUSTOM_SHAPE_WHOLE': 1}),
                    share=card_slice.WHOLE_CARD,
                )
            ],
        )
        spec.flavor.flavorid = 'big'
        self.enforce(spec)

    def test_who_is_counted(self):
        """Not a migration, of which Placement has the old allocations."""
        self.mapping.return_value.cell_mapping = objects.CellMapping(
            uuid=uuidutils.generate_uuid()
        )
        self.useFixture(fixtures.MockPatch('nova.context.target_cell'))
        instance = objects.Instance(flavor=objects.Flavor(flavorid='big'))
        self.useFixture(
            fixtures.MockPatch(
                'nova.objects.Instance.get_by_uuid', return_value=instance
            )
        )
        for vm_state in (vm_states.ACTIVE, vm_states.STOPPED, vm_states.ERROR):
            instance.vm_state = vm_state
            self.enforce(self.spec(1))
        for vm_state in (vm_states.BUILDING, vm_states.SHELVED_OFFLOADED):
            instance.vm_state = vm_state
            # Once it was created with two others.
            self.assertIn('wanted 1', self.reason(self.spec(1, servers=3)))
        instance.vm_state = vm_states.ACTIVE
        instance.flavor.flavorid = 'small'
        self.assertIn('class:FPGA', self.reason(self.spec(1)))

    def test_an_instance_that_is_in_no_cell(self):
        for error in (
            exception.InstanceMappingNotFound(uuid='it'),
            exception.InstanceNotFound(instance_id='it'),
        ):
            self.mapping.side_effect = error
            self.assertIn('class:FPGA', self.reason(self.spec(1)))


class TestUnknown(LimitsTestCase):
    """What cannot be counted is refused, as nova-api does."""

    def unknown(self):
        return self.reason(self.spec(1), exception.RequestFilterFailed)

    def test_placement_is_away(self):
        self.limit({'class:FPGA': 4})
        self.placement.use('http://127.0.0.1:1')
        self.assertIn('limits of project project', self.unknown())

    def test_keystone_is_away(self):
        for fault in (
            ks_exc.ConnectFailure('away'),
            sdk_exc.HttpException('is ill'),
            limit_exc.SessionInitError('no password'),
        ):
            with fixtures.MockPatch(
                'oslo_limit.limit._get_keystone_connection', side_effect=fault
            ):
                self.assertIn('limits of project project', self.unknown())
            self.assertIn(str(fault), self.log.output)

    def test_the_service_of_the_limits_is_not_configured(self):
        self.limit({'class:FPGA': 4})
        self.configure(None, 'endpoint_service_type', 'oslo_limit')
        self.assertIn('limits of project project', self.unknown())
