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

from nova_accel.model.fleet import fleet_sources
from nova_accel.model.fleet import moved_units
from nova_accel.model.units import unit_state

_FREE = unit_state.Condition()


def arq(number, server, hostname='a', resource_class='PGPU'):
    return fleet_sources.FleetArq(
        f'arq-{number}', 'Bound', 'active', hostname, server, resource_class
    )


def unit(name, held=None, condition=_FREE, resource_class='PGPU'):
    return fleet_sources.FleetUnit(
        name,
        name.partition('-')[0],
        'part',
        resource_class,
        'provider',
        'address',
        condition,
        held,
    )


def move(server, **devices):
    return {
        'server_uuid': server,
        'from': 'a',
        'to': 'b',
        'devices': [
            {'device_uuid': name, 'units': units}
            for name, units in devices.items()
        ],
    }


class TestAfter(testtools.TestCase):
    def after(self, units, *moves):
        """Unit -> the host and the server of its ARQ."""
        found = moved_units.after(fleet_sources.Ours((), (), units, ()), moves)
        return {
            each.uuid: (each.arq.hostname, each.arq.instance_uuid)
            for each in found.units
            if each.arq is not None
        }

    def test_a_move(self):
        self.assertEqual(
            {'d2-0': ('b', 'one'), 'd3-0': ('b', 'one'), 'd1-2': ('a', 'two')},
            self.after(
                [
                    unit('d1-0', arq(0, 'one')),
                    unit('d1-1', arq(1, 'one')),
                    unit('d1-2', arq(2, 'two')),
                    unit('d2-0'),
                    unit('d2-1'),
                    unit('d3-0'),
                ],
                move('one', d2=1, d3=1),
            ),
        )

    def test_units_that_an_earlier_move_frees(self):
        self.assertEqual(
            {'d2-0': ('b', 'one'), 'd1-0': ('b', 'two')},
            self.after(
                [
                    unit('d1-0', arq(0, 'one')),
                    unit('d3-0', arq(1, 'two')),
                    unit('d2-0'),
                ],
                move('one', d2=1),
                move('two', d1=1),
            ),
        )

    def test_only_units_that_a_server_can_have(self):
        self.assertEqual(
            {'d2-2': ('b', 'one')},
            self.after(
                [
                    unit('d1-0', arq(0, 'one')),
                    unit('d2-0', resource_class='FPGA'),
                    unit('d2-1', condition=unit_state.Condition(fault='ECC')),
                    unit('d2-2'),
                ],
                move('one', d2=1),
            ),
        )

    def test_what_it_has_elsewhere_stays(self):
        held = arq(0, 'one', hostname='c')
        self.assertEqual(
            {'d1-0': ('c', 'one')},
            self.after([unit('d1-0', held), unit('d2-0')], move('one', d2=1)),
        )
