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

"""Devices below the sets that join them, in a real Placement."""

import json

from nova import context as nova_context

from functional import base
from nova_accel.model import link_discovery
from nova_accel.testing import devices
from nova_accel.testing import hgx_host
from nova_accel.virt import wiring
from nova_accel.virt.publishing import gpu_links
from nova_accel.virt.publishing import host_links
from nova_accel.virt.publishing import link_memory

HOST = 'host1'
LINK = 'CUSTOM_NOVA_ACCEL_'

#: All partitions of an HGX board, as its Fabric Manager lists them.
PARTITIONS = [
    *({number} for number in range(1, 9)),
    {1, 3},
    {2, 4},
    {5, 7},
    {6, 8},
    {1, 2, 3, 4},
    {5, 6, 7, 8},
    set(range(1, 9)),
]


class LinkSetsTestCase(base.AcceleratorTestCase):
    hosts = ()

    def setUp(self):
        super().setUp()
        self.unsupported = []
        self.partitions = [frozenset(each) for each in PARTITIONS]
        self.hgx = hgx_host.HgxHost()
        self.useFixture(
            base.fixtures.MonkeyPatch(
                'nova_accel.virt.wiring._links', self.links
            )
        )

    def links(self, common):
        """What the wiring makes with a fabric."""
        sysfs = common.hardware.sysfs
        memory = link_memory.LinkMemory(
            common.state / f'{common.node.nodename}.links.json'
        )
        return host_links.HostLinks(
            sysfs,
            memory,
            gpu_links.GpuLinks(sysfs, memory),
            lambda: [
                link_discovery.Partition(each, each not in self.unsupported)
                for each in self.partitions
            ],
        )

    def lines(self, **keys):
        return hgx_host.device_spec(
            module_ids={
                str(address): number
                for address, number in self.hgx.module_ids.items()
            },
            **keys,
        )

    def start(self, **keys):
        info = devices.pci_info(gpus=0, fpgas=0, qats=0)
        self.hgx.install(info, self.sysfs)
        self.start_accelerated_compute(HOST, info, self.lines(**keys))

    def restart(self, **keys):
        self.flags(device_spec=list(self.lines(**keys)), group='nova_accel')
        self.restart_compute_service(HOST)

    def update(self, times=1):
        for _time in range(times):
            self.settle(HOST)
            self.computes[HOST].manager.update_available_resource(
                nova_context.get_admin_context()
            )

    def tree(self):
        """Path of sets -> its units, and the links that it promises.

        A name is without the infix and without the digest at the end.
        """
        providers = {
            provider['uuid']: provider
            for provider in self._get_all_providers()
        }
        found = {}
        for provider in providers.values():
            path = []
            while provider['name'].startswith(f'{HOST}_accel_'):
                path.insert(0, provider)
                provider = providers[provider['parent_provider_uuid']]
            if path:
                names = tuple(
                    each['name'].removeprefix(f'{HOST}_accel_')
                    for each in path
                )
                found[names] = path[-1]['uuid']
        return {
            names: (
                {
                    name: inventory['total'] - inventory['reserved']
                    for name, inventory in self._get_provider_inventory(
                        uuid
                    ).items()
                },
                {
                    trait.removeprefix(LINK)
                    for trait in self._get_provider_traits(uuid)
                    if trait.startswith(LINK)
                },
            )
            for names, uuid in found.items()
        }


class TestTree(LinkSetsTestCase):
    def test_tree(self):
        self.start(pool='link')
        import pprint; pprint.pprint(self.tree())
