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

import importlib

import fixtures
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.scheduler import request_filter as nova_filters
from oslo_utils import uuidutils
import testtools

from nova_accel import conf
from nova_accel.db import device_profile
from nova_accel.db.sql import engine
from nova_accel.model import naming
from nova_accel.scheduler import request_filter
from nova_accel.testing import database
from nova_accel.testing import reports
from nova_accel.testing import scheduling
from rig import quick_database
from rig.loopback import board_cloud
from rig.loopback import board_host
from rig.stubs import bitstreams

CONF = conf.CONF

KEY = 'nova_accel:device_profile'
FORBIDDEN = {'trait:CUSTOM_NOVA_ACCEL': 'forbidden'}


def merge(spec):
    return request_filter.merge_device_profile(
        nova_context.get_admin_context(), spec
    )


class RequestFilterTestCase(testtools.TestCase):
    """A host without accelerators, in Placement."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.useFixture(quick_database.QuickDatabase())
        self.placement = self.useFixture(scheduling.Placement())
        self.host = self.placement.add_provider(
            'host', {'VCPU': 8, 'MEMORY_MB': 1024}
        )


class TestKeys(RequestFilterTestCase):
    """A flavor whose extra spec is nearly ours."""

    SPECS = {'nova_accel:device-profile': 'profile'}

    def of_server(self, extra_specs):
        """Have the request be for a server with these extra specs."""
        return self.useFixture(
            fixtures.MockPatch(
                'nova_accel.scheduler.scheduled_server.find',
                return_value=None
                if extra_specs is None
                else objects.Instance(
                    flavor=objects.Flavor(extra_specs=extra_specs)
                ),
            )
        ).mock

    def assert_refused(self):
        error = self.assertRaises(
            exception.RequestFilterFailed,
            merge,
            scheduling.request_spec(self.SPECS),
        )
        self.assertIn(
            'the flavor has nova_accel:device-profile, which is to be '
            'nova_accel:device_profile',
            str(error),
        )

    def test_a_new_server(self):
        self.of_server(None)
        self.assert_refused()

    def test_a_resize(self):
        self.of_server({})
        self.assert_refused()

    def test_a_server_that_has_it_can_move(self):
        self.of_server(self.SPECS)
        self.assertFalse(merge(scheduling.request_spec(self.SPECS)))

    def test_others_pay_nothing(self):
        find = self.of_server(None)
        self.assertFalse(
            merge(scheduling.request_spec({'hw:cpu-policy': 'dedicated'}))
        )
        find.assert_not_called()


class TestMerge(RequestFilterTestCase):
    def setUp(self):
        super().setUp()
        self.ours = self.placement.add_provider(
            'host_accel',
            {'VGPU': 4, 'FPGA': 2},
            self.host,
            [naming.OWNERSHIP_TRAIT, 'CUSTOM_A'],
        )

    def _spec(self, *groups, extra_specs=(), **kwargs):
        device_profile.create('profile', groups)
        return scheduling.request_spec(
            {KEY: 'profile', **dict(extra_specs)}, **kwargs
        )

    def _fault(self, spec):
        error = self.assertRaises(exception.RequestFilterFailed, merge, spec)
        return str(error)

    def test_groups(self):
        self.placement.add_provider('x', {}, traits=['CUSTOM_B'])
        spec = self._spec(
            {'resources:FPGA': '2', 'trait:CUSTOM_A': 'required'},
            {'resources:VGPU': '1', 'trait:CUSTOM_B': 'forbidden'},
        )
        self.assertTrue(merge(spec))
        first, second = spec.requested_resources
        self.assertEqual('device_profile_0', first.requester_id)
        self.assertEqual({'FPGA': 2}, first.resources)
        self.assertEqual(
            {'CUSTOM_NOVA_ACCEL', 'CUSTOM_A'}, first.required_traits
        )
        self.assertEqual('device_profile_1', second.requester_id)
        self.assertEqual({'VGPU': 1}, second.resources)
        self.assertEqual({'CUSTOM_NOVA_ACCEL'}, second.required_traits)
        self.assertEqual({'CUSTOM_B'}, second.forbidden_traits)
        [candidate] = self.placement.candidates(spec)
        self.assertEqual(
            {'FPGA': 2, 'VGPU': 1},
            candidate['allocations'][self.ours]['resources'],
        )

    def test_a_profile_that_was_changed(self):
        spec = self._spec({'resources:FPGA': '2'})
        merge(spec)
        device_profile.update(
            device_profile.get('profile')['uuid'], [{'resources:VGPU': '1'}]
        )
        later = scheduling.request_spec({KEY: 'profile'})
        merge(later)
        for request, resources in (
            (spec, {'FPGA': 2}),
            (later, {'VGPU': 1}),
        ):
            [group] = request.requested_resources
            self.assertEqual(resources, group.resources)

    def test_requests_of_a_profile_share_nothing(self):
        first = self._spec({'resources:FPGA': '2'})
        second = scheduling.request_spec({KEY: 'profile'})
        for spec in (first, second):
            merge(spec)
        [group] = first.requested_resources
        group.resources['FPGA'] = 0
        group.strip_zeros()
        group.required_traits.add('CUSTOM_A')
        group.forbidden_traits.add('CUSTOM_B')
        group.forbidden_aggregates.add(uuidutils.generate_uuid())
        group.provider_uuids.append(self.ours)
        third = scheduling.request_spec({KEY: 'profile'})
        merge(third)
        for spec in (second, third):
            [group] = spec.requested_resources
            self.assertEqual(
                [
                    ('resourcesdevice_profile_0', 'FPGA:2'),
                    ('requireddevice_profile_0', naming.OWNERSHIP_TRAIT),
                ],
                group.to_queryparams(),
            )
            self.assertEqual([], group.provider_uuids)

    def test_a_group_larger_than_any_pool(self):
        reports.SimulatedHost(functions=2).report()
        spec = self._spec({'resources:CUSTOM_QAT': '4'})
        merge(spec)
        self.assertEqual(
            [
                ('device_profile_0_0', {'CUSTOM_QAT': 2}),
                ('device_profile_0_1', {'CUSTOM_QAT': 2}),
            ],
            [
                (group.requester_id, group.resources)
                for group in spec.requested_resources
            ],
        )

    def test_a_group_that_is_too_large(self):
        reports.SimulatedHost(functions=2).report()
        self.assertIn(
            'device profile profile: no pool of devices has CUSTOM_QAT=9, '
            'which group 0 asks for',
            self._fault(self._spec({'resources:CUSTOM_QAT': '9'})),
        )

    def test_no_groups_field(self):
        spec = self._spec({'resources:FPGA': '1'})
        spec.requested_resources = None
        merge(spec)
        self.assertEqual(1, len(spec.requested_resources))

    def test_other_groups_stay(self):
        port = objects.RequestGroup(
            requester_id='port', resources={'NET_BW_EGR_KILOBIT_PER_SEC': 1}
        )
        spec = self._spec({'resources:FPGA': '1'}, groups=[port])
        merge(spec)
        self.assertEqual(
            ['port', 'device_profile_0'],
            [group.requester_id for group in spec.requested_resources],
        )
        self.assertEqual(set(), port.forbidden_traits)

    def test_twice(self):
        spec = self._spec(
            {'resources:FPGA': '1'}, extra_specs={'resources:VGPU': '1'}
        )
        merge(spec)
        before = spec.obj_to_primitive()
        merge(spec)
        self.assertEqual(before, spec.obj_to_primitive())

    def test_same_profile_for_two_requests(self):
        merge(self._spec({'resources:FPGA': '1'}))
        spec = scheduling.request_spec({KEY: 'profile'})
        merge(spec)
        self.assertEqual(1, len(spec.requested_resources))

    def test_never_served_by_another_owner(self):
        self.placement.add_provider(
            'theirs', {'CUSTOM_QAT': 1}, self.host, ['OWNER_CYBORG']
        )
        spec = self._spec({'resources:CUSTOM_QAT': '1'})
        merge(spec)
        self.assertEqual([], self.placement.candidates(spec))

    def test_the_region_of_a_bitstream(self):
        region = uuidutils.generate_uuid()
        trait = naming.region_trait('FPGA', 'Intel', region)
        self.placement.add_provider('x', {}, traits=[trait])
        image = bitstreams.image(b'', region_uuid=region)
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.image.glance.API.get', lambda *_args: image
            )
        )
        spec = self._spec(
            {'resources:FPGA': '1', 'accel:bitstream_id': image['id']}
        )
        merge(spec)
        (group,) = spec.requested_resources
        self.assertEqual(
            {naming.OWNERSHIP_TRAIT, trait}, group.required_traits
        )

    def test_unknown_forbidden_trait_is_left_out(self):
        spec = self._spec(
            {'resources:FPGA': '1', 'trait:CUSTOM_UNKNOWN': 'forbidden'}
        )
        merge(spec)
        self.assertEqual(1, len(self.placement.candidates(spec)))

    def test_unknown_required_trait(self):
        fault = self._fault(
            self._spec(
                {'resources:FPGA': '1', 'trait:CUSTOM_A': 'required'},
                {
                    'resources:FPGA': '1',
                    'trait:CUSTOM_Y': 'required',
                    'trait:CUSTOM_X': 'required',
                },
            )
        )
        self.assertIn('device profile profile: ', fault)
        self.assertIn(': CUSTOM_X, CUSTOM_Y', fault)

    def test_forbids_all_accelerators(self):
        self.assertIn(
            'CUSTOM_NOVA_ACCEL',
            self._fault(
                self._spec(
                    {
                        'resources:FPGA': '1',
                        'trait:CUSTOM_NOVA_ACCEL': 'forbidden',
                    }
                )
            ),
        )

    def test_unknown_profile(self):
        fault = self._fault(scheduling.request_spec({KEY: 'nowhere'}))
        self.assertIn('device profile nowhere: ', fault)

    def test_malformed_profile(self):
        fault = self._fault(self._spec({'resources:FPGA': 'many'}))
        self.assertIn('device profile profile: ', fault)
        self.assertIn('many', fault)

    def test_cyborgs_key_too(self):
        fault = self._fault(
            self._spec(
                {'resources:FPGA': '1'},
                extra_specs={'accel:device_profile': 'other'},
            )
        )
        self.assertIn('nova_accel:device_profile', fault)
        self.assertIn(' accel:device_profile', fault)

    def test_cyborgs_group(self):
        fault = self._fault(
            self._spec(
                {'resources:FPGA': '1'},
                groups=[
                    objects.RequestGroup(
                        requester_id='device_profile_0', resources={'FPGA': 1}
                    )
                ],
            )
        )
        self.assertIn('device_profile_0', fault)

    def test_database_fault(self):
        self.useFixture(database.Database(tables=False))
        fault = self._fault(scheduling.request_spec({KEY: 'profile'}))
        self.assertIn('device profile profile: the database', fault)
        self.assertNotIn('SELECT', fault)

    def test_database_not_configured(self):
        CONF.clear_override('connection', 'nova_accel_database')
        engine.forget()
        fault = self._fault(scheduling.request_spec({KEY: 'profile'}))
        self.assertIn('device profile profile: ', fault)
        self.assertNotIn('[nova_accel_database] connection', fault)
        self.assertIn('[nova_accel_database] connection', self.log.output)

    def test_two_numbered_groups_of_the_flavor(self):
        self.placement.add_provider('theirs', {'VGPU': 2}, self.host)
        spec = self._spec(
            {'resources:FPGA': '1'},
            extra_specs={'resources1:VGPU': '1', 'resources2:VGPU': '1'},
        )
        merge(spec)
        self.assertEqual(1, len(self.placement.candidates(spec)))

    def test_group_policy_of_the_flavor(self):
        spec = self._spec(
            {'resources:FPGA': '1'},
            {'resources:VGPU': '1'},
            extra_specs={
                'resources1:VCPU': '1',
                'resources2:MEMORY_MB': '1',
                'group_policy': 'isolate',
            },
        )
        merge(spec)
        self.assertEqual('isolate', spec.flavor.extra_specs['group_policy'])
        self.assertEqual([], self.placement.candidates(spec))

    def test_group_policy_is_left_to_nova(self):
        spec = self._spec(
            {'resources:FPGA': '1'},
            {'resources:VGPU': '1'},
            extra_specs={'resources1:VCPU': '1'},
        )
        merge(spec)
        self.assertNotIn('group_policy', spec.flavor.extra_specs)
        self.assertEqual(1, len(self.placement.candidates(spec)))


class TestLinks(testtools.TestCase):
    """Hosts with NVSwitch boards, in Placement and in the database."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.cloud = self.useFixture(
            board_cloud.BoardCloud([board_host.BoardHost('board')])
        )
        self.placement = self.cloud.placement

    def spec(self, *groups, name='profile'):
        device_profile.create(name, groups)
        return scheduling.request_spec({KEY: name})

    def asked(self, amount, link='nvlink', **kwargs):
        group = {'resources:PGPU': str(amount)}
        if link is not None:
            group['accel:link'] = link
        return self.spec(group, **kwargs)

    def groups(self, spec):
        """Id -> resources and traits."""
        return {
            group.requester_id: (
                group.resources,
                group.required_traits - {naming.OWNERSHIP_TRAIT},
                group.forbidden_traits,
            )
            for group in spec.requested_resources
        }

    def test_a_pair(self):
        spec = self.asked(2)
        merge(spec)
        self.assertEqual(
            {
                'device_profile_0': (
                    {'PGPU': 2},
                    {'CUSTOM_NOVA_ACCEL_NVLINK_2'},
                    set(),
                )
            },
            self.groups(spec),
        )
        self.assertEqual([], spec.same_subtree)
        self.assertEqual(4, len(self.placement.candidates(spec)))

    def test_a_half(self):
        spec = self.asked(4)
        # The same filter may run again on one request.
        for _time in range(2):
            merge(spec)
        part = {'PGPU': 2}, set(), set()
        self.assertEqual(
            {
                'device_profile_0_0': part,
                'device_profile_0_1': part,
                'device_profile_0_set': (
                    {},
                    {'CUSTOM_NOVA_ACCEL_NVLINK_4'},
                    set(),
                ),
            },
            self.groups(spec),
        )
        self.assertEqual([sorted(self.groups(spec))], spec.same_subtree)
        self.assertEqual('none', spec.flavor.extra_specs['group_policy'])
        self.assertEqual(4, len(self.placement.candidates(spec)))

    def test_gpu_and_network_card(self):
        spec = self.spec(
            {'resources:PGPU': '1', 'accel:link': 'pcie'},
            {'resources:CUSTOM_NIC': '1', 'accel:link': 'pcie'},
        )
        merge(spec)
        self.assertEqual(
            {'device_profile_0', 'device_profile_1', 'device_profile_0_set'},
            self.groups(spec).keys(),
        )
        self.assertEqual(4, len(self.placement.candidates(spec)))

    def test_several_gpus_that_are_not_joined(self):
        """A part of a board may be no partition."""
        spec = self.asked(2, link=None)
        merge(spec)
        self.assertEqual(
            {'device_profile_0': ({'PGPU': 2}, set(), {naming.FABRIC_TRAIT})},
            self.groups(spec),
        )
        self.assertEqual([], self.placement.candidates(spec))

    def test_one_gpu(self):
        spec = self.asked(1, link=None)
        merge(spec)
        self.assertEqual(
            {'device_profile_0': ({'PGPU': 1}, set(), set())},
            self.groups(spec),
        )
        self.assertEqual(4, len(self.placement.candidates(spec)))

    def test_a_size_that_nothing_joins(self):
        for amount, link, told in (
            (
                3,
                'nvlink',
                'PGPU=3 joined by NVLink: no set of a host joins 3, nearest: '
                'sets of 2, 4, 8',
            ),
            (
                8,
                'numa',
                'PGPU=8 joined by one NUMA node: no set of a host joins 8, '
                'nearest: sets of 2, 3, 4',
            ),
        ):
            spec = self.asked(amount, link, name=link)
            error = self.assertRaises(
                exception.RequestFilterFailed, merge, spec
            )
            self.assertIn(
                f'device profile {link}: no host has {told}', str(error)
            )

    def test_the_trait_of_the_fabric_need_not_be_there(self):
        """No host may have published one yet."""
        placement = self.useFixture(scheduling.Placement())
        merge(self.asked(2, link=None))
        self.assertIn(naming.FABRIC_TRAIT, placement.traits)

    def test_a_port_s_profile(self):
        CONF.set_override('cyborg_compatible', True, 'nova_accel')
        self.addCleanup(CONF.clear_override, 'cyborg_compatible', 'nova_accel')
        port = uuidutils.generate_uuid()
        device_profile.create(
            'profile',
            [
                {'resources:PGPU': '1', 'accel:link': 'pcie'},
                {'resources:CUSTOM_NIC': '1', 'accel:link': 'pcie'},
            ],
        )
        spec = scheduling.request_spec({})
        spec.requested_networks = objects.NetworkRequestList(
            objects=[
                objects.NetworkRequest(port_id=port, device_profile='profile')
            ]
        )
        merge(spec)
        self.assertEqual(
            [f'device_profile_{name}{port}' for name in ('0', '1', '0_set')],
            [group.requester_id for group in spec.requested_resources],
        )
        self.assertEqual(4, len(self.placement.candidates(spec)))


