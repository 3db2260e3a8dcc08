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

"""What was imported, and what the first report of its host makes of it."""

import dataclasses
import functools
from typing import Any

import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import client_arqs
from nova_accel.db import device
from nova_accel.db import device_profile
from nova_accel.db import host
from nova_accel.db import imports
from nova_accel.db.sql import schema
from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model import nova_server
from nova_accel.model import pci_address
from nova_accel.model.cyborg import mapping
from nova_accel.model.devices import hardware
from nova_accel.testing import database
from nova_accel.testing import reports
from rig import capacity
from rig import sample_devices
from rig.cyborg import made_up

load_tests = testscenarios.load_tests_apply_scenarios

_NODE = 'compute-1.example'

_SILENCE_S = 180


@dataclasses.dataclass(frozen=True)
class _WithVgpus(reports.SimulatedHost):
    """A host that also has a card of mediated devices on bus 0x5e."""

    mdevs: tuple[str, ...] = ()

    def devices(self) -> list[hardware.Device]:
        address = pci_address.PciAddress(0, 0x5E, 0, 0)
        card = sample_devices.vgpu_card(
            0x5E,
            [
                hardware.Deployable(
                    'nvidia-223',
                    'VGPU',
                    frozenset({'CUSTOM_NVIDIA_1EB8_T4_2B'}),
                    tuple(
                        attach_handle.AttachHandle(
                            uuid, address, mdev_type='nvidia-223'
                        )
                        for uuid in self.mdevs
                    ),
                )
            ],
            product_id='1eb8',
            product='Tesla T4',
        )
        return [*super().devices(), card]


