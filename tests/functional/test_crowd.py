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

"""Servers that are scheduled at the same moment."""

from concurrent import futures
import json
import threading
import time

import fixtures
from nova.scheduler.client import report

from functional import base
from nova_accel.scheduler import candidates
from nova_accel.testing import devices
from rig.loopback import crowd

_APART = json.dumps({**json.loads(devices.QAT_SPEC), 'pool': False})

#: Seconds that all servers have to end in one state or the other.
_TIME_S = 420


class CrowdTestCase(base.AcceleratorTestCase):
    hosts = ()
    never_ends_s = 1800
    # Nova's services do not wait for each other, as on real ones.
    CAST_AS_CALL = False

    def setUp(self):
        self.useFixture(crowd.OneCell())
        self.useFixture(crowd.PlacementWorkers())
        super().setUp()
        # As long as it takes on a busy machine.
        self.flags(rpc_response_timeout=_TIME_S, long_rpc_timeout=_TIME_S)
        self.flags(initial_cpu_allocation_ratio=64.0)
        self.flags(instances=-1, cores=-1, ram=-1, group='quota')
        self.create_profile('qat', [base.QAT])
        self.flavor = self.create_accel_flavor('qat', disk=0)

    def start_hosts(self, spec, *functions):
        """One for each number of functions."""
        for number, vfs in enumerate(functions):
            self.start_accelerated_compute(
                f'host{number}',
                device_spec=[spec],
                pci_info=devices.pci_info(
                    gpus=0, fpgas=0, qats=1, qat_vfs=vfs
                ),
            )

    def boot_at_once(self, number):
        """Servers by the state in which they end: (active, refused)."""
        return self.boot_all([self.flavor] * number)

    def boot_all(self, flavors):
        """A server of each flavor, as :meth:`boot_at_once`."""
        bodies = [
            {'server': self._build_server(flavor_id=flavor, networks='none')}
            for flavor in flavors
        ]
        with futures.ThreadPoolExecutor(len(bodies)) as threads:
            posted = {
                server['id']
                for server in threads.map(self.api.post_server, bodies)
            }
        ended = self.wait_for(posted)
        return tuple(
            [server for server in ended if server['status'] == state]
            for state in ('ACTIVE', 'ERROR')
        )

    def wait_for(self, uuids):
        end = time.monotonic() + _TIME_S
        while time.monotonic() < end:
            servers = [
                server
                for server in self.api.get_servers()
                if server['id'] in uuids
            ]
            if all(
                server['status'] in ('ACTIVE', 'ERROR') for server in servers
            ):
                return servers
            # To look at all of them takes as long as to build one.
            time.sleep(5)
        self.fail(f'not ended in {_TIME_S} s: {servers}')

    def assert_each_has_its_own(self, servers):
        """One device each, no one another's; nothing is held beside them."""
        self.assertEqual(
            len(servers),
            len(
                {
                    (
                        server['OS-EXT-SRV-ATTR:host'],
                        *self.guest_devices(server),
                    )
                    for server in servers
                }
            ),
        )
        for server in servers:
            self.assertEqual(
                [self.arq_device(arq) for arq in self.arqs(server)],
                self.guest_devices(server),
            )
        self.assertEqual(
            len(servers),
            sum(
                arq_uuid is not None
                for arq_uuid in self.attach_handles().values()
            ),
        )
        self.assertEqual(
            len(servers),
            sum(
                sum(provider['usage'].values())
                for host in self.computes
                for provider in self.accelerator_providers(host)
            ),
        )

    def delete(self, *servers):
        for server in servers:
            self.api.delete_server(server['id'])
        for server in servers:
            self._wait_until_deleted(server)
        self.assert_nothing_left()


class TestEight(CrowdTestCase):
    """The last devices of a host, for as many servers of one moment."""

    rounds = 3

    def meet(self, number):
        """All servers have the answer of Placement before any is claimed."""
        all_of_them = threading.Barrier(number, timeout=60)
        met = set()
        claim = report.SchedulerReportClient.claim_resources

        def claim_at_once(client, context, consumer, *args, **kwargs):
            if consumer not in met:
                met.add(consumer)
                all_of_them.wait()
            return claim(client, context, consumer, *args, **kwargs)

        self.useFixture(
            fixtures.MockPatchObject(
                report.SchedulerReportClient, 'claim_resources', claim_at_once
            )
        )

    def test_devices_of_one_host(self):
        """Who loses a claim tries the next device."""
        self.start_hosts(_APART, 8)
        self.meet(8)
        for _round in range(self.rounds):
            active, refused = self.boot_at_once(8)
            self.assertEqual([], refused)
            self.assert_each_has_its_own(active)
            self.delete(*active)


class TestFifty(CrowdTestCase):
    """As many at once as three hosts have devices."""

    def boot_fifty(self, spec):
        self.start_hosts(spec, 17, 17, 16)
        active, refused = self.boot_at_once(50)
        self.assertEqual([], refused)
        self.assert_each_has_its_own(active)

    def test_pooled(self):
        self.boot_fifty(devices.QAT_SPEC)

    def test_apart(self):
        """Some lose their race several times."""
        self.boot_fifty(_APART)


class TestAlternatives(CrowdTestCase):
    """Half of the hosts have what the flavor would rather have."""

    def test_none_is_refused_while_an_alternative_fits(self):
        self.create_profile('vgpu', [base.VGPU])
        self.start_hosts(devices.QAT_SPEC, 12, 12)
        for number in range(2):
            self.start_accelerated_compute(
                f'gpu{number}',
                device_spec=[devices.GPU_SPEC],
                pci_info=devices.pci_info(gpus=1, fpgas=0, qats=0),
            )
        questions = []
        ask = candidates.ask_all

        def note(context, request_spec):
            questions.append(request_spec)
            return ask(context, request_spec)

        self.useFixture(fixtures.MockPatchObject(candidates, 'ask_all', note))
        self.flavor = self.create_accel_flavor('qat,vgpu', disk=0)
        active, refused = self.boot_at_once(50)
        self.assertEqual([], refused)
        self.assert_each_has_its_own(active)
        self.assertEqual(
            24,
            sum(
                server['OS-EXT-SRV-ATTR:host'].startswith('host')
                for server in active
            ),
        )
        # Of those that want to know the same, one asks.
        self.assertLess(len(questions), 5)
        self.delete(*active)
