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

import testtools

from nova_accel import exceptions
from nova_accel.model.fleet import room_guest
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import free_units
from unit.model.cards import slices

_LARGEST = 4


def arq(number: int = 0, **fields: Any) -> room_guest.HeldArq:
    """An ARQ with a function of a deployable, which has a number."""
    return room_guest.HeldArq(
        **{
            'instance_uuid': 'server',
            'hostname': 'host',
            'role': 'active',
            'group_id': 0,
            'group': {'resources:CUSTOM_QAT': '1'},
            'rp_uuid': 'pool',
            'deployable_uuid': f'deployable-{number}',
            'card_slice': None,
            'is_usable': True,
            **fields,
        }
    )


def parts(groups: room_guest.Groups) -> room_guest.Groups:
    """The groups in parts of two units, if no group is too large."""
    found = []
    for group in groups:
        for name, amount in group.resources.items():
            if amount > _LARGEST:
                raise exceptions.NotFound('no pool is as large')
            found += [
                device_profile.Group({name: min(2, amount - before)})
                for before in range(0, amount, 2)
            ]
    return found


def gather(
    *held: room_guest.HeldArq, **troubles: int
) -> list[room_guest.Guest]:
    return room_guest.gather(
        held, troubles or {'server': 0}, lambda groups: groups
    )


def functions(amount: int) -> device_profile.Group:
    return device_profile.Group({'CUSTOM_QAT': amount})


