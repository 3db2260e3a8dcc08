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


# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

import os
import random

import fixtures
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.compute import task_states
from nova.scheduler import request_filter as nova_filters
import testtools

from nova_accel.db import device as device_db
from nova_accel.model.devices import hardware
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import unit_claims
from nova_accel.scheduler import alternatives
from nova_accel.scheduler import known_stock
from nova_accel.scheduler import ownership
from nova_accel.scheduler import request_filter
from nova_accel.testing import scheduling
from rig.loopback import board_cloud
from rig.loopback import board_host
from unit.scheduler import test_unified_limits

PROFILES = {
    'board': {'resources:PGPU': '8', 'accel:link': 'nvlink'},
    'half': {'resources:PGPU': '4', 'accel:link': 'nvlink'},
    'pair': {'resources:PGPU': '2', 'accel:link': 'nvlink'},
    'gpu': {'resources:PGPU': '1'},
    'card': {'resources:CUSTOM_NIC': '1'},
    'misspelt': {'resources:PGPU': '1', 'trait:CUSTOM_HTWO': 'required'},
    'no-class': {'resources:CUSTOM_FPAG': '1'},
}


class AlternativesTestCase(testtools.TestCase):
    """Two hosts with a board of eight GPUs and four network cards each."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.cloud = self.useFixture(
            board_cloud.BoardCloud(
                [board_host.BoardHost(f'board-{name}') for name in 'ab']
            )
        )
        for name, group in PROFILES.items():
            self.cloud.profile(name, group)
        # Nova's own need its databases.
        self.useFixture(
            fixtures.MockPatchObject(
                nova_filters,
                'ALL_REQUEST_FILTERS',
                [
                    request_filter.merge_device_profile,
                    request_filter.check_accelerators,
                ],
            )
        )
        self.useFixture(
            fixtures.MockPatchObject(
                alternatives, '_PROVEN', type(alternatives._PROVEN)()
            )
        )

    def chosen(self, names):
        """The profile that a request is for, whose units are not claimed."""
        [name] = {
            ownership.profile_name(spec, group)
            for spec in [self.cloud.request(names)]
            for group in ownership.our_groups(spec)
        }
        return name

    def reason(self, names, kind=exception.RequestFilterFailed):
        return str(self.assertRaises(kind, self.cloud.request, names))

    def merge(self, spec):
        request_filter.merge_device_profile(
            nova_context.get_admin_context(), spec
        )
        return ownership.extra_specs(spec)[device_profile.FLAVOR_KEY]

    def questions(self):
        """Each question about candidates to Placement from now on."""
        asked = []
        client = self.cloud.placement.client
        get = client.get_allocation_candidates

        def note(context, request):
            asked.append(request)
            return get(context, request)

        self.useFixture(
            fixtures.MockPatchObject(client, 'get_allocation_candidates', note)
        )
        return asked

    def use_cpus(self, *names):
        """Leave no CPU on hosts."""
        for name in names:
            self.assertTrue(
                self.cloud.placement.claim(
                    {
                        'allocations': {
                            self.cloud.hosts[name].node_uuid: {
                                'resources': {'VCPU': 1000}
                            }
                        },
                        'mappings': {'': [self.cloud.hosts[name].node_uuid]},
                    }
                )
            )


class TestChoose(AlternativesTestCase):
    def test_the_first_that_is_free(self):
        self.assertEqual('board', self.cloud.boot('board, half,gpu').profile)

    def test_an_alternative_to_one_that_is_taken(self):
        for _board in 'ab':
            self.cloud.boot('gpu')
            self.cloud.boot('half')
        server = self.cloud.boot('board,half,gpu')
        self.assertEqual('half', server.profile)
        self.assertEqual(4, len(server.addresses))
        self.assertIn(
            f'Server {server.uuid} is to get device profile half, which is an '
            'alternative to board',
            self.log.output,
        )

    def test_the_first_again_when_it_is_free(self):
        servers = [self.cloud.boot('board,card') for _server in range(3)]
        self.assertEqual(
            ['board', 'board', 'card'], [each.profile for each in servers]
        )
        self.cloud.delete(servers[0].uuid)
        self.assertEqual('board', self.cloud.boot('board,card').profile)

    def test_what_there_is_not(self):
        for name in ('nothing', 'misspelt', 'no-class'):
            self.assertEqual('gpu', self.chosen(f'{name},gpu'))

    def test_drained(self):
        for device in device_db.get_all():
            if device['type'] == 'GPU':
                device_db.set_status(
                    device['uuid'], hardware.Status.MAINTAINING
                )
        self.assertEqual('card', self.chosen('gpu,card'))

    def test_none(self):
        self.use_cpus('board-a', 'board-b')
        text = self.reason('misspelt,gpu,nothing')
        for part in (
            'device profile misspelt: no accelerator has a trait that it '
            'requires, which may be misspelt: CUSTOM_HTWO',
            'device profile gpu: no host that has units free has all else '
            'that the server needs',
            'device profile nothing: there is none of that name',
        ):
            self.assertIn(part, text)

    def test_taken_all(self):
        for _board in 'ab':
            self.cloud.boot('board')
        text = self.reason('half,gpu')
        self.assertIn('device profile half: ', text)
        self.assertIn('device profile gpu: device_profile_0', text)
        self.assertIn('in use', text)

    def test_a_class_that_placement_never_had(self):
        for _board in 'ab':
            self.cloud.boot('board')
        self.assertIn(
            'device profile no-class: device_profile_0 (CUSTOM_FPAG=1): no '
            'host has CUSTOM_FPAG',
            self.reason('gpu,no-class'),
        )

    def test_no_promise_is_left_by_a_refusal(self):
        for _board in 'ab':
            self.cloud.boot('board')
        self.reason('half,gpu')
        self.assertEqual([], self.promised())

    def promised(self):
        known = known_stock.current()
        return known.promises.before('', 0.0)

    def test_malformed(self):
        self.assertIn(
            "device profiles gpu,: nova_accel:device_profile is 'gpu,': a "
            'name is missing',
            self.reason('gpu,'),
        )
        self.assertIn('names 9 device', self.reason(','.join('abcdefghi')))

    def test_the_flavor_of_the_caller_stays(self):
        spec = scheduling.request_spec({device_profile.FLAVOR_KEY: 'gpu,card'})
        flavor = spec.flavor
        self.assertEqual('gpu', self.merge(spec))
        self.assertEqual(
            {device_profile.FLAVOR_KEY: 'gpu,card'}, flavor.extra_specs
        )
        self.assertEqual(set(), spec.obj_what_changed())

    def test_the_database_is_away(self):
        self.useFixture(
            fixtures.MockPatchObject(
                known_stock._STOCK, '_current', side_effect=self.away
            )
        )
        self.assertIn(
            'the database of accelerators gave no answer',
            self.reason('half,gpu'),
        )

    @staticmethod
    def away(*_arguments):
        raise alternatives.exceptions.ServiceUnavailable('away')


class TestPromises(AlternativesTestCase):
    """Several requests are on their way to Placement."""

    def test_units_are_promised_once(self):
        self.assertEqual(
            ['board', 'board', 'card'],
            [self.chosen('board,card') for _request in range(3)],
        )

    def test_the_last_resort_is_what_was_promised(self):
        """Its server may never claim it; Placement decides."""
        self.assertEqual(
            ['board'] * 3,
            [self.chosen('board,pair,no-class') for _ in 'ab']
            + [self.chosen('board,no-class')],
        )

    def test_a_claim_ends_it(self):
        for _board in 'ab':
            self.cloud.boot('board,half')
        self.assertEqual(
            [],
            known_stock.current().promises.before('', 0.0),
        )

    def test_servers_of_one_request(self):
        spec = scheduling.request_spec(
            {device_profile.FLAVOR_KEY: 'board,half'}
        )
        spec.num_instances = 3
        self.useFixture(
            fixtures.MockPatch(
                'nova_accel.scheduler.scheduled_server.find', return_value=None
            )
        )
        self.assertEqual('half', self.merge(spec))

    def test_a_server_that_a_multi_create_has_made(self):
        """It moves alone, and its request still has their number."""
        self.useFixture(
            fixtures.MockPatch(
                'nova_accel.scheduler.scheduled_server.find',
                return_value=objects.Instance(task_state=None),
            )
        )
        spec = scheduling.request_spec(
            {device_profile.FLAVOR_KEY: 'board,half'}
        )
        spec.num_instances = 3
        self.assertEqual('board', self.merge(spec))

    def test_not_the_host_that_it_leaves(self):
        for board, name in (('a', 'board'), ('b', 'card')):
            spec = scheduling.request_spec(
                {device_profile.FLAVOR_KEY: 'board,card'}
            )
            spec.ignore_hosts = ['board-b']
            self.assertEqual(name, self.merge(spec), board)

    def test_of_one_host(self):
        self.cloud.boot('gpu')
        [server] = self.cloud.servers.values()
        [other] = {'board-a', 'board-b'} - {server.hostname}
        for hostname, name in ((server.hostname, 'half'), (other, 'board')):
            for field in ('host', 'node'):
                spec = scheduling.request_spec(
                    {device_profile.FLAVOR_KEY: 'board,half'}
                )
                spec.requested_destination = objects.Destination(
                    **{field: hostname}
                )
                self.assertEqual(name, self.merge(spec))
                known_stock.current().promises.end(spec.instance_uuid)


class TestDoubt(AlternativesTestCase):
    """Known units say nothing of the CPUs of a host."""

    def test_placement_is_asked_once(self):
        asked = self.questions()
        for _request in range(4):
            self.assertEqual('gpu', self.chosen('gpu,card'))
        self.assertEqual(1, len(asked))

    def test_another_request_is_another_question(self):
        asked = self.questions()
        self.chosen('gpu,card')
        self.chosen('pair,card')
        spec = scheduling.request_spec({device_profile.FLAVOR_KEY: 'gpu,card'})
        spec.flavor.vcpus = 2
        self.merge(spec)
        self.assertEqual(3, len(asked))

    def test_no_cpu_beside_the_first(self):
        self.cloud.boot('half')
        [server] = self.cloud.servers.values()
        [other] = {'board-a', 'board-b'} - {server.hostname}
        self.use_cpus(other)
        server = self.cloud.boot('board,pair')
        self.assertEqual('pair', server.profile)

    def test_asked_again_if_a_promise_is_not_kept(self):
        now = self.useFixture(
            fixtures.MockPatch('time.monotonic', return_value=1000.0)
        ).mock
        asked = self.questions()
        self.chosen('gpu,card')
        now.return_value += unit_claims.LATE_S + 1
        self.chosen('gpu,card')
        self.assertEqual(2, len(asked))


class TestLiveMigration(AlternativesTestCase):
    """A guest cannot get other devices while it runs."""

    def setUp(self):
        super().setUp()
        self.server = self.cloud.boot('half')
        self.instance = objects.Instance(task_state=task_states.MIGRATING)
        self.useFixture(
            fixtures.MockPatch(
                'nova_accel.scheduler.scheduled_server.find',
                side_effect=lambda _context, _spec: self.instance,
            )
        )

    def name_for(self, uuid):
        spec = scheduling.request_spec(
            {device_profile.FLAVOR_KEY: 'board,half,gpu'}
        )
        spec.instance_uuid = uuid
        return self.merge(spec)

    def test_keeps_what_it_has(self):
        self.assertEqual('half', self.name_for(self.server.uuid))

    def test_no_other_one(self):
        for _part in range(3):
            self.cloud.boot('half')
        spec = scheduling.request_spec(
            {device_profile.FLAVOR_KEY: 'half,card'}
        )
        spec.instance_uuid = self.server.uuid
        self.assertRaises(exception.RequestFilterFailed, self.merge, spec)

    def test_another_move_chooses_anew(self):
        self.instance.task_state = task_states.RESIZE_PREP
        self.assertEqual('board', self.name_for(self.server.uuid))

    def test_another_server(self):
        self.assertEqual(
            'board', self.name_for(scheduling.request_spec().instance_uuid)
        )


class TestQuota(AlternativesTestCase):
    configure = test_unified_limits.LimitsTestCase.configure
    limit = test_unified_limits.LimitsTestCase.limit

    def setUp(self):
        super().setUp()
        self.configure('nova.quota.UnifiedLimitsDriver', 'driver')
        self.configure('compute', 'endpoint_service_type', 'oslo_limit')
        self.useFixture(
            fixtures.MockPatch(
                'nova.objects.InstanceMapping.get_by_instance_uuid',
                return_value=objects.InstanceMapping(cell_mapping=None),
            )
        )

    def test_an_alternative_to_one_over_the_limit(self):
        self.limit({'class:PGPU': 4, 'class:CUSTOM_NIC': 8})
        self.assertEqual('half', self.chosen('board,half,card'))

    def test_two_at_once(self):
        """The second one knows of the first, which is not claimed yet."""
        self.limit({'class:PGPU': 4, 'class:CUSTOM_NIC': 1})
        self.assertEqual('half', self.chosen('half,card'))
        self.assertEqual('card', self.chosen('half,card'))
        text = self.reason('half,card', exception.TooManyInstances)
        self.assertIn(
            'device profile half: quota exceeded: class:PGPU: limit 4, in use '
            '4, wanted 4; device profile card: quota exceeded: '
            'class:CUSTOM_NIC: limit 1, in use 1, wanted 1',
            text,
        )

    def test_a_promise_is_no_way_around_a_limit(self):
        """The server asks for something else before it claims anything."""
        self.limit({'class:PGPU': 4, 'class:CUSTOM_NIC': 1})
        spec = scheduling.request_spec(
            {device_profile.FLAVOR_KEY: 'pair,card'}
        )
        self.assertEqual('pair', self.merge(spec))
        again = scheduling.request_spec({device_profile.FLAVOR_KEY: 'board'})
        again.instance_uuid = spec.instance_uuid
        self.merge(again)
        self.assertRaises(
            exception.TooManyInstances,
            request_filter.check_accelerators,
            nova_context.get_admin_context(),
            again,
        )

    def test_another_projects(self):
        self.limit({'class:PGPU': 4, 'class:CUSTOM_NIC': 1})
        self.chosen('half,card')
        spec = scheduling.request_spec(
            {device_profile.FLAVOR_KEY: 'half,card'}
        )
        spec.project_id = 'other'
        self.assertEqual('half', self.merge(spec))


class TestRandomClouds(AlternativesTestCase):
    """The first of the profiles is chosen that would start alone."""

    clouds = 60 if os.environ.get('HYPOTHESIS_PROFILE') == 'full' else 2

    def test_servers_come_and_go(self):
        names = ['board', 'half', 'pair', 'gpu', 'card', 'misspelt']
        for seed in range(self.clouds):
            chance = random.Random(seed)
            for _server in range(24):
                wanted = chance.sample(names, chance.randint(2, 4))
                best = next(filter(self.would_start, wanted), None)
                try:
                    got = self.cloud.boot(','.join(wanted)).profile
                except (
                    exception.NoValidHost,
                    exception.RequestFilterFailed,
                ):
                    got = None
                self.assertEqual(best, got, (seed, wanted))
                if chance.random() < 0.3 and self.cloud.servers:
                    self.delete(chance.choice(sorted(self.cloud.servers)))
            self.delete(*self.cloud.servers)

    def would_start(self, name):
        before = set(self.cloud.servers)
        is_refused = self.cloud.is_refused(name)
        self.delete(*self.cloud.servers.keys() - before)
        return not is_refused

    def delete(self, *uuids):
        # A claim that is never seen bound would count for a while.
        known_stock.current(known_stock.FRESH_S)
        for uuid in uuids:
            self.cloud.delete(uuid)
