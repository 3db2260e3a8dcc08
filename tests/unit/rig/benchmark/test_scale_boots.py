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

import types

import testtools

from nova_accel import exceptions
from nova_accel.model import naming
from nova_accel.testing import accelerator_api
from nova_accel.testing import scheduling
from rig.benchmark import arqs
from rig.benchmark import scale_boots
from rig.benchmark import scale_hosts


class TestBoots(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(accelerator_api.AcceleratorApi())
        self.placement = self.useFixture(scheduling.Placement())
        arqs.make_profile()
        self.hosts = []
        self.waits = scale_hosts.Waits()

    def add_host(self, name):
        host = scale_hosts.Host(name, 'http://accelerator.test')
        host.report(self.waits)
        root = self.placement.add_provider(
            name,
            {'VCPU': 99, 'MEMORY_MB': 9999},
            uuid=host.simulated.node_uuid,
        )
        unit = host.simulated.allocated_functions(1).rp_uuid
        self.placement.add_provider(
            f'{name}_qat',
            {'CUSTOM_QAT': scale_hosts.DEVICES},
            root,
            [naming.OWNER_TRAIT, naming.OWNERSHIP_TRAIT],
            unit,
        )
        self.hosts.append(host)
        return host

    def boots(self):
        return scale_boots.Boots(self.placement, self.hosts)

    def refuse(self, *_binding, **_kwargs):
        raise exceptions.Conflict('another server has it')

    def held(self, host):
        return len(host.api.bindings())

    def test_servers_come_and_go(self):
        host = self.add_host('compute-1')
        boots = self.boots()
        for _server in range(scale_hosts.DEVICES):
            boots.boot()
        self.assertEqual(scale_hosts.DEVICES, self.held(host))
        boots.boot()
        self.assertEqual(
            (scale_hosts.DEVICES, [1]),
            (boots.booted, list(boots.failed.values())),
        )
        boots.delete(at_least=scale_hosts.DEVICES)
        self.assertEqual(scale_hosts.DEVICES, self.held(host))
        boots.delete()
        self.assertEqual(scale_hosts.DEVICES - 1, self.held(host))
        boots.boot()
        self.assertEqual(scale_hosts.DEVICES, self.held(host))
        boots.delete_all()
        self.assertEqual(0, self.held(host))
        self.assertEqual({}, boots.refused)
        self.assertEqual(scale_hosts.DEVICES + 1, len(boots.acquired.seconds))
        self.assertEqual(scale_hosts.DEVICES + 1, len(boots.released.seconds))

    def test_a_refused_server_goes_to_another_host(self):
        host = self.add_host('compute-1')
        host.api = types.SimpleNamespace(
            acquire=self.refuse, release=lambda *binding: None
        )
        boots = self.boots()
        boots.boot()
        self.assertEqual((0, 2), (boots.booted, boots.rescheduled))
        self.assertEqual([1], list(boots.failed.values()))
        self.assertEqual({'Conflict': 3}, boots.refused)
        # What it claimed is free again.
        self.assertEqual(
            {},
            self.placement.client.get_allocations_for_resource_provider(
                boots._context, host.simulated.allocated_functions(1).rp_uuid
            ).allocations,
        )

    def test_an_api_that_is_away_refuses_nothing(self):
        host = self.add_host('compute-1')
        boots = self.boots()
        boots.boot()
        there = host.api
        host.api = scale_hosts.Host('compute-1', 'http://127.0.0.1:9').api
        host.api._adapter.connect_retries = 0
        boots.boot()
        self.assertEqual((1, {}), (boots.booted, boots.refused))
        self.assertEqual([1], list(boots.failed.values()))
        self.assertEqual(
            (3, 3), (boots.acquired.failed, boots.released.failed)
        )
        boots.delete()
        self.assertRaises(RuntimeError, boots.delete_all)
        host.api = there
        boots.delete_all()
        self.assertEqual(0, self.held(host))