class TestCyborgsKey(RequestFilterTestCase):
    def setUp(self):
        super().setUp()
        self.ours, self.theirs = (
            self.placement.add_provider(name, {'FPGA': 1}, self.host, owner)
            for name, owner in (
                ('ours', [naming.OWNERSHIP_TRAIT]),
                ('theirs', ['OWNER_CYBORG']),
            )
        )
        self.turn(True)
        self.addCleanup(CONF.clear_override, 'cyborg_compatible', 'nova_accel')

    def turn(self, on):
        CONF.set_override('cyborg_compatible', on, 'nova_accel')

    def spec(self, group=None, **extra_specs):
        """As Nova makes it, with a group for that of the profile."""
        device_profile.create('profile', [group or {'resources:FPGA': '1'}])
        return scheduling.request_spec(
            {'accel:device_profile': 'profile', **extra_specs},
            [
                objects.RequestGroup(
                    requester_id='device_profile_0', resources={'FPGA': 1}
                )
            ],
        )

    def served_by(self, spec):
        merge(spec)
        return [
            candidate['mappings']['device_profile_0']
            for candidate in self.placement.candidates(spec)
        ]

    def test_is_served_by_ours_alone(self):
        spec = self.spec()
        self.assertEqual([[self.ours]], self.served_by(spec))
        (group,) = spec.requested_resources
        self.assertEqual('device_profile_0', group.requester_id)

    def test_a_large_group_stays_as_nova_made_it(self):
        reports.SimulatedHost(functions=2).report()
        spec = self.spec({'resources:CUSTOM_QAT': '4'})
        merge(spec)
        (group,) = spec.requested_resources
        self.assertEqual('device_profile_0', group.requester_id)
        self.assertEqual({'CUSTOM_QAT': 4}, group.resources)

    def test_twice(self):
        spec = self.spec()
        merge(spec)
        before = spec.obj_to_primitive()
        merge(spec)
        self.assertEqual(before, spec.obj_to_primitive())

    def test_turned_off(self):
        self.turn(False)
        self.assertEqual([[self.theirs]], self.served_by(self.spec()))

    def test_turned_off_the_profile_is_not_looked_up(self):
        self.turn(False)
        self.useFixture(database.Database(tables=False))
        self.assertFalse(
            merge(
                scheduling.request_spec({'accel:device_profile': 'of-cyborg'})
            )
        )

    def test_what_is_to_be_programmed_is_the_hosts_to_know(self):
        self.assertTrue(
            merge(
                self.spec(
                    {'resources:FPGA': '1', 'accel:function_name': 'gzip'}
                )
            )
        )

    def test_both_keys(self):
        error = self.assertRaises(
            exception.RequestFilterFailed, merge, self.spec(**{KEY: 'profile'})
        )
        self.assertIn(KEY, str(error))


