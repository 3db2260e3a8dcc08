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

import copy
import dataclasses

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import host_binding
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.devices import hardware
from nova_accel.model.providers import provider_layout
from nova_accel.model.providers import reshape
from rig import sample_devices

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'
QAT = 'CUSTOM_QAT'
BUSES = range(6)


def layout_of(is_pooled, buses=BUSES, resource_class=QAT):
    return provider_layout.layout(
        'c1',
        NODE_UUID,
        [
            sample_devices.qat(
                bus,
                [
                    hardware.Deployable(
                        'function',
                        resource_class,
                        frozenset(),
                        (a_handle(bus),),
                    )
                ],
                pooled=is_pooled,
            )
            for bus in buses
        ],
    )


def a_handle(bus):
    return attach_handle.AttachHandle(
        naming.derived_uuid(NODE_UUID, str(bus)),
        pci_address.PciAddress(0, bus, 0, 0),
    )


POOLED, APART = layout_of(True), layout_of(False)
[POOL] = (each.uuid for each in POOLED.providers)
OF_BUS = {bus: APART.places[a_handle(bus).uuid].rp_uuid for bus in BUSES}


def a_binding(instance, *buses, role=arq_types.Role.ACTIVE, rp_uuid=None):
    """What an instance holds, of the pool unless said otherwise."""
    arqs = tuple(
        arq_types.Arq(
            f'arq{bus}',
            arq_types.State.BOUND,
            'qat',
            0,
            {f'resources:{QAT}': '1'},
            rp_uuid or POOL,
            a_handle(bus),
        )
        for bus in buses
    )
    return host_binding.Binding(
        instance, role, 1, tuple(each.uuid for each in arqs), arqs
    )


def an_allocation(**resources):
    """Of a consumer; the node's own, and of providers by their names."""
    return {
        'project_id': 'p',
        'user_id': 'u',
        'consumer_generation': 1,
        'allocations': {
            'node': {'generation': 7, 'resources': {'VCPU': 2}},
            **{
                rp_uuid: {'generation': 7, 'resources': {QAT: amount}}
                for rp_uuid, amount in resources.items()
            },
        },
    }


def amounts(allocation):
    return {
        rp_uuid: found['resources'].get(QAT)
        for rp_uuid, found in allocation['allocations'].items()
        if rp_uuid != 'node'
    }


class TestNeeded(testtools.TestCase):
    def test_what_another_provider_serves(self):
        held = [a_binding('i1', 0, 1), a_binding('i2', 2)]
        self.assertEqual((), reshape.needed(POOLED, held))
        self.assertEqual(
            [
                reshape.ReshapeMove(
                    instance,
                    arq_types.Role.ACTIVE,
                    a_handle(bus).uuid,
                    QAT,
                    POOL,
                    OF_BUS[bus],
                )
                for instance, bus in (('i1', 0), ('i1', 1), ('i2', 2))
            ],
            list(reshape.needed(APART, held)),
        )

    def test_what_is_gone_or_another_class_by_now_stays(self):
        held = [a_binding('i1', 0)]
        self.assertEqual((), reshape.needed(layout_of(False, [1]), held))
        self.assertEqual(
            (),
            reshape.needed(
                layout_of(False, resource_class='CUSTOM_FAST'), held
            ),
        )

    def test_what_the_host_has_not_adopted_stays(self):
        self.assertEqual(
            (), reshape.needed(APART, [a_binding('i1', 0, role=None)])
        )


