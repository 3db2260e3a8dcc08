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
from nova.scheduler import host_manager

from nova_accel.scheduler import candidate_filter
from nova_accel.testing import scheduling
from unit.scheduler import scheduled


class TestMultiCreate(scheduled.ScheduledTestCase):
    """Nothing is known of free units, as while the database is away."""

    def assert_room_for(self, servers, *groups):
        spec = self.spec(*groups)
        self.assertRaises(
            exception.NoValidHost, self.select, spec, servers + 1
        )
        self.assertEqual(servers, len(self.select(spec, servers)))

    def test_devices_of_one_unit(self):
        uuids = self.host('host', 1, 1, 1, 1)
        self.assert_room_for(4, 1)
        self.assertEqual([1] * 4, [self.used(uuid) for uuid in uuids])

    def test_devices_of_many_units(self):
        self.host('host', 1, 3, 2)
        self.assert_room_for(6, 1)

    def test_more_than_one_unit_each(self):
        self.host('host', 3, 2, 5, 1)
        self.assert_room_for(4, 2)

    def test_two_groups(self):
        self.host('host', 1, 3)
        self.assert_room_for(2, 1, 1)

    def test_two_hosts(self):
        self.host('one', 1, 2)
        self.host('other', 2, 1)
        self.assert_room_for(6, 1)

    def test_placement_is_asked_nothing_more(self):
        self.host('one', 2, 2)
        self.host('other', 2, 2)
        asked = []
        ask = self.placement.client.get_allocation_candidates

        def note(*args):
            asked.append(args)
            return ask(*args)

        self.useFixture(
            fixtures.MockPatchObject(
                self.placement.client, 'get_allocation_candidates', note
            )
        )
        self.select(self.spec(1), 8)
        self.assertEqual(1, len(asked))
        self.assertEqual(1, self.reads)


class TestMultiCreateByWhatIsKnown(TestMultiCreate):
    def setUp(self):
        super().setUp()
        self.know()

    def test_no_claim_is_lost(self):
        """Not even of the last units."""
        self.host('one', 1, 3, 2)
        self.host('other', 4, 1)
        claimed = self.lose()
        self.select(self.spec(1), 11)
        self.assertEqual(11, len(claimed))


class TestAcceleratorFilter(scheduled.ScheduledTestCase):
    def pass_through(self, spec, *hosts):
        return candidate_filter.AcceleratorFilter().filter_all(
            list(hosts), spec
        )

    def test_a_request_without_accelerators(self):
        """It costs nothing: neither a look at each host nor a question."""
        hosts = [host_manager.HostState('host', 'host', None)]
        spec = scheduling.request_spec()
        self.assertIs(
            hosts, candidate_filter.AcceleratorFilter().filter_all(hosts, spec)
        )
        self.assertEqual(0, self.reads)

    def test_a_rebuild(self):
        spec = self.spec(1)
        spec.scheduler_hints = {'_nova_check_type': ['rebuild']}
        host = host_manager.HostState('host', 'host', None)
        self.assertEqual([host], self.pass_through(spec, host))
        self.assertEqual(0, self.reads)

    def test_a_host_that_reports_no_more(self):
        """Its nova-compute may run Nova's own driver, without devices."""
        self.know()
        self.host('silent', 4)
        self.host('other', 1)
        self.stock.silence('silent')
        self.assertEqual([['other']], self.select(self.spec(1)))
        self.assertRaises(exception.NoValidHost, self.select, self.spec(1))

    def test_a_host_without_candidates(self):
        """Another filter has dropped them all."""
        [attempt] = self.pass_through(
            self.spec(1), host_manager.HostState('host', 'host', None)
        )
        self.assertEqual([], attempt.allocation_candidates)

    def test_the_state_is_that_of_the_host(self):
        host = host_manager.HostState('host', 'host', None)
        [attempt] = self.pass_through(self.spec(1), host)
        attempt.free_ram_mb = 17
        attempt.limits['numa_topology'] = 'limits'
        host.vcpus_used = 4
        self.assertEqual(17, host.free_ram_mb)
        self.assertEqual({'numa_topology': 'limits'}, host.limits)
        self.assertEqual(4, attempt.vcpus_used)

    def test_the_fullest_device_that_fits(self):
        """All requests do so, since they know the same."""
        self.know()
        fuller, _emptier = self.host('host', 2, 8)
        for _request in range(2):
            self.select(self.spec(1))
        self.assertEqual(2, self.used(fuller))

    def test_claims_that_are_not_bound_yet(self):
        """Those of other requests count as well."""
        self.know()
        uuids = self.host('host', 1, 1, 1)
        answer_spec = self.spec(1)
        claimed = self.lose()
        for _request in uuids:
            self.select(answer_spec)
        self.assertEqual(3, len(claimed))


