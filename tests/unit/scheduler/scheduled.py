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

"""Hosts in Placement, scheduled by Nova's own SchedulerManager."""

from concurrent import futures

import fixtures
from nova import objects
from nova.scheduler.client import report
from oslo_utils import uuidutils
import testtools

from nova_accel.model import naming
from nova_accel.testing import scheduling
from rig.loopback import bare_scheduler
from rig.loopback import crowd
from rig.stubs import stock


class ScheduledTestCase(testtools.TestCase):
    """Hosts in Placement; the test says what else is known of them.

    :ivar known: what nova-scheduler knows of free units, None at first
    :ivar reads: how often it has asked for that
    """

    def setUp(self):
        super().setUp()
        # Placement logs each claim that is lost.
        self.useFixture(fixtures.FakeLogger())
        self.useFixture(crowd.PlacementWorkers(1))
        self.placement = self.useFixture(scheduling.Placement())
        self.hosts = {}
        self.stock = stock.Stock()
        self.known = None
        self.reads = 0
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.scheduler.known_stock.current', self._current
            )
        )

    def _current(self):
        self.reads += 1
        return self.known

    def know(self):
        self.known = self.stock.known

    def host(self, name, *units):
        """A host with a provider for each number of units."""
        self.hosts[name] = self.placement.add_provider(
            name, {'VCPU': 100, 'MEMORY_MB': 100000}
        )
        uuids = [
            self.placement.add_provider(
                f'{name}_accel_{index}',
                {'FPGA': total},
                self.hosts[name],
                [naming.OWNERSHIP_TRAIT],
            )
            for index, total in enumerate(units)
        ]
        for uuid, total in zip(uuids, units, strict=True):
            self.stock.add(name, uuid, total)
        return uuids

    def spec(self, *groups):
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

    def select(self, spec, servers=1, answer=None):
        """For each server the name of its host, and of the alternates."""
        names = {uuid: name for name, uuid in self.hosts.items()}
        selected = bare_scheduler.BareScheduler(self.hosts).select(
            spec,
            answer or bare_scheduler.Answer(spec),
            [uuidutils.generate_uuid() for _server in range(servers)],
            with_alternates=True,
        )
        return [
            [names[each.compute_node_uuid] for each in of_server]
            for of_server in selected
        ]

    def select_at_once(self, spec, requests):
        """Requests on one answer, for one server each: what becomes of them.

        :returns: a future for each
        """
        answer = bare_scheduler.Answer(spec)
        with futures.ThreadPoolExecutor(requests) as threads:
            return [
                threads.submit(self.select, spec, answer=answer)
                for _request in range(requests)
            ]

    def lose(self, *claims):
        """Have the claims of these numbers be lost to somebody else.

        :returns: the providers that are claimed, as time goes by
        """
        claimed = []
        claim = report.SchedulerReportClient.claim_resources

        def claim_or_lose(client, context, consumer, request, *args, **kwargs):
            claimed.append(frozenset(request['allocations']))
            if len(claimed) - 1 in claims:
                return False
            return claim(client, context, consumer, request, *args, **kwargs)

        self.useFixture(
            fixtures.MockPatchObject(
                report.SchedulerReportClient, 'claim_resources', claim_or_lose
            )
        )
        return claimed

    def used(self, rp_uuid):
        """How many units of a provider are claimed in Placement."""
        answer = self.placement.client.get(
            f'/resource_providers/{rp_uuid}/usages', version='1.20'
        )
        return answer.json()['usages']['FPGA']
