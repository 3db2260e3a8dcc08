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

import dataclasses
import types

import testtools

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import host_binding
from nova_accel.model import pci_address
from nova_accel.model.devices import hardware
from nova_accel.model.links import fabric
from nova_accel.model.providers import host_view
from nova_accel.virt.fabric import fabric_need
from unit.virt.fabric import board

_Role = arq_types.Role


def a_card(bus, module, *functions):
    """A card that gives guests these functions."""
    address = pci_address.PciAddress(0, bus, 0, 0)
    return hardware.Device(
        f'card{bus}',
        'GPU',
        '10de',
        '2335',
        'NVIDIA',
        'H200',
        address,
        'pci',
        (
            hardware.Deployable(
                'gpu',
                'PGPU',
                frozenset(),
                tuple(
                    attach_handle.AttachHandle(
                        f'handle{bus}.{function}',
                        dataclasses.replace(address, function=function),
                    )
                    for function in functions
                ),
            ),
        ),
        module_id=module,
    )


class NeedTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.held = {}
        self.running = set()
        self.view = host_view.View(
            devices=(
                a_card(1, 3, 0),
                a_card(2, 4, 4),
                a_card(3, 5, 4, 5),
                a_card(4, None, 0),
            )
        )
        self.need = fabric_need.Need(
            types.SimpleNamespace(view=self.view), self, self
        )

    def arqs_of(self, instance_uuid, role):
        return self.held.get((instance_uuid, role), ())

    def running(self):
        return self.running


class TestGpus(NeedTestCase):
    def gpus(self, *names):
        handles = self.view.handles
        return self.need.gpus(
            dataclasses.replace(
                board.an_arq(1), handle=handles.get(name, self.unknown(name))
            )
            for name in names
        )

    def unknown(self, name):
        return attach_handle.AttachHandle(
            name, pci_address.PciAddress(0, 9, 0, 0)
        )

    def test_whole_gpus_and_functions(self):
        self.assertEqual(
            fabric_need.Gpus(
                frozenset({3, 4}),
                frozenset({'handle1.0', 'handle2.4'}),
                {4: pci_address.PciAddress(0, 2, 0, 4)},
            ),
            self.gpus('handle1.0', 'handle2.4'),
        )

    def test_what_needs_no_partition(self):
        for names in (
            (),
            # It is shared by two guests.
            ('handle3.4',),
            # It is on no board.
            ('handle4.0',),
            ('of a device that is gone',),
        ):
            self.assertEqual(frozenset(), self.gpus(*names).handles)


class TestOwners(NeedTestCase):
    """Whose a partition is whose entry in the journal is damaged."""

    def setUp(self):
        super().setUp()
        self.bindings_ = []
        self.damaged_ = frozenset()
        self.in_guests = {}

    def bindings(self):
        return self.bindings_

    def damaged(self):
        return self.damaged_

    def devices(self):
        return self.in_guests

    def hold(self, instance, role, *names):
        arqs = tuple(
            dataclasses.replace(
                board.an_arq(1), handle=self.view.handles[name]
            )
            for name in names
        )
        self.bindings_.append(
            host_binding.Binding(instance, role, 1, (), arqs)
        )

    def test_who_holds_a_gpu(self):
        self.hold(board.I1, arq_types.Role.ACTIVE, 'handle1.0', 'handle2.4')
        self.hold(board.I2, arq_types.Role.OLD, 'handle1.0')
        self.assertEqual({}, self.need.owners({9}))
        (uuid,) = owners = self.need.owners({3, 9})
        self.assertEqual(board.I1, uuid)
        self.assertEqual({3, 4}, owners[uuid].module_ids)

    def test_who_may_have_one(self):
        self.assertFalse(self.need.is_unsure({3}))
        self.in_guests = {board.I1: frozenset({'0000:01:00.0'})}
        self.assertTrue(self.need.is_unsure({3}))
        self.assertFalse(self.need.is_unsure({4}))
        self.damaged_ = frozenset({board.I2})
        self.assertTrue(self.need.is_unsure({4}))


class TestHas(NeedTestCase):
    entry = fabric.PartitionEntry(
        3,
        frozenset({1}),
        'i',
        fabric.PartitionStep.ACTIVE,
        'boot',
        frozenset({board.handle_uuid(1)}),
    )

    def setUp(self):
        super().setUp()
        self.guests = set()
        self.need = fabric_need.Need(
            None, self, types.SimpleNamespace(running=self.list_running)
        )

    def list_running(self):
        if self.guests is None:
            raise exceptions.DeviceError('libvirt is away')
        return self.guests

    def hold(self, role, module=1):
        self.held = {('i', role): (board.an_arq(module),)}

    def test_a_guest_that_runs(self):
        self.hold(_Role.ACTIVE)
        self.assertFalse(self.need.has(self.entry, is_busy=False))
        self.assertTrue(self.need.has(self.entry, is_busy=True))
        self.guests.add('i')
        self.assertTrue(self.need.has(self.entry, is_busy=False))

    def test_a_guest_with_other_gpus(self):
        self.guests.add('i')
        for role, module in ((_Role.ACTIVE, 2), (_Role.OLD, 1)):
            self.hold(role, module)
            self.assertFalse(self.need.has(self.entry, is_busy=True))

    def test_a_guest_that_will_arrive(self):
        self.hold(_Role.INCOMING)
        self.assertTrue(self.need.has(self.entry, is_busy=False))

    def test_libvirt_is_asked_only_for_what_is_held(self):
        self.guests = None
        self.assertFalse(self.need.has(self.entry, is_busy=False))
        self.hold(_Role.ACTIVE)
        self.assertRaises(
            exceptions.DeviceError, self.need.has, self.entry, False
        )


class TestEntry(testtools.TestCase):
    def test_the_entry_of_their_partition(self):
        one, three = (
            pci_address.PciAddress(0, module, 0, 4) for module in (1, 3)
        )
        partition = fabric.Partition(
            7, frozenset({1, 3}), is_active=False, order=(3, 1)
        )
        for functions, in_order in (
            ({}, ()),
            ({1: one, 3: three}, (three, one)),
        ):
            gpus = fabric_need.Gpus(
                frozenset({1, 3}), frozenset({'h1', 'h3'}), functions
            )
            self.assertEqual(
                fabric.PartitionEntry(
                    7,
                    frozenset({1, 3}),
                    board.I1,
                    fabric.PartitionStep.ACTIVE,
                    'boot',
                    frozenset({'h1', 'h3'}),
                    in_order,
                ),
                gpus.entry(
                    partition, board.I1, fabric.PartitionStep.ACTIVE, 'boot'
                ),
            )
