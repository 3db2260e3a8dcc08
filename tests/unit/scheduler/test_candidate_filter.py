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

import contextlib
import datetime

import fixtures
from nova import objects
from nova.scheduler import host_manager
import sqlalchemy as sa
import testtools

from nova_accel.db import engine
from nova_accel.db import schema
from nova_accel.model import naming
from nova_accel.scheduler import candidate_filter
from nova_accel.scheduler import silence
from nova_accel.testing import database
from nova_accel.testing import reports
from nova_accel.testing import scheduling


class TestAcceleratorFilter(testtools.TestCase):
    """Schedules as Nova does: filter, claim the first candidate, again."""

    def setUp(self):
        super().setUp()
        self.placement = self.useFixture(scheduling.Placement())
        self.hosts = []

    def _host(self, name, *units, resource_class='FPGA'):
        """A host with a provider for each number of units."""
        host = host_manager.HostState(name, name, None)
        host.uuid = self.placement.add_provider(
            name, {'VCPU': 100, 'MEMORY_MB': 100000}
        )
        self.hosts.append(host)
        return [
            self.placement.add_provider(
                f'{name}_accel_{index}',
                {resource_class: total},
                host.uuid,
                [naming.OWNERSHIP_TRAIT],
            )
            for index, total in enumerate(units)
        ]

    def _spec(self, *groups):
        """A request with groups of ours, each of so many FPGAs."""
        return scheduling.request_spec(
            {'group_policy': 'none'},
            [
                objects.RequestGroup(
                    requester_id=f'device_profile_{index}',
                    resources={'FPGA': units},
                    required_traits={naming.OWNERSHIP_TRAIT},
                )
                for index, units in enumerate(groups)
            ],
        )

    def test_a_host_that_reports_no_more(self):
        """Its nova-compute may run Nova's own driver, without devices."""
        self.useFixture(database.Database())
        for name in ('silent', 'other'):
            self._host(name, 1)
            reports.SimulatedHost(name).report()
        spec = self._spec(1)
        self._prepare(spec)
        hosts = list(self.hosts)
        self.assertEqual(hosts, self._pass(spec))
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.HOSTS)
                .where(schema.HOSTS.c.hostname == 'silent')
                .values(
                    reported_at=datetime.datetime.now(datetime.UTC)
                    - datetime.timedelta(hours=1)
                )
            )
        self.assertEqual(hosts[1:], self._pass(spec))
        # Who asks for no accelerators goes where it likes.
        self.hosts = hosts
        with self.counted() as statements:
            self.assertEqual(hosts, self._pass(self._spec()))
        self.assertEqual([], statements)
        with self.counted() as statements:
            self._pass(spec)
        self.assertEqual(1, len(statements))

    @contextlib.contextmanager
    def counted(self):
        """What the database is asked meanwhile."""
        asked = []
        ask = silence.host.get_silent

        def note(silence_s):
            asked.append(silence_s)
            return ask(silence_s)

        with fixtures.MonkeyPatch('nova_accel.db.host.get_silent', note):
            yield asked

    def test_a_database_that_gives_no_answer(self):
        """It is not even there."""
        self._host('host', 1)
        spec = self._spec(1)
        self._prepare(spec)
        self.assertEqual(1, len(self._pass(spec)))

    def _prepare(self, spec):
        candidates = self.placement.candidates(spec)
        for host in self.hosts:
            host.allocation_candidates = [
                candidate
                for candidate in candidates
                if host.uuid in candidate['allocations']
            ]

    def _pass(self, spec):
        accelerator_filter = candidate_filter.AcceleratorFilter()
        self.hosts = list(accelerator_filter.filter_all(self.hosts, spec))
        return self.hosts

    def _schedule(self, spec, servers):
        """:returns: how many servers got a claim"""
        self._prepare(spec)
        for number in range(servers):
            for host in self._pass(spec):
                candidate = host.allocation_candidates[0]
                if self.placement.claim(candidate):
                    break
            else:
                return number
            for group in spec.requested_resources:
                group.provider_uuids = candidate['mappings'][
                    group.requester_id
                ]
        return servers

    def test_devices_of_one_unit(self):
        self._host('host', 1, 1, 1, 1)
        self.assertEqual(4, self._schedule(self._spec(1), 4))

    def test_devices_of_many_units(self):
        self._host('host', 1, 3, 2)
        self.assertEqual(6, self._schedule(self._spec(1), 6))

    def test_more_than_one_unit_each(self):
        self._host('host', 3, 2, 5, 1)
        self.assertEqual(4, self._schedule(self._spec(2), 4))

    def test_two_groups(self):
        self._host('host', 1, 3)
        self.assertEqual(2, self._schedule(self._spec(1, 1), 2))

    def test_two_hosts(self):
        self._host('one', 1, 2)
        self._host('other', 2, 1)
        self.assertEqual(6, self._schedule(self._spec(1), 6))

    def test_what_this_request_used_comes_last(self):
        self._host('host', 4, 4)
        spec = self._spec(1)
        self._schedule(spec, 1)
        (used,) = spec.requested_resources[0].provider_uuids
        (host,) = self._pass(spec)
        self.assertEqual(
            [False, True],
            [
                used in candidate['allocations']
                for candidate in host.allocation_candidates
            ],
        )

    def test_full_host_does_not_pass(self):
        self._host('one', 1)
        self._host('other', 2)
        self.assertEqual(3, self._schedule(self._spec(1), 5))
        self.assertEqual([], self.hosts)

    def test_taken_by_another_scheduler_meanwhile(self):
        providers = self._host('host', 2, 2)
        spec = self._spec(1)
        self._prepare(spec)
        candidates = self.hosts[0].allocation_candidates
        first = candidates[0]['mappings']['device_profile_0']
        self.placement.claim(candidates[0])
        self.placement.claim(candidates[0])
        spec.requested_resources[0].provider_uuids = first
        [host] = self._pass(spec)
        self.assertEqual(
            [[uuid] for uuid in providers if uuid not in first],
            [
                candidate['mappings']['device_profile_0']
                for candidate in host.allocation_candidates
            ],
        )

    def test_first_server(self):
        self._host('host', 1, 1)
        spec = self._spec(1)
        self._prepare(spec)
        before = list(self.hosts[0].allocation_candidates)
        # Nobody is asked: there is nobody to answer.
        self.placement.use('http://127.0.0.1:1')
        [host] = self._pass(spec)
        self.assertCountEqual(before, host.allocation_candidates)

    def test_requests_of_the_same_moment(self):
        """Each wants what it likes: the odds of a mistake are 8 ** -19."""
        self._host('host', *[1] * 8)
        wanted = set()
        for _request in range(20):
            spec = self._spec(1)
            self._prepare(spec)
            [host] = self._pass(spec)
            wanted.update(
                host.allocation_candidates[0]['mappings']['device_profile_0']
            )
        self.assertLess(1, len(wanted))

    def test_what_this_request_did_not_use_comes_in_any_order(self):
        """What it used is last each time."""
        self._host('host', *[2] * 8)
        first = set()
        for _request in range(20):
            spec = self._spec(1)
            self._prepare(spec)
            spec.requested_resources[0].provider_uuids = used = self.hosts[
                0
            ].allocation_candidates[0]['mappings']['device_profile_0']
            [host] = self._pass(spec)
            *others, last = (
                candidate['mappings']['device_profile_0']
                for candidate in host.allocation_candidates
            )
            self.assertEqual(used, last)
            first.update(others[0])
        self.assertLess(1, len(first))

    def test_without_accelerators(self):
        """Not even its order is touched."""
        self._host('host', *[1] * 8)
        self._prepare(self._spec(1))
        before = list(self.hosts[0].allocation_candidates)
        self.placement.use('http://127.0.0.1:1')
        for _request in range(20):
            [host] = self._pass(scheduling.request_spec())
            self.assertEqual(before, host.allocation_candidates)

    def test_without_candidates(self):
        """As on a rebuild, or when another filter has dropped them all."""
        self._host('host', 1)
        spec = self._spec(1)
        spec.requested_resources[0].provider_uuids = [self.hosts[0].uuid]
        self.assertEqual(1, len(self._pass(spec)))

    def _test_no_answer(self, url):
        self._host('host', 1, 1)
        spec = self._spec(1)
        self._prepare(spec)
        before = list(self.hosts[0].allocation_candidates)
        spec.requested_resources[0].provider_uuids = before[0]['mappings'][
            'device_profile_0'
        ]
        self.placement.use(url)
        [host] = self._pass(spec)
        self.assertCountEqual(before, host.allocation_candidates)

    def test_placement_unreachable(self):
        self._test_no_answer('http://127.0.0.1:1')

    def test_placement_fault(self):
        url = self.placement.client._client.get_endpoint()
        self._test_no_answer(f'{url}/nowhere')