class TestImports(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.cyborg = made_up.MadeUpCyborg()
        self.profile = self.cyborg.profile('fpga', base.FPGA)
        self.servers: dict[str, nova_server.Server] = {}
        self.host = reports.SimulatedHost(_NODE, regions=(2, 1))

    def fpga(self, bus: int, regions: int, **columns: Any) -> list[int]:
        """The handles of a card as the simulated host has it."""
        card = self.cyborg.device('compute-1', bus, type='FPGA', **columns)
        return [
            self.cyborg.deployable(
                card,
                'FPGA',
                made_up.pci_info(bus, region, device='01'),
            )[0]
            for region in range(regions)
        ]

    def vgpus(self, amount: int) -> list[int]:
        return self.cyborg.deployable(
            self.cyborg.device('compute-1', 0x5E),
            'VGPU',
            *(made_up.mdev_info(0x5E, number) for number in range(amount)),
            attach_type='MDEV',
        )

    def arq(self, handle: int) -> str:
        """The ARQ of a new server that has a handle."""
        instance_uuid = self.cyborg.uuid()
        self.servers[instance_uuid] = nova_server.Server('compute-1', 'active')
        return self.cyborg.arq(self.profile, handle, instance_uuid)

    def found(self) -> mapping.Import:
        return mapping.read(
            self.cyborg.snapshot(),
            mapping.NovaState([self.cyborg.node('compute-1')], self.servers),
        )

    def import_all(self) -> None:
        found = self.found()
        self.assertEqual((), found.refusals)
        imports.add_profiles(found.profiles)
        for each in found.hosts:
            self.assertTrue(imports.add_host(each))

    def row(self, arq_uuid: str) -> dict[str, Any]:
        return dict(client_arqs.get(arq_uuid))

    def test_an_arq_as_it_was_in_cyborg(self) -> None:
        _free, taken = self.fpga(0, 2)
        uuid = self.arq(taken)
        self.import_all()
        rows = self.cyborg.snapshot()
        row = self.row(uuid)
        self.assertEqual(
            {
                'device_profile_name': 'fpga',
                'group': base.FPGA,
                'hostname': _NODE,
                'instance_uuid': rows.arqs[0].instance_uuid,
                'project_id': made_up.PROJECT,
                'role': None,
                # No one reports for it.
                'state': 'Unknown',
                'device_rp_uuid': rows.deployables[1].rp_uuid,
                'attach_handle_uuid': rows.handles[1].uuid,
                'attach_handle_info': {
                    'domain': '0000',
                    'bus': '00',
                    'device': '01',
                    'function': '1',
                },
            },
            {
                name: row[name]
                for name in (
                    'device_profile_name',
                    'group',
                    'hostname',
                    'instance_uuid',
                    'project_id',
                    'role',
                    'state',
                    'device_rp_uuid',
                    'attach_handle_uuid',
                    'attach_handle_info',
                )
            },
        )
        [profile] = device_profile.get_all()
        self.assertEqual(rows.profiles[0].uuid, profile['uuid'])
        self.assertEqual({_NODE: False}, imports.get_hosts())

    def test_again_changes_nothing(self) -> None:
        self.arq(self.fpga(0, 2)[0])
        self.import_all()
        before = self.everything()
        found = self.found()
        self.assertEqual(0, imports.add_profiles(found.profiles))
        self.assertFalse(imports.add_host(found.hosts[0]))
        self.assertEqual(before, self.everything())

    def test_nothing_is_bound_there(self) -> None:
        self.fpga(0, 1)
        self.import_all()
        [uuid] = self.make_arqs(1)
        client_arqs.bind(
            {
                uuid: {
                    'hostname': _NODE,
                    'device_rp_uuid': self.cyborg.snapshot()
                    .deployables[0]
                    .rp_uuid
                    or '',
                    'instance_uuid': self.cyborg.uuid(),
                }
            }
        )
        self.assertEqual('BindFailed', self.row(uuid)['state'])

    def test_nova_deletes_a_server_there(self) -> None:
        uuid = self.arq(self.fpga(0, 1)[0])
        self.import_all()
        client_arqs.delete_by_instance(
            self.cyborg.snapshot().arqs[0].instance_uuid or ''
        )
        self.assertRaises(exceptions.NotFound, client_arqs.get, uuid)
        self.assertEqual({}, self.taken())

    def test_the_first_report_of_functions(self) -> None:
        _free, taken = self.fpga(0, 2)
        uuid = self.arq(taken)
        self.fpga(1, 1)
        self.import_all()
        self.host.report()
        row = self.row(uuid)
        self.assertEqual('Bound', row['state'])
        self.assertIsNone(row['role'])
        self.assert_period(uuid, 'PAC', '')
        self.assertEqual(self.host.rp_uuid(0, 1), row['device_rp_uuid'])
        self.assertEqual({_NODE: 2}, capacity.free_by_host())
        self.assertEqual(2, len(self.rows(schema.DEVICES)))
        self.assertEqual(3, len(self.rows(schema.ATTACH_HANDLES)))
        self.assertEqual({_NODE: True}, imports.get_hosts())
        [held] = imports.get_held(_NODE)
        self.assertEqual(
            (self.host.rp_uuid(0, 1), 'FPGA', True),
            (held['rp_uuid'], held['resource_class'], held['is_reported']),
        )

    def vgpu_host(self) -> tuple[_WithVgpus, str, str]:
        """Imported, with one of its two vGPUs taken.

        :returns: the host, the taken vGPU and its ARQ
        """
        taken, _free = self.vgpus(2)
        arq_uuid = self.arq(taken)
        self.import_all()
        handles = self.cyborg.snapshot().handles
        mdevs = (handles[0].uuid, self.cyborg.uuid())
        return (
            _WithVgpus(_NODE, regions=(1,), mdevs=mdevs),
            handles[0].uuid,
            arq_uuid,
        )

    def test_the_mediated_devices_that_nobody_has(self) -> None:
        """They are told until the host reports, and of no other host."""
        self.fpga(1, 1)
        simulated, _taken, _arq_uuid = self.vgpu_host()
        free = self.cyborg.snapshot().handles[-1].uuid
        self.assertEqual([free], imports.get_left_mdevs(_NODE))
        self.assertEqual([], imports.get_left_mdevs('elsewhere'))
        simulated.report()
        self.assertEqual([], imports.get_left_mdevs(_NODE))

    def assert_vgpu_is_reported(
        self, simulated: _WithVgpus, mdev_uuid: str, arq_uuid: str
    ) -> None:
        row = self.row(arq_uuid)
        rp_uuid = simulated.layout().rp_uuids['pci_0000_5e_00_0', 'nvidia-223']
        self.assertEqual(rp_uuid, row['device_rp_uuid'])
        self.assertEqual(mdev_uuid, row['attach_handle_uuid'])
        self.assertEqual(
            sorted(simulated.mdevs),
            sorted(
                handle['uuid']
                for handle in self.rows(schema.ATTACH_HANDLES)
                if handle['type'] == 'MDEV'
            ),
        )
        # The other vGPU, and the FPGA.
        self.assertEqual({_NODE: 2}, capacity.free_by_host())
        self.assertEqual(2, len(self.rows(schema.DEVICES)))

    def test_the_first_report_of_a_mediated_device(self) -> None:
        simulated, mdev_uuid, arq_uuid = self.vgpu_host()
        simulated.report()
        self.assert_vgpu_is_reported(simulated, mdev_uuid, arq_uuid)
        card = simulated.devices()[-1]
        self.assert_period(arq_uuid, card.product, 'nvidia-223')

    def assert_period(self, arq_uuid: str, product: str, shape: str) -> None:
        """It began with the import, and is called as the host calls it."""
        [period] = self.rows(schema.HELD_PERIODS)
        self.assertEqual(
            (arq_uuid, product, shape, None),
            tuple(
                period[name]
                for name in ('arq_uuid', 'product', 'shape', 'ended_at')
            ),
        )

    def test_a_mediated_device_in_a_part_of_the_report(self) -> None:
        simulated, mdev_uuid, arq_uuid = self.vgpu_host()
        fpga, card = simulated.reported()
        for number, (part, others) in enumerate(
            ((card, None), (fpga, [card['uuid']]))
        ):
            host.report(
                _NODE,
                simulated.node_uuid,
                'compute-1',
                [part],
                'parts',
                part=number,
                others=others,
            )
            self.assertEqual(
                mdev_uuid, self.row(arq_uuid)['attach_handle_uuid']
            )
        self.assert_vgpu_is_reported(simulated, mdev_uuid, arq_uuid)

    def test_a_disabled_device_stays_disabled(self) -> None:
        self.fpga(0, 2, status='maintaining')
        self.fpga(1, 1)
        self.import_all()
        orders = self.host.report()
        assert orders is not None
        self.assertEqual({self.host.device_uuid(0)}, orders.disabled)
        self.assertEqual({_NODE: 1}, capacity.free_by_host())
        self.assertEqual(2, len(self.rows(schema.DEVICES)))
        device.set_status(self.host.device_uuid(0), hardware.Status.ENABLED)
        self.host.report()
        self.assertEqual({_NODE: 3}, capacity.free_by_host())

    def test_functions_of_a_disabled_card_are_devices_of_their_own(
        self,
    ) -> None:
        self.cyborg.deployable(
            self.cyborg.device('compute-1', 0x77, status='maintaining'),
            'CUSTOM_QAT',
            made_up.pci_info(0, 0, domain='0001'),
            made_up.pci_info(0, 0, domain='0001', device='01'),
        )
        self.import_all()
        simulated = dataclasses.replace(self.host, regions=(), functions=3)
        orders = simulated.report()
        assert orders is not None
        self.assertEqual(
            {
                naming.derived_uuid(simulated.node_uuid, name)
                for name in ('pci_0001_00_00_0', 'pci_0001_00_01_0')
            },
            orders.disabled,
        )
        self.assertEqual({_NODE: 1}, capacity.free_by_host())

    def test_a_disabled_device_of_which_a_guest_has_a_part(self) -> None:
        """It goes when the guest gives that back, and not before."""
        handle, _other = self.fpga(0, 2, status='maintaining')
        uuid = self.arq(handle)
        self.import_all()
        dataclasses.replace(self.host, regions=(None, 1)).report()
        old = self.cyborg.snapshot().devices[0].uuid
        self.assertIn(old, {row['uuid'] for row in self.rows(schema.DEVICES)})
        self.host.report()
        self.assertNotIn(
            old, {row['uuid'] for row in self.rows(schema.DEVICES)}
        )
        self.assertEqual(
            self.host.rp_uuid(0, 0), self.row(uuid)['device_rp_uuid']
        )

    def test_what_the_host_does_not_report_is_told(self) -> None:
        self.arq(self.fpga(7, 1)[0])
        self.import_all()
        self.host.report()
        [held] = imports.get_held(_NODE)
        self.assertFalse(held['is_reported'])

    def test_something_belongs_to_another_host(self) -> None:
        self.fpga(0, 1)
        self.import_all()
        before = self.everything()
        [found] = self.found().hosts
        other = dataclasses.replace(found, node=self.cyborg.node('compute-2'))
        fault = self.assertRaises(exceptions.Conflict, imports.add_host, other)
        self.assertIn('compute-2.example', str(fault))
        self.assertEqual(before, self.everything())

    def test_removal_leaves_only_the_history(self) -> None:
        empty = self.everything()
        uuid = self.arq(self.fpga(0, 1)[0])
        self.import_all()
        found = self.found()
        self.assertEqual(0, imports.remove_profiles(found.profiles))
        fault = self.assertRaises(
            exceptions.Conflict, imports.remove_host, _NODE, [], _SILENCE_S
        )
        self.assertIn('changed meanwhile', str(fault))
        deleted = imports.remove_host(_NODE, [uuid], _SILENCE_S)
        self.assertEqual((1, 1), (deleted['hosts'], deleted['arqs']))
        self.assertEqual(1, imports.remove_profiles(found.profiles))
        left = self.everything()
        # A bill may have been made of it.
        [period] = left.pop('held_periods')
        self.assertIsNotNone(period['ended_at'])
        self.assertEqual(empty, {**left, 'held_periods': []})

    def test_a_host_that_reports_is_not_removed(self) -> None:
        self.fpga(0, 1)
        self.import_all()
        self.host.report()
        before = self.everything()
        self.assertRaises(
            exceptions.Conflict, imports.remove_host, _NODE, [], _SILENCE_S
        )
        self.assertEqual(before, self.everything())

    def test_a_profile_that_was_changed_is_not_removed(self) -> None:
        found = self.found()
        imports.add_profiles(found.profiles)
        device_profile.update(found.profiles[0]['uuid'], [base.QAT])
        self.assertEqual(0, imports.remove_profiles(found.profiles))

    def test_the_number_of_statements_is_constant(self) -> None:
        numbers = []
        for amount in (1, 6):
            self.cyborg = made_up.MadeUpCyborg()
            self.cyborg._number = 1000 * amount
            self.profile = self.cyborg.profile('fpga', base.FPGA)
            for bus in range(amount):
                self.arq(self.fpga(bus, 1)[0])
            [found] = self.found().hosts
            numbers.append(
                len(
                    self.statements(functools.partial(imports.add_host, found))
                )
            )
            held = [row['uuid'] for row in found.arqs]
            imports.remove_host(_NODE, held, _SILENCE_S)
        self.assertEqual(*numbers)
