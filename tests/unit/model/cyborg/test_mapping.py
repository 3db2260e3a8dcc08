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

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel.model import nova_server
from nova_accel.model.cyborg import mapping
from rig.cyborg import made_up

_GPU = {'resources:PGPU': '1', 'trait:CUSTOM_NVIDIA_1EB8': 'required'}
_RUNNING = nova_server.Server('compute-1', 'active')


def _made(units: list[tuple[int, bool, bool]]) -> made_up.MadeUpCyborg:
    """A Cyborg with a device for each (host, is a vGPU, is taken)."""
    cyborg = made_up.MadeUpCyborg()
    profile = cyborg.profile('gpu', _GPU)
    for number, (host, is_mdev, is_taken) in enumerate(units):
        device = cyborg.device(f'compute-{host}', number)
        [handle] = (
            cyborg.deployable(
                device,
                'VGPU',
                made_up.mdev_info(number, 0),
                attach_type='MDEV',
            )
            if is_mdev
            else cyborg.deployable(device, 'PGPU', made_up.pci_info(number))
        )
        if is_taken:
            cyborg.arq(profile, handle, f'server-{number}')
    return cyborg


def _nova(cyborg: made_up.MadeUpCyborg, **changed: Any) -> mapping.NovaState:
    found = cyborg.snapshot()
    return mapping.NovaState(
        [
            cyborg.node(name)
            for name in sorted({device.hostname for device in found.devices})
        ],
        dict.fromkeys(mapping.instances(found), _RUNNING),
    )._replace(**changed)


class TestRead(testtools.TestCase):
    @given(
        st.lists(
            st.tuples(st.integers(1, 4), st.booleans(), st.booleans()),
            max_size=12,
        )
    )
    def test_nothing_is_lost_and_nothing_invented(
        self, units: list[tuple[int, bool, bool]]
    ) -> None:
        cyborg = _made(units)
        found = cyborg.snapshot()
        read = mapping.read(found, _nova(cyborg))
        self.assertEqual((), read.refusals)
        self.assertEqual((), read.left)
        for name, rows in (
            ('devices', found.devices),
            ('deployables', found.deployables),
            ('handles', found.handles),
            ('arqs', found.arqs),
        ):
            self.assertEqual(
                sorted(row.uuid for row in rows),
                sorted(
                    row['uuid']
                    for host in read.hosts
                    for row in getattr(host, name)
                ),
            )
        handles = {handle.id: handle.uuid for handle in found.handles}
        self.assertEqual(
            {
                handles[arq.attach_handle_id]: arq.uuid
                for arq in found.arqs
                if arq.attach_handle_id
            },
            {
                row['uuid']: row['arq_uuid']
                for host in read.hosts
                for row in host.handles
                if row['arq_uuid'] is not None
            },
        )

    def test_an_arq_keeps_what_it_is(self) -> None:
        cyborg = made_up.MadeUpCyborg()
        profile = cyborg.profile('gpu', {'resources:FPGA': '1'}, _GPU)
        [handle] = cyborg.deployable(
            cyborg.device('compute-1'), 'PGPU', made_up.pci_info(1)
        )
        uuid = cyborg.arq(profile, handle, 'server', device_profile_group_id=1)
        [host] = mapping.read(cyborg.snapshot(), _nova(cyborg)).hosts
        [row] = host.arqs
        rp_uuid = cyborg.snapshot().deployables[0].rp_uuid
        self.assertEqual(
            {
                'uuid': uuid,
                'state': 'Bound',
                'device_profile_name': 'gpu',
                'device_profile_group_id': 1,
                'group': _GPU,
                'resource_class': 'PGPU',
                'project_id': made_up.PROJECT,
                'hostname': 'compute-1.example',
                'device_rp_uuid': rp_uuid,
                'instance_uuid': 'server',
                'role': None,
                'position': None,
                'created_at': None,
                'updated_at': None,
            },
            row,
        )
        self.assertEqual(rp_uuid, host.deployables[0]['rp_uuid'])

    def test_a_disabled_device_stays_so(self) -> None:
        cyborg = made_up.MadeUpCyborg()
        cyborg.deployable(
            cyborg.device('compute-1', 0x5E, status='maintaining'),
            'PGPU',
            made_up.pci_info(0x5E),
        )
        [host] = mapping.read(cyborg.snapshot(), _nova(cyborg)).hosts
        [row] = host.devices
        self.assertEqual('maintaining', row['status'])
        self.assertEqual('0000:5e:00.0', row['address'])
        self.assertEqual(
            ('10de', '1eb8'), (row['vendor_id'], row['product_id'])
        )