class TestLostClaims(scheduled.ScheduledTestCase):
    def test_the_next_candidate_of_the_host_is_tried(self):
        uuids = self.host('host', 1, 1, 1, 1)
        claimed = self.lose(0, 1, 2)
        self.assertEqual([['host']], self.select(self.spec(1)))
        self.assertEqual(4, len({frozenset(uuids) & each for each in claimed}))

    def test_the_next_server_of_the_request_has_all_candidates(self):
        """Those that the one before has lost are as good as any."""
        self.host('host', 1, 1, 1, 1)
        self.lose(0, 1, 4)
        self.assertEqual(4, len(self.select(self.spec(1), 4)))

    def test_first_the_other_hosts_of_the_rank(self):
        self.host('one', 1, 1, 1)
        self.host('other', 1, 1, 1)
        claimed = self.lose(0, 1, 2)
        self.select(self.spec(1))
        names = {uuid: name for name, uuid in self.hosts.items()}
        hosts = [
            names[uuid]
            for allocations in claimed
            for uuid in allocations & names.keys()
        ]
        self.assertEqual({'one', 'other'}, set(hosts[:2]))
        self.assertEqual({'one', 'other'}, set(hosts[2:]))

    def test_attempts_are_bounded(self):
        """Many hosts need none, as the next host is one."""
        for number in range(3):
            self.host(f'host{number}', *[1] * 30)
        spec = self.spec(1)
        claimed = self.lose(*range(1000))
        self.assertRaises(exception.NoValidHost, self.select, spec)
        self.assertEqual(64, len(claimed))
        self.assertEqual(64, len(set(claimed)))

    def test_of_all_hosts_one_is_taken_at_random(self):
        """An operator may have Nova choose one of the best at random."""
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.scheduler.manager.CONF.filter_scheduler'
                '.host_subset_size',
                5,
            )
        )
        self.host('host', 1, 1, 1, 1)
        claimed = self.lose(0, 1, 2)
        self.assertEqual([['host']], self.select(self.spec(1)))
        self.assertEqual(4, len(set(claimed)))

    def test_the_last_devices_for_as_many_requests_at_once(self):
        """On one answer of Placement, on one host: no one is refused."""
        uuids = self.host('host', *[1] * 8)
        results = self.select_at_once(self.spec(1), 8)
        self.assertEqual([[['host']]] * 8, [each.result() for each in results])
        self.assertEqual([1] * 8, [self.used(uuid) for uuid in uuids])


class TestAlternates(scheduled.ScheduledTestCase):
    """A host that has got a server is none, and any other one is it once."""

    def test_of_one_server(self):
        self.host('one', 1, 1, 1)
        self.host('two', 1, 1, 1)
        self.host('three', 1, 1, 1)
        [[chosen, *alternates]] = self.select(self.spec(1))
        self.assertCountEqual({'one', 'two', 'three'} - {chosen}, alternates)

    def test_each_host_is_one_once(self):
        """Even if Nova asks for more alternates than there are hosts."""
        self.host('one', 1, 1, 1)
        self.host('two', 1, 1, 1)
        [hosts] = self.select(self.spec(1))
        self.assertCountEqual(['one', 'two'], hosts)

    def test_after_a_lost_claim(self):
        """A further attempt has succeeded, not the first one of the host."""
        self.host('one', 1, 1, 1)
        self.lose(0, 1)
        self.assertEqual([['one']], self.select(self.spec(1)))

    def test_of_each_server_of_a_multi_create(self):
        self.host('full', 1, 1)
        self.host('other', 1, 1, 1)
        self.know()
        self.lose(0, 2)
        selected = self.select(self.spec(1), 2)
        hosts = {chosen for chosen, *_alternates in selected}
        for _chosen, *alternates in selected:
            self.assertCountEqual({'full', 'other'} - hosts, alternates)