class TestPorts(testtools.TestCase):
    """Ports for which Neutron has a device profile."""

    def setUp(self):
        super().setUp()
        self.useFixture(quick_database.QuickDatabase())
        self.placement = self.useFixture(scheduling.Placement())
        host = self.placement.add_provider(
            'host', {'VCPU': 8, 'MEMORY_MB': 1024}
        )
        self.ours, self.theirs = (
            self.placement.add_provider(
                name, {'CUSTOM_NIC': 2, 'FPGA': 1}, host, owner
            )
            for name, owner in (
                ('ours', [naming.OWNERSHIP_TRAIT]),
                ('theirs', ['OWNER_CYBORG']),
            )
        )
        CONF.set_override('cyborg_compatible', True, 'nova_accel')
        self.addCleanup(CONF.clear_override, 'cyborg_compatible', 'nova_accel')
        device_profile.create('nic', [{'resources:CUSTOM_NIC': '1'}])
        device_profile.create('fpga', [{'resources:FPGA': '1'}])

    def spec(self, *names, **extra_specs):
        """As Nova makes it, with ports of these profiles."""
        self.ports = [uuidutils.generate_uuid() for _name in names]
        spec = scheduling.request_spec(
            extra_specs,
            [
                objects.RequestGroup(
                    requester_id=f'device_profile_0{port}',
                    resources={'CUSTOM_NIC': 1},
                )
                for port in self.ports
            ],
        )
        spec.requested_networks = objects.NetworkRequestList(
            objects=[
                objects.NetworkRequest(port_id=port, device_profile=name)
                for port, name in zip(self.ports, names, strict=True)
            ]
        )
        return spec

    def served_by(self, spec):
        merge(spec)
        return [
            {
                group: uuids
                for group, uuids in candidate['mappings'].items()
                if group
            }
            for candidate in self.placement.candidates(spec)
        ]

    def test_are_served_by_ours_alone(self):
        spec = self.spec('nic', 'nic')
        self.assertEqual(
            [{f'device_profile_0{port}': [self.ours] for port in self.ports}],
            self.served_by(spec),
        )

    def test_twice(self):
        spec = self.spec('nic')
        merge(spec)
        before = spec.obj_to_primitive()
        merge(spec)
        self.assertEqual(before, spec.obj_to_primitive())

    def test_beside_the_flavors(self):
        for key in (KEY, 'accel:device_profile'):
            served = self.served_by(self.spec('nic', **{key: 'fpga'}))
            self.assertEqual(
                [
                    {
                        'device_profile_0': [self.ours],
                        f'device_profile_0{self.ports[0]}': [self.ours],
                    }
                ],
                served,
            )

    def test_turned_off(self):
        CONF.set_override('cyborg_compatible', False, 'nova_accel')
        spec = self.spec('nic', **{KEY: 'fpga'})
        self.assertEqual(
            [
                {
                    'device_profile_0': [self.ours],
                    f'device_profile_0{self.ports[0]}': [self.theirs],
                }
            ],
            self.served_by(spec),
        )

    def test_without_a_profile(self):
        spec = self.spec()
        spec.requested_networks.objects.append(
            objects.NetworkRequest(port_id=uuidutils.generate_uuid())
        )
        self.assertFalse(merge(spec))

    def test_an_unknown_profile(self):
        error = self.assertRaises(
            exception.RequestFilterFailed, merge, self.spec('nowhere')
        )
        self.assertIn('device profile nowhere: ', str(error))