class TestRefusals(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.cyborg = _made([(1, False, True), (2, False, True)])

    def read(self, **nova: Any) -> mapping.Import:
        return mapping.read(self.cyborg.snapshot(), _nova(self.cyborg, **nova))

    def assert_only_the_second_host(
        self, read: mapping.Import, *words: str
    ) -> None:
        self.assertEqual(
            ['compute-2.example'], [host.node.nodename for host in read.hosts]
        )
        [refusal] = read.refusals
        self.assertEqual('host compute-1', refusal.what)
        for word in words:
            self.assertIn(word, refusal.why)

    def test_a_busy_server(self) -> None:
        for server in (
            nova_server.Server('compute-1', 'active', 'rebooting'),
            nova_server.Server('compute-1', 'active', is_migrating=True),
        ):
            self.assert_only_the_second_host(
                self.read(servers={'server-0': server, 'server-1': _RUNNING}),
                'server-0',
            )

    def test_a_handle_with_two_arqs(self) -> None:
        found = self.cyborg.snapshot()
        self.cyborg.arq(
            found.profiles[0].id, found.handles[0].id, 'another-server'
        )
        self.assert_only_the_second_host(
            self.read(), 'server-0', 'another-server'
        )

    def test_the_second_arq_is_of_no_server(self) -> None:
        """Cyborg leaks such ones."""
        found = self.cyborg.snapshot()
        leaked = self.cyborg.arq(
            found.profiles[0].id, found.handles[0].id, 'another-server'
        )
        read = self.read(servers={'server-0': _RUNNING, 'server-1': _RUNNING})
        self.assertEqual((), read.refusals)
        self.assertEqual([f'ARQ {leaked}'], [left.what for left in read.left])

    def test_the_device_of_the_fake_driver(self) -> None:
        profile = self.cyborg.snapshot().profiles[0].id
        [handle] = self.cyborg.deployable(
            self.cyborg.device('compute-1', 9),
            'FPGA',
            made_up.pci_info(9),
            attach_type='TEST_PCI',
        )
        # A free one is no device, and in no one's way.
        self.assertEqual(2, len(self.read().hosts))
        self.cyborg.arq(profile, handle, 'server-9')
        self.assert_only_the_second_host(self.read(), 'TEST_PCI', 'server-9')

    def test_a_group_that_the_profile_has_not(self) -> None:
        found = self.cyborg.snapshot()
        [handle] = self.cyborg.deployable(
            self.cyborg.device('compute-1', 9), 'PGPU', made_up.pci_info(9)
        )
        self.cyborg.arq(
            found.profiles[0].id, handle, 'x', device_profile_group_id=7
        )
        self.assert_only_the_second_host(self.read(), 'group 7')

    def test_a_host_that_nova_does_not_know(self) -> None:
        self.assert_only_the_second_host(
            self.read(nodes=[self.cyborg.node('compute-2')]), '[DEFAULT] host'
        )

    def test_two_hosts_that_are_one_node(self) -> None:
        cyborg = _made([(1, False, True)])
        cyborg.device('compute-1.example', 9)
        cyborg.deployable(
            cyborg.device('compute-1.example', 10),
            'PGPU',
            made_up.pci_info(10),
        )
        read = mapping.read(
            cyborg.snapshot(),
            _nova(cyborg, nodes=[cyborg.node('compute-1')]),
        )
        self.assertEqual(1, len(read.hosts))
        [refusal] = read.refusals
        self.assertEqual('host compute-1.example', refusal.what)

    def test_what_is_bound_to_nothing_is_left(self) -> None:
        profile = self.cyborg.snapshot().profiles[0].id
        uuid = self.cyborg.arq(profile, None, None, state='Initial')
        read = self.read()
        self.assertEqual([f'ARQ {uuid}'], [left.what for left in read.left])
        self.assertIn('Initial', read.left[0].why)


class TestProfiles(testtools.TestCase):
    def test_a_good_one(self) -> None:
        cyborg = made_up.MadeUpCyborg()
        cyborg.profile('gpu', {**_GPU, 'resources:PGPU': 2}, description='x')
        [row] = mapping.read(cyborg.snapshot(), mapping.NovaState()).profiles
        self.assertEqual([{**_GPU, 'resources:PGPU': '2'}], row['groups'])
        self.assertEqual(('gpu', 'x'), (row['name'], row['description']))

    def test_refused_ones_are_named_with_their_flavors(self) -> None:
        for group, words in (
            (
                {'resources:FPGA': '1', 'accel:function_id': '3AFB'},
                ('3AFB', 'accel:function_name'),
            ),
            ({'resources:FPGA': '1000'}, ('1000',)),
            ({'trait:CUSTOM_A': 'required'}, ('resources:',)),
        ):
            cyborg = made_up.MadeUpCyborg()
            cyborg.profile('old', group)
            read = mapping.read(
                cyborg.snapshot(),
                mapping.NovaState(flavors={'old': ['f.large', 'f.small']}),
            )
            self.assertEqual((), read.profiles)
            [refusal] = read.refusals
            self.assertEqual('device profile old', refusal.what)
            for word in (*words, 'f.large, f.small'):
                self.assertIn(word, refusal.why)

    def test_servers_of_a_refused_one_keep_their_devices(self) -> None:
        cyborg = made_up.MadeUpCyborg()
        group = {'resources:FPGA': '1', 'accel:function_id': '3AFB'}
        profile = cyborg.profile('old', group)
        [handle] = cyborg.deployable(
            cyborg.device('compute-1'), 'FPGA', made_up.pci_info(1)
        )
        cyborg.arq(profile, handle, 'server')
        [host] = mapping.read(cyborg.snapshot(), _nova(cyborg)).hosts
        self.assertEqual(group, host.arqs[0]['group'])
