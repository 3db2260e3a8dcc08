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

from oslo_utils import uuidutils
import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel import conf
from nova_accel import exceptions
from nova_accel.db import client_arqs
from nova_accel.db import host_arqs
from nova_accel.db.rows import arq_rows
from nova_accel.db.sql import schema
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

CONF = conf.CONF

_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES


class TestChoice(base.DatabaseTestCase):
    """A binding takes those units of a pool that the policy names."""

    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(), functions=4)
        self.host.report()
        self.make_profile(base.QAT, name='one')
        self.make_profile({'resources:CUSTOM_QAT': '2'}, name='two')
        with self.database.engine.begin() as connection:
            #: (Device uuid, deployable uuid, handle uuid) of each function.
            self.functions = connection.execute(
                sa.select(
                    _DEVICES.c.uuid, _DEPLOYABLES.c.uuid, _HANDLES.c.uuid
                )
                .select_from(_HANDLES.join(_DEPLOYABLES).join(_DEVICES))
                .order_by(_DEVICES.c.name)
            ).all()

    def acquired(
        self, amount: int = 1, profile: str = 'one', **wanted: object
    ) -> set[int]:
        """The numbers of the functions that another server gets."""
        return self.numbers(
            host_arqs.acquire(
                self.request(
                    self.host.allocated_functions(amount),
                    device_profile_name=profile,
                    **wanted,
                )
            )
        )

    def numbers(self, arqs: list[arq_rows.ArqRow]) -> set[int]:
        handles = [function[2] for function in self.functions]
        return {handles.index(arq['attach_handle_uuid']) for arq in arqs}

    def change(self, table: sa.Table, number: int, **values: object) -> None:
        """Change a row of a function."""
        column = (_DEVICES, _DEPLOYABLES, _HANDLES).index(table)
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.update(table)
                .where(table.c.uuid == self.functions[number][column])
                .values(**values)
            )

    def put_on_nodes(self, *nodes: int | None) -> None:
        for number, node in enumerate(nodes):
            self.change(_DEVICES, number, numa_node=node)

    def test_the_region_that_holds_the_bitstream(self) -> None:
        wanted, other = uuidutils.generate_uuid(), uuidutils.generate_uuid()
        self.make_profile(
            {**base.QAT, 'accel:bitstream_id': wanted}, name='programmed'
        )
        for number, held in enumerate((other, None, wanted, other)):
            self.change(_DEPLOYABLES, number, bitstream_id=held)
        self.assertEqual({2}, self.acquired(profile='programmed'))
        self.assertEqual({1}, self.acquired(profile='programmed'))
        self.assertLess(self.acquired(profile='programmed'), {0, 3})

    def test_the_least_wanted_bitstream_is_lost(self) -> None:
        bitstreams = [uuidutils.generate_uuid() for _number in range(4)]
        with self.database.engine.begin() as connection:
            for number, bitstream in enumerate(bitstreams[:3]):
                connection.execute(
                    sa.insert(schema.BITSTREAM_DEMAND).values(
                        bitstream_id=bitstream,
                        weight=(3.0, 1.0, 2.0)[number],
                        counted_at=schema.now(),
                    )
                )
        self.make_profile(
            {**base.QAT, 'accel:bitstream_id': bitstreams[3]},
            name='programmed',
        )
        for number in range(4):
            self.change(
                _DEPLOYABLES, number, bitstream_id=bitstreams[number % 3]
            )
        # Two regions share the first one's demand.
        for number in (1, 0, 2):
            lost = self.acquired(profile='programmed')
            self.assertEqual({number}, {each % 3 for each in lost})

    def test_sets_stay_whole(self) -> None:
        self.put_on_nodes(0, 0, 0, 1)
        self.assertEqual({3}, self.acquired())
        two = self.acquired(2, 'two')
        self.assertLess(two, {0, 1, 2})
        self.assertEqual({0, 1, 2} - two, self.acquired())

    def test_near_the_cells_of_the_guest(self) -> None:
        self.put_on_nodes(0, 0, 0, 1)
        for affinity in ('required', 'preferred'):
            self.make_profile(
                {**base.QAT, 'accel:numa_affinity': affinity}, name=affinity
            )
        near = frozenset({1, 2})
        self.assertEqual({3}, self.acquired(1, 'required', numa_nodes=near))
        fault = self.assertRaises(
            exceptions.AcceleratorsBusy,
            self.acquired,
            1,
            'required',
            numa_nodes=near,
        )
        self.assertIn('on NUMA node 1 and NUMA node 2, where', str(fault))
        for profile in ('preferred', 'one'):
            self.assertLess(
                self.acquired(1, profile, numa_nodes=near), {0, 1, 2}
            )

    def test_spread(self) -> None:
        CONF.set_override(
            'unit_policies', {'CUSTOM_QAT': 'spread'}, 'nova_accel'
        )
        self.addCleanup(CONF.clear_override, 'unit_policies', 'nova_accel')
        self.put_on_nodes(0, 0, 0, 1)
        self.assertLess(self.acquired(), {0, 1, 2})
        self.assertLess(self.acquired(2, 'two'), {0, 1, 2})
        self.assertEqual({3}, self.acquired())

    def test_no_fresh_card_is_carved(self) -> None:
        for number in range(4):
            self.change(_DEVICES, number, type='VGPU')
            card = self.functions[number // 2 * 2][1]
            self.change(_HANDLES, number, deployable_uuid=card)
        first = self.acquired()
        self.assertIn(first | self.acquired(), ({0, 1}, {2, 3}))

    def test_what_cannot_be_used_is_left_out(self) -> None:
        self.put_on_nodes(0, 0, 1, 1)
        self.change(_DEVICES, 0, fault='hot')
        self.change(_HANDLES, 2, unclean_since=1)
        self.assertEqual({1, 3}, self.acquired(2, 'two'))

    def test_why(self) -> None:
        request = self.request(
            self.host.allocated_functions(2), device_profile_name='two'
        )
        self.assertEqual(
            {'a free set of 4 was broken; others fitted: 2'},
            {arq['chosen_because'] for arq in host_arqs.acquire(request)},
        )

    def test_clients_get_the_same(self) -> None:
        self.put_on_nodes(0, 0, 0, 1)
        uuids = [
            arq['uuid'] for arq in client_arqs.create('one', base.PROJECT)
        ]
        place = self.place(self.host.allocated_functions(1).rp_uuid)
        found = client_arqs.bind(dict.fromkeys(uuids, place))
        self.assertEqual({3}, self.numbers(found))
        self.assertEqual(
            ['a free set of 4 was broken; others fitted: 3'],
            [arq['chosen_because'] for arq in found],
        )
        client_arqs.unbind(uuids)
        self.assertIsNone(client_arqs.get(uuids[0])['chosen_because'])
