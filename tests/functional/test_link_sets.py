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
import os
import pathlib
import re

from nova import context as nova_context

from functional import base
from nova_accel.testing import devices
from nova_accel.testing import fabric_manager
from nova_accel.testing import hgx_host

HOST = 'host1'
LINK = 'CUSTOM_NOVA_ACCEL_'

#: What ends the names of providers: of the traits of a line, of their parents.
DIGESTS = re.compile('(_[0-9a-f]{8})+$')


class LinkSetsTestCase(base.AcceleratorTestCase):
    hosts = ()
    #: Where the command nvidia-smi is, if there is one.
    programs: pathlib.Path | None = None

    def setUp(self):
        super().setUp()
        self.manager = self.useFixture(fabric_manager.FabricManager())
        self.hgx = hgx_host.HgxHost()

    def lines(self, **keys):
        numbers = {
            str(address): number
            for address, number in self.hgx.module_ids.items()
        }
        keys = {'module_ids': numbers, **keys}
        return hgx_host.device_spec(
            **{key: value for key, value in keys.items() if value is not None}
        )

    def start(self, **keys):
        self.install()
        self.start_host(**keys)

    def install(self):
        self.info = devices.pci_info(gpus=0, fpgas=0, qats=0)
        self.hgx.install(self.info, self.sysfs)

    def start_host(self, **keys):
        self.start_accelerated_compute(HOST, self.info, self.lines(**keys))

    def restart(self, **keys):
        self.flags(device_spec=list(self.lines(**keys)), group='nova_accel')
        self.restart_compute_service(HOST)

    def bind(self, driver, *gpus):
        for gpu in gpus:
            link = self.sysfs.root / f'bus/pci/devices/{gpu}/driver'
            link.unlink(missing_ok=True)
            link.symlink_to(f'../../../bus/pci/drivers/{driver}')

    def make_nvidia_smi(self, peers):
        """Make the command, which tells what the driver of NVIDIA has.

        :param peers: GPU -> the functions that its links end at
        """
        if self.programs is None:
            self.programs = pathlib.Path(
                self.useFixture(base.fixtures.TempDir()).path
            )
            self.useFixture(
                base.fixtures.EnvironmentVariable(
                    'PATH', f'{self.programs}:{os.environ["PATH"]}'
                )
            )
        gpus = ''.join(
            f'<gpu id="0000{gpu}"><uuid>GPU-{gpu}</uuid>'
            f'<gpu_module_id>{self.hgx.module_ids[gpu]}</gpu_module_id></gpu>'
            for gpu in peers
        )
        links = ''.join(
            f'GPU {index}: NVIDIA H200 (UUID: GPU-{gpu})\n'
            + ''.join(
                f'\t Link {number}: Remote Device 0000{peer}: Link 0\n'
                for number, peer in enumerate(theirs)
            )
            for index, (gpu, theirs) in enumerate(peers.items())
        )
        for name, text in (('q', gpus), ('nvlink', links)):
            (self.programs / name).write_text(text)
        program = self.programs / 'nvidia-smi'
        program.write_text(
            '#!/bin/sh\n'
            f'[ "$1" = nvlink ] && exec cat {self.programs}/nvlink\n'
            f'echo "<log>$(cat {self.programs}/q)</log>"\n'
        )
        program.chmod(0o755)

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
                    DIGESTS.sub(
                        '', each['name'].removeprefix(f'{HOST}_accel_')
                    )
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


WHOLE = 'modules_1_2_3_4_5_6_7_8'
#: NUMA node -> its root complexes, with the modules below each.
NODES = {
    'numa_0': {'root_0000_15': '2_4', 'root_0000_59': '1_3'},
    'numa_1': {'root_0000_97': '6_8', 'root_0000_d7': '5_7'},
}


