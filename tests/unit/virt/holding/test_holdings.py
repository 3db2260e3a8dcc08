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

import pathlib

import fixtures
import testtools

from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import host_binding
from nova_accel.model import pci_address
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import holdings

ACTIVE, OLD, PORT = (
    arq_types.Role.ACTIVE,
    arq_types.Role.OLD,
    arq_types.Role.PORT,
)
Step = attach_journal.AttachStep


def an_arq(uuid):
    return arq_types.Arq(
        uuid,
        arq_types.State.BOUND,
        'fpga',
        0,
        {},
        'rp',
        attach_handle.AttachHandle(
            f'handle of {uuid}', pci_address.PciAddress(0, 0x81, 0, 0)
        ),
    )


A, B, C, D = (an_arq(uuid) for uuid in 'abcd')


class TestHoldings(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.journal = attach_journal.AttachJournal(
            pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        )
        self.held = holdings.Holdings(self.journal)
        for instance, role, step, arqs in (
            ('i1', ACTIVE, Step.HELD, (A,)),
            ('i1', OLD, Step.HELD, (B,)),
            ('i2', ACTIVE, Step.ACQUIRING, (C,)),
            ('i3', PORT, Step.RELEASING, (D,)),
        ):
            self.journal.write(
                attach_journal.AttachEntry(instance, role, 7, step, arqs)
            )

    def test_only_what_is_complete_is_held(self):
        for instance, role, arqs in (
            ('i1', ACTIVE, (A,)),
            ('i1', OLD, (B,)),
            ('i1', PORT, ()),
            ('i2', ACTIVE, ()),
            ('i3', PORT, ()),
            ('i4', ACTIVE, ()),
        ):
            self.assertIs(bool(arqs), self.held.has(instance, role))
            self.assertEqual(arqs, self.held.arqs_of(instance, role))

    def test_what_others_have(self):
        for instance, role, expected in (
            ('i1', ACTIVE, {'handle of b': 'i1', 'handle of d': 'i3'}),
            ('i1', OLD, {'handle of a': 'i1', 'handle of d': 'i3'}),
            ('i3', PORT, {'handle of a': 'i1', 'handle of b': 'i1'}),
        ):
            wanted = attach_journal.AttachEntry(
                instance, role, 8, Step.ACQUIRING, (A, B, D)
            )
            self.assertEqual(expected, self.held.by_others(wanted))

    def test_the_role_is_active_unless_it_is_said(self):
        self.assertTrue(self.held.has('i1'))
        self.assertEqual((A,), self.held.arqs_of('i1'))

    def test_complete_bindings(self):
        self.assertCountEqual(
            [
                host_binding.Binding('i1', ACTIVE, 7, ('a',), (A,)),
                host_binding.Binding('i1', OLD, 7, ('b',), (B,)),
            ],
            self.held.bindings(),
        )

    def test_all_that_is_journaled(self):
        self.assertEqual(
            {('i1', ACTIVE), ('i1', OLD), ('i2', ACTIVE), ('i3', PORT)},
            self.held.journaled(),
        )

    def test_what_is_not_given_back_yet(self):
        self.assertCountEqual([A, B, C, D], self.held.arqs())
        self.assertEqual([B], self.held.arqs(OLD))

    def test_what_guests_may_have_and_what_they_no_longer_have(self):
        self.assertEqual(
            {request.handle.uuid for request in (A, B, C)}, self.held.handles()
        )
        self.assertEqual({D.handle.uuid}, self.held.releasing())

    def test_who_has_or_just_had_a_handle(self):
        self.assertEqual(
            {
                A.handle.uuid: 'i1',
                B.handle.uuid: 'i1',
                C.handle.uuid: 'i2',
                D.handle.uuid: 'i3',
            },
            self.held.holders(),
        )