class TestGather(testtools.TestCase):
    def test_no_server(self) -> None:
        self.assertEqual([], gather())

    def test_a_server(self) -> None:
        group = {'resources:CUSTOM_QAT': '2'}
        [guest] = gather(arq(1, group=group), arq(2, group=group), server=3)
        self.assertEqual(
            ('server', 'host', 3), (guest.uuid, guest.hostname, guest.trouble)
        )
        self.assertEqual([functions(2)], [*guest.groups])
        self.assertEqual(
            {
                'pool': {
                    'deployable-1': free_units.HeldUnits(1),
                    'deployable-2': free_units.HeldUnits(1),
                }
            },
            guest.held,
        )

    def test_two_units_of_one_deployable(self) -> None:
        group = {'resources:CUSTOM_QAT': '2'}
        [guest] = gather(arq(group=group), arq(group=group))
        self.assertEqual([functions(2)], [*guest.groups])
        self.assertEqual(
            {'pool': {'deployable-0': free_units.HeldUnits(2)}}, guest.held
        )

    def test_units_of_two_providers(self) -> None:
        group = {'resources:CUSTOM_QAT': '2'}
        [guest] = gather(
            arq(1, group=group), arq(2, group=group, rp_uuid='other')
        )
        self.assertEqual(
            {
                'pool': {'deployable-1': free_units.HeldUnits(1)},
                'other': {'deployable-2': free_units.HeldUnits(1)},
            },
            guest.held,
        )

    def test_two_groups_of_a_profile(self) -> None:
        [guest] = gather(arq(1), arq(2, group_id=1))
        self.assertEqual([functions(1)] * 2, [*guest.groups])

    def test_a_server_with_a_port_of_a_profile(self) -> None:
        """Nova does not move it."""
        self.assertEqual([], gather(arq(1), arq(2, role='port')))

    def test_several_servers(self) -> None:
        """Their ARQs need not follow each other."""
        guests = gather(
            arq(1),
            arq(2, instance_uuid='other', hostname='host2'),
            arq(3, group_id=1),
            server=1,
            other=2,
        )
        self.assertEqual(
            {('server', 'host', 1, 2), ('other', 'host2', 2, 1)},
            {
                (
                    guest.uuid,
                    guest.hostname,
                    guest.trouble,
                    len(guest.held['pool']),
                )
                for guest in guests
            },
        )

    def test_a_server_that_stays(self) -> None:
        self.assertEqual([], gather(arq(), other=0))
        [guest] = gather(arq(), arq(instance_uuid='stays'), server=0)
        self.assertEqual('server', guest.uuid)

    def test_a_server_that_nova_is_moving(self) -> None:
        for other in (
            arq(1, role='old'),
            arq(1, role='incoming'),
            # Nova has bound it itself, and its host does not know it yet.
            arq(1, role=None),
            arq(1, hostname='other'),
        ):
            self.assertEqual([], gather(arq(), other))
            self.assertEqual([], gather(other, arq()))

    def test_units_that_no_other_server_could_have(self) -> None:
        group = {'resources:CUSTOM_QAT': '3'}
        [guest] = gather(
            arq(1, group=group),
            arq(2, group=group, is_usable=False),
            arq(3, group=group, rp_uuid='disabled', is_usable=False),
        )
        self.assertEqual(
            {'pool': {'deployable-1': free_units.HeldUnits(1)}}, guest.held
        )
        # It needs as many elsewhere.
        self.assertEqual([functions(3)], [*guest.groups])

    def test_slices_of_a_card(self) -> None:
        first, second = (
            slices.eighths('mig:1g.10gb', start, 1) for start in (0, 3)
        )
        [guest] = gather(
            arq(1, card_slice=first),
            arq(1, card_slice=second, group_id=1),
            arq(2, card_slice=slices.WHOLE, group_id=2, rp_uuid='card'),
        )
        self.assertEqual(
            {
                'pool': {
                    'deployable-1': free_units.HeldUnits(2, (first, second))
                },
                'card': {
                    'deployable-2': free_units.HeldUnits(1, (slices.WHOLE,))
                },
            },
            guest.held,
        )

    def test_parts_that_pools_can_serve(self) -> None:
        [guest] = room_guest.gather(
            [arq(group={'resources:CUSTOM_QAT': '3'})], {'server': 0}, parts
        )
        self.assertEqual([functions(2), functions(1)], [*guest.groups])

    def test_a_group_that_is_larger_than_all_pools(self) -> None:
        """Only that server is left out."""
        [guest] = room_guest.gather(
            [
                arq(group={'resources:CUSTOM_QAT': str(_LARGEST + 1)}),
                arq(instance_uuid='other'),
            ],
            {'server': 0, 'other': 0},
            parts,
        )
        self.assertEqual('other', guest.uuid)

    def test_a_group_that_is_no_valid_one_any_more(self) -> None:
        [guest] = gather(
            arq(group={'resources:CUSTOM_QAT': '1', 'accel:link': 'glue'}),
            arq(instance_uuid='other'),
            server=0,
            other=0,
        )
        self.assertEqual('other', guest.uuid)


class TestGuest(testtools.TestCase):
    def guest(
        self, *groups: device_profile.Group, trouble: int = 0
    ) -> room_guest.Guest:
        return room_guest.Guest('server', 'host', groups, {}, trouble)

    def test_fewer_moves_are_always_cheaper(self) -> None:
        most = self.guest(trouble=room_guest.MAX_TROUBLE)
        self.assertLess(most.price, 2 * self.guest().price)
        self.assertLess(100 * most.price, 101 * self.guest().price)

    def test_of_as_many_moves_those_with_less_trouble_are_cheaper(
        self,
    ) -> None:
        self.assertLess(
            self.guest(trouble=1).price, self.guest(trouble=2).price
        )

    def test_amounts(self) -> None:
        self.assertEqual(
            {'CUSTOM_QAT': 4, 'PGPU': 2},
            self.guest(
                functions(1),
                device_profile.Group({'PGPU': 2}),
                functions(3),
            ).amounts,
        )


class TestAmountsOf(testtools.TestCase):
    def test_of_all_groups(self) -> None:
        self.assertEqual({}, room_guest.amounts_of([]))
        self.assertEqual(
            {'CUSTOM_QAT': 3, 'FPGA': 1},
            room_guest.amounts_of(
                [
                    functions(2),
                    device_profile.Group({'CUSTOM_QAT': 1, 'FPGA': 1}),
                ]
            ),
        )