def a_tree():
    """The tree of a board whose pairs have a switch each."""
    found = {(WHOLE,): ({}, {'NVLINK_8'})}
    for node, roots in NODES.items():
        found[WHOLE, node] = (
            {},
            {'NVLINK_4', *(f'NUMA_{size}' for size in range(2, 7))},
        )
        for root, pair in roots.items():
            path = WHOLE, node, root
            found[path] = {}, {'PCIE_2', 'PCIE_3'}
            found[*path, f'modules_{pair}_pgpu_10de_2335'] = (
                {'PGPU': 2},
                {'FABRIC', 'NUMA_2', 'NVLINK_2', 'PCIE_2'},
            )
            found[*path, f'{root}_nic_15b3_1021'] = {'CUSTOM_NIC': 1}, set()
    return found


def of_tree(tree):
    """The links that the providers promise."""
    return [traits for _units, traits in tree.values()]


class TestTree(LinkSetsTestCase):
    def test_an_hgx_board(self):
        self.start(pool='link')
        self.assertEqual(a_tree(), self.tree())
        self.assertEqual(
            {
                str(address): str(number)
                for address, number in self.hgx.module_ids.items()
            },
            {
                device['address']: device['attributes']['module_id']
                for device in self.devices()
                if device['type'] == 'GPU'
            },
        )
        self.assertEqual(
            f'{WHOLE} > numa_1 > root_0000_d7 > modules_5_7',
            self.device_of_module(5)['attributes']['link_sets'],
        )

    def test_pairs_across_switches(self):
        """Such a switch has no place: NVLink matters more."""
        self.hgx = hgx_host.HgxHost(hgx_host.PAIRS_ACROSS_SWITCHES)
        self.start(pool='link')
        tree = self.tree()
        pairs = {
            path[-1]: traits
            for path, (units, traits) in tree.items()
            if units.get('PGPU') == 2
        }
        self.assertEqual(4, len(pairs))
        for name, traits in pairs.items():
            self.assertIn('NVLINK_2', traits, name)
        self.assertNotIn('PCIE_2', frozenset().union(*of_tree(tree)))

    def test_the_operator_prefers_switches(self):
        """Then only those partitions are offered that the line names."""
        self.hgx = hgx_host.HgxHost(hgx_host.PAIRS_ACROSS_SWITCHES)
        halves = [
            [str(address) for address in addresses]
            for addresses in (self.hgx.gpus[:4], self.hgx.gpus[4:])
        ]
        self.start(pool='link', links={'nvlink': halves})
        tree = self.tree()
        pools = [traits for units, traits in tree.values() if 'PGPU' in units]
        self.assertEqual([{'FABRIC', 'NUMA_2', 'PCIE_2'}] * 4, pools)
        promised = frozenset().union(*of_tree(tree))
        self.assertIn('NVLINK_4', promised)
        self.assertNotIn('NVLINK_8', promised)

    def test_what_cannot_be_joined_now(self):
        self.start(pool='link')
        # Of the modules 1 to 4, and 5 and 7.
        self.manager.call_unsupported([1, 5])
        self.update()
        wanted = a_tree()
        wanted[WHOLE, 'numa_0'][1].discard('NVLINK_4')
        pair = (WHOLE, 'numa_1', 'root_0000_d7', 'modules_5_7_pgpu_10de_2335')
        wanted[pair][1].discard('NVLINK_2')
        self.assertEqual(wanted, self.tree())
        self.manager.call_unsupported([])
        self.update()
        self.assertEqual(a_tree(), self.tree())

    def test_a_module_that_nothing_joins(self):
        self.start(pool='link')
        self.manager.call_unsupported(
            [number for number, of in fabric_manager.H100.items() if 5 in of]
        )
        self.update()
        wanted = a_tree()
        wanted[WHOLE,][1].discard('NVLINK_8')
        wanted[WHOLE, 'numa_1'][1].discard('NVLINK_4')
        path = WHOLE, 'numa_1', 'root_0000_d7', 'modules_5_7_pgpu_10de_2335'
        wanted[path][1].discard('NVLINK_2')
        wanted[path][0]['PGPU'] = 1
        self.assertEqual(wanted, self.tree())
        self.assertIn(
            'supports none of the partitions with module 5',
            self.device_of_module(5)['fault'],
        )

    def test_fabric_manager_is_away(self):
        self.start(pool='link')
        self.manager.stop()
        self.update()
        wanted = a_tree()
        for units, _traits in wanted.values():
            if 'PGPU' in units:
                units['PGPU'] = 0
        self.assertEqual(wanted, self.tree())
        self.assertIn(
            'Fabric Manager does not answer: ',
            self.device_of_module(5)['fault'],
        )
        # A restart changes nothing, as the partitions are remembered.
        self.restart(pool='link')
        self.assertEqual(wanted, self.tree())
        self.manager.restart()
        self.update()
        self.assertEqual(a_tree(), self.tree())

    def test_without_module_ids(self):
        self.start(
            pool='link',
            module_ids={str(self.hgx.gpus[0]): None},
        )
        self.assertEqual(
            1,
            sum(
                units.get('PGPU', 0) for units, _traits in self.tree().values()
            ),
        )
        self.assertEqual(
            7,
            sum(
                'its module id on the NVSwitch board is not known'
                in (device['fault'] or '')
                for device in self.devices()
            ),
        )

    def test_module_ids_are_learnt(self):
        """By nvidia-smi, while NVIDIA's driver has the GPUs."""
        self.make_nvidia_smi(dict.fromkeys(self.hgx.gpus, ('0000:B3:00.0',)))
        self.install()
        self.bind('nvidia', *self.hgx.gpus)
        self.start_host(pool='link', module_ids=None)
        self.assertEqual(a_tree(), self.tree())
        # A guest may have a GPU when nova-compute is started again.
        self.bind('vfio-pci', *self.hgx.gpus)
        (self.programs / 'nvidia-smi').unlink()
        self.restart(pool='link', module_ids=None)
        self.update()
        self.assertEqual(a_tree(), self.tree())

    def devices(self):
        return [
            device | json.loads(device['std_board_info'])
            for device in self.accelerator.get('/devices')['devices']
        ]

    def device_of_module(self, number):
        (address,) = (
            str(address)
            for address, its_number in self.hgx.module_ids.items()
            if its_number == number
        )
        (device,) = (
            device for device in self.devices() if device['address'] == address
        )
        return device