class TestMake(testtools.TestCase):
    def test_one_unit_goes_and_all_else_stays(self):
        allocations = {
            'i1': an_allocation(**{POOL: 1}),
            'stranger': an_allocation(**{POOL: 1}),
            'plain': an_allocation(),
        }
        before = copy.deepcopy(allocations)
        moved = reshape.make(APART, [a_binding('i1', 0)], allocations, {})
        self.assertEqual({OF_BUS[0]: 1}, amounts(allocations['i1']))
        self.assertEqual({'i1': {OF_BUS[0]: {QAT: 1}}}, moved.evidence)
        self.assertEqual(
            {a_handle(0).uuid: APART.places[a_handle(0).uuid]}, moved.targets
        )
        del allocations['i1']['allocations'][OF_BUS[0]]
        del before['i1']['allocations'][POOL]
        self.assertEqual(before, allocations)

    def test_a_migration_is_the_consumer_of_what_the_source_keeps(self):
        """A resize on the same host holds twice, and confirms one of them."""
        held = [
            a_binding('i1', 0),
            a_binding('i1', 1, role=arq_types.Role.OLD),
        ]
        for each in (held, held[::-1]):
            allocations = {
                consumer: an_allocation(**{POOL: 1})
                for consumer in ('i1', 'm1')
            }
            reshape.make(APART, each, allocations, {'m1': 'i1'})
            self.assertEqual({OF_BUS[0]: 1}, amounts(allocations['i1']))
            self.assertEqual({OF_BUS[1]: 1}, amounts(allocations['m1']))

    def test_a_live_migration_is_the_consumer_of_all_at_the_source(self):
        allocations = {
            'i1': an_allocation(elsewhere=1),
            'm1': an_allocation(**{POOL: 1}),
        }
        reshape.make(APART, [a_binding('i1', 0)], allocations, {'m1': 'i1'})
        self.assertEqual({'elsewhere': 1}, amounts(allocations['i1']))
        self.assertEqual({OF_BUS[0]: 1}, amounts(allocations['m1']))

    def test_what_is_gone_keeps_its_unit(self):
        """Also if the other unit was moved by one that died then."""
        held = [a_binding('i1', 0, 1)]
        layout = layout_of(False, [1])
        for before in ({POOL: 2}, {POOL: 1, OF_BUS[1]: 1}):
            allocations = {'i1': an_allocation(**before)}
            moved = reshape.make(layout, held, allocations, {})
            self.assertEqual(
                {POOL: 1, OF_BUS[1]: 1}, amounts(allocations['i1'])
            )
            self.assertEqual([a_handle(1).uuid], list(moved.targets))

    def test_what_is_not_allocated_is_not_invented(self):
        allocations = {'i1': an_allocation()}
        moved = reshape.make(APART, [a_binding('i1', 0)], allocations, {})
        self.assertEqual({}, amounts(allocations['i1']))
        self.assertTrue(moved.is_in({}))

    @given(st.lists(st.sampled_from(BUSES), unique=True), st.data())
    def test_nothing_is_lost_there_and_back(self, buses, data):
        """Instances hold of the pool; the lines change, and change again."""
        held = []
        while buses:
            size = data.draw(st.integers(1, len(buses)))
            held.append(a_binding(f'i{len(held)}', *buses[:size]))
            buses = buses[size:]
        first = {
            each.instance_uuid: an_allocation(**{POOL: len(each.arqs)})
            for each in held
        }
        allocations = copy.deepcopy(first)
        for layout, before in ((APART, first), (POOLED, None)):
            moved = reshape.make(layout, held, allocations, {})
            # Once more changes nothing, and neither has Placement refused.
            again = copy.deepcopy(allocations)
            self.assertEqual(moved, reshape.make(layout, held, again, {}))
            self.assertEqual(allocations, again)
            self.assertEqual(
                {each.instance_uuid: len(each.arqs) for each in held},
                {
                    consumer: sum(amounts(each).values())
                    for consumer, each in allocations.items()
                },
            )
            found = {
                consumer: {
                    rp_uuid: {QAT: amount}
                    for rp_uuid, amount in amounts(each).items()
                }
                for consumer, each in allocations.items()
            }
            self.assertTrue(moved.is_in(found))
            if before is not None and moved.moves:
                self.assertFalse(
                    moved.is_in(
                        {
                            consumer: {
                                rp_uuid: {QAT: amount}
                                for rp_uuid, amount in amounts(each).items()
                            }
                            for consumer, each in before.items()
                        }
                    )
                )
            held = [
                dataclasses.replace(
                    each,
                    arqs=tuple(
                        dataclasses.replace(
                            request,
                            device_rp_uuid=moved.targets[
                                request.handle.uuid
                            ].rp_uuid,
                        )
                        for request in each.arqs
                    ),
                )
                for each in held
            ]
            self.assertEqual((), reshape.needed(layout, held))
        self.assertEqual(
            {consumer: amounts(each) for consumer, each in first.items()},
            {
                consumer: amounts(each)
                for consumer, each in allocations.items()
            },
        )


class TestAllocated(testtools.TestCase):
    def test_of_our_providers_alone(self):
        allocations = {'i1': an_allocation(a=1, b=2), 'i2': an_allocation(a=3)}
        self.assertEqual(
            {provider_layout.Place('a', QAT): 4},
            reshape.allocated(allocations, ['a', 'c']),
        )
