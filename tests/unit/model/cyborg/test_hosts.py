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

import testtools

from nova_accel import exceptions
from nova_accel.model.cyborg import hosts
from rig.cyborg import made_up

_NODES = (
    hosts.CyborgNode('1', 'compute-1.example', 'compute-1'),
    hosts.CyborgNode('2', 'compute-2', 'compute-2.service'),
    hosts.CyborgNode('3', 'bare-1', 'ironic'),
    hosts.CyborgNode('4', 'bare-2', 'ironic'),
    # Its node is called as the first one's host.
    hosts.CyborgNode('5', 'compute-1', 'other'),
)


class TestNodeOf(testtools.TestCase):
    def test_by_the_host_and_else_by_the_node(self) -> None:
        for name, uuid in (('compute-1', '1'), ('compute-2', '2')):
            self.assertEqual(uuid, hosts.node_of(name, _NODES).uuid)

    def test_none_or_several(self) -> None:
        for name, word in (('compute-3', 'no compute host'), ('ironic', '-2')):
            fault = self.assertRaises(
                exceptions.Conflict, hosts.node_of, name, _NODES
            )
            self.assertIn(word, str(fault))


class TestByName(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.cyborg = made_up.MadeUpCyborg()
        self.profile = self.cyborg.profile('gpu', {'resources:PGPU': '1'})
        self.handles = {
            name: self.cyborg.deployable(
                self.cyborg.device(name), 'PGPU', made_up.pci_info(1)
            )[0]
            for name in ('one', 'two')
        }

    def test_an_arq_is_where_its_handle_is(self) -> None:
        arq = self.cyborg.arq(
            self.profile, self.handles['one'], 'server', hostname='two'
        )
        rows = hosts.by_name(self.cyborg.snapshot())
        self.assertEqual([arq], [each.uuid for each in rows['one'].arqs])
        self.assertEqual([], rows['two'].arqs)

    def test_without_a_handle_it_is_where_its_provider_is(self) -> None:
        rp_uuid = self.cyborg.snapshot().deployables[1].rp_uuid
        of_provider = self.cyborg.arq(
            self.profile, None, 'server', device_rp_uuid=rp_uuid
        )
        named = self.cyborg.arq(self.profile, None, 'server', hostname='three')
        rows = hosts.by_name(self.cyborg.snapshot())
        self.assertEqual(
            [of_provider], [each.uuid for each in rows['two'].arqs]
        )
        self.assertEqual([named], [each.uuid for each in rows['three'].arqs])

    def test_one_that_is_unbound_is_nowhere(self) -> None:
        self.cyborg.arq(self.profile, None, None, state='Initial')
        rows = hosts.by_name(self.cyborg.snapshot())
        self.assertEqual({'one', 'two'}, rows.keys())
        self.assertEqual([], rows['one'].arqs + rows['two'].arqs)

    def test_origins(self) -> None:
        arq = self.cyborg.arq(self.profile, self.handles['one'], 'server')
        unbound = self.cyborg.arq(
            self.profile, None, 'server', state='BindFailed', hostname='one'
        )
        found = hosts.origins(
            self.cyborg.snapshot(), [self.cyborg.node('one')]
        )
        origin = found['one.example']
        rp_uuid = self.cyborg.snapshot().deployables[0].rp_uuid
        self.assertEqual({arq, unbound}, origin.arqs)
        self.assertEqual(
            {arq: hosts.Claim('server', rp_uuid, 'PGPU')}, origin.claims
        )
        self.assertEqual(
            (hosts.CyborgProvider(rp_uuid, 'PGPU', 1, False),),
            origin.providers,
        )
        # Nova does not know the other one.
        self.assertEqual({'one.example'}, found.keys())