class TestReshape(LinkSetsTestCase):
    def test_guests_of_a_pool_keep_their_gpus(self):
        self.start(pool=True)
        self.create_profile('one', [{'resources:PGPU': '1'}])
        flavor = self.create_accel_flavor('one')
        servers = [self.boot(flavor) for _number in range(2)]
        before = list(map(self.guest_devices, servers))
        self.restart(pool='link')
        self.update(2)
        self.assertEqual(a_tree(), self.tree())
        self.assertEqual(before, list(map(self.guest_devices, servers)))
        names = self.provider_names()
        for server, (address,) in zip(servers, before, strict=True):
            (arq,) = self.arqs(server)
            home = names[arq['device_rp_uuid']]
            number = self.hgx.module_ids[
                hgx_host.pci_address.PciAddress.parse(address)
            ]
            self.assertIn(str(number), home.split('_pgpu')[0].split('_'))
            allocations = self.placement.get(
                f'/allocations/{server["id"]}', version='1.28'
            ).body['allocations']
            self.assertEqual(
                {'resources': {'PGPU': 1}},
                {
                    key: value
                    for key, value in allocations[
                        arq['device_rp_uuid']
                    ].items()
                    if key == 'resources'
                },
            )
        self.delete(*servers)
        self.restart(pool=True)
        self.update(2)
        self.assertEqual(
            {('pgpu_10de_2335',): ({'PGPU': 8}, {'FABRIC'})},
            {
                path: found
                for path, found in self.tree().items()
                if 'PGPU' in found[0]
            },
        )