class TestKeepAway(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.placement = self.useFixture(scheduling.Placement())
        self.host = self.placement.add_provider(
            'host', {'VCPU': 8, 'MEMORY_MB': 1024}
        )

    def _publish(self):
        return self.placement.add_provider(
            'host_accel',
            {'VGPU': 4, 'CUSTOM_QAT': 4},
            self.host,
            [naming.OWNERSHIP_TRAIT],
        )

    def _theirs(self):
        return self.placement.add_provider(
            'theirs', {'VGPU': 1, 'CUSTOM_QAT': 1}, self.host
        )

    def _served_by(self, extra_specs=(), groups=()):
        spec = scheduling.request_spec(extra_specs, groups)
        merge(spec)
        return {
            uuid
            for candidate in self.placement.candidates(spec)
            for uuid in candidate['allocations']
        } - {self.host}

    def _port(self):
        return objects.RequestGroup(
            requester_id='port', resources={'CUSTOM_QAT': 1}
        )

    def test_ours_alone(self):
        self._publish()
        self.assertEqual(set(), self._served_by({'resources:VGPU': '1'}))
        self.assertEqual(set(), self._served_by({'resources1:VGPU': '1'}))
        self.assertEqual(set(), self._served_by(groups=[self._port()]))

    def test_ours_and_theirs(self):
        self._publish()
        theirs = {self._theirs()}
        self.assertEqual(theirs, self._served_by({'resources:VGPU': '1'}))
        self.assertEqual(theirs, self._served_by({'resources1:VGPU': '1'}))
        self.assertEqual(theirs, self._served_by(groups=[self._port()]))

    def test_ours_not_yet_published(self):
        theirs = {self._theirs()}
        self.assertNotIn(naming.OWNERSHIP_TRAIT, self.placement.traits)
        self.assertEqual(theirs, self._served_by({'resources:VGPU': '1'}))

    def test_beside_ours(self):
        self.useFixture(quick_database.QuickDatabase())
        device_profile.create('profile', [{'resources:VGPU': '1'}])
        ours, theirs = self._publish(), self._theirs()
        spec = scheduling.request_spec(
            {
                KEY: 'profile',
                'resources:VGPU': '1',
                'resources1:CUSTOM_QAT': '1',
            }
        )
        merge(spec)
        [candidate] = self.placement.candidates(spec)
        self.assertEqual(
            {
                '': {self.host, theirs},
                '1': {theirs},
                'device_profile_0': {ours},
            },
            {
                suffix: set(uuids)
                for suffix, uuids in candidate['mappings'].items()
            },
        )

    def test_operator_cannot_ask_for_ours(self):
        self._publish()
        self.assertEqual(
            set(),
            self._served_by(
                {
                    'resources1:VGPU': '1',
                    'trait1:CUSTOM_NOVA_ACCEL': 'required',
                }
            ),
        )

    def test_other_traits_of_the_flavor_stay(self):
        spec = scheduling.request_spec(
            {'resources:VGPU': '1', 'trait:CUSTOM_A': 'required'}
        )
        self.assertTrue(merge(spec))
        self.assertEqual(
            {'resources:VGPU': '1', 'trait:CUSTOM_A': 'required', **FORBIDDEN},
            spec.flavor.extra_specs,
        )

    def test_flavor_of_the_caller_stays(self):
        spec = scheduling.request_spec({'resources:VGPU': '1'})
        flavor = spec.flavor
        merge(spec)
        self.assertEqual({'resources:VGPU': '1'}, flavor.extra_specs)
        self.assertEqual({}, spec.obj_get_changes())

    def test_plain_request(self):
        """It is left as it is, and no one is asked anything."""
        self.placement.use('http://127.0.0.1:1')
        for extra_specs in ({}, {'resources:VCPU': '4'}):
            spec = scheduling.request_spec(extra_specs)
            before = spec.obj_to_primitive()
            self.assertFalse(merge(spec))
            self.assertFalse(
                request_filter.check_accelerators(
                    nova_context.get_admin_context(), spec
                )
            )
            self.assertEqual(before, spec.obj_to_primitive())

    def test_flavor_without_extra_specs(self):
        spec = scheduling.request_spec()
        del spec.flavor.extra_specs
        self.assertFalse(merge(spec))


class TestRegister(testtools.TestCase):
    def _names(self):
        return [found.__name__ for found in nova_filters.ALL_REQUEST_FILTERS]

    def test_nova_calls_each_once(self):
        request_filter.register()
        for name in ('merge_device_profile', 'check_accelerators'):
            self.assertEqual(1, self._names().count(name))

    def test_placement_is_asked_last(self):
        self.assertEqual('check_accelerators', self._names()[-1])

    def test_newest_after_a_reload(self):
        importlib.reload(request_filter)
        self.assertEqual(1, self._names().count('merge_device_profile'))
        self.assertIn(
            request_filter.merge_device_profile,
            nova_filters.ALL_REQUEST_FILTERS,
        )

    def test_before_nova_isolates_aggregates(self):
        names = self._names()
        self.assertLess(
            names.index('merge_device_profile'),
            names.index('isolate_aggregates'),
        )
