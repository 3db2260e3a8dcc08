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

from nova_accel.host import all_guests
from nova_accel.host import pci_function
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import host_binding
from nova_accel.model import pci_address
from nova_accel.model.providers import host_view
from nova_accel.virt.publishing import units_in_use

PARENT = pci_address.PciAddress(0, 0x81, 0, 0)
FUNCTION = '0000:82:00.1'


def an_arq(handle):
    return arq_types.Arq(
        'arq',
        arq_types.State.BOUND,
        'profile',
        0,
        {'resources:VGPU': '1'},
        'provider',
        handle,
    )


def a_function():
    return an_arq(
        attach_handle.AttachHandle(
            'handle', pci_address.PciAddress.parse(FUNCTION)
        )
    )


def an_mdev(uuid):
    return an_arq(attach_handle.AttachHandle(uuid, PARENT, 'nvidia-11'))


class TestUnitsInUse(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.journaled = []
        self.guests = []
        self.current = host_view.CurrentState(host_view.View())
        self.current.unjournaled = ()
        self.mdevs = [
            pci_function.Mdev(uuid, 'nvidia-11', PARENT)
            for uuid in ('m1', 'm2')
        ]

    def look(self):
        return units_in_use.UnitsInUse(
            types.SimpleNamespace(arqs=lambda: list(self.journaled)),
            types.SimpleNamespace(look=self.look_at_guests),
            self.current,
        ).look(self.mdevs)

    def look_at_guests(self):
        return tuple(self.guests)

    def add_guest(self, *devices, is_novas=True, is_running=True):
        self.guests.append(
            all_guests.Guest('guest', is_novas, is_running, frozenset(devices))
        )

    def list(self, *arqs, role=None):
        self.current.unjournaled = (
            host_binding.Binding(
                'guest',
                role,
                None,
                tuple(arq.uuid for arq in arqs),
                tuple(arqs),
            ),
        )

    def test_the_serial_numbers_of_what_is_held(self):
        self.journaled = [a_function()]
        self.assertEqual({}, self.look().serials)
        handle = dataclasses.replace(
            self.journaled[0].handle,
            identity=attach_handle.identity_of('144d:a824', '010802', 'S1'),
        )
        self.journaled = [an_arq(handle)]
        self.assertEqual({handle.address: 'S1'}, self.look().serials)

    def test_nothing_is_in_use(self):
        self.assertEqual(units_in_use.Found(), self.look())

    def test_what_a_stranger_has(self):
        """Whoever starts it gives it what its definition has."""
        self.add_guest(FUNCTION, 'm1', is_novas=False, is_running=False)
        for listed in ((), None):
            self.current.unjournaled = listed
            found = self.look()
            self.assertEqual((), found.mdevs)
            self.assertEqual({FUNCTION, 'm1'}, found.refused.keys())
            self.assertEqual(
                f"guest guest has {FUNCTION}, and is none of Nova's",
                found.refused[FUNCTION],
            )

    def test_what_the_journal_has(self):
        self.add_guest(FUNCTION, 'm1')
        self.journaled = [a_function(), an_mdev('m1'), an_mdev('not made')]
        self.assertEqual(
            units_in_use.Found(
                {},
                (
                    self.mdevs[0],
                    pci_function.Mdev('not made', 'nvidia-11', PARENT),
                ),
                frozenset({'handle', 'm1', 'not made'}),
            ),
            self.look(),
        )

    def test_what_the_api_lists(self):
        """Adopted or not; the journal may be lost."""
        self.add_guest(FUNCTION, 'm1')
        for role in (None, arq_types.Role.ACTIVE):
            self.list(a_function(), an_mdev('m1'), role=role)
            self.assertEqual(
                units_in_use.Found(
                    {}, (self.mdevs[0],), frozenset({'handle', 'm1'})
                ),
                self.look(),
            )

    def test_what_nobody_knows_of(self):
        self.add_guest(FUNCTION, 'm1', 'm2')
        self.list(an_mdev('m2'))
        found = self.look()
        self.assertEqual((self.mdevs[1],), found.mdevs)
        self.assertEqual({FUNCTION, 'm1'}, found.refused.keys())
        for text in ('server guest', FUNCTION, 'neither the journal nor'):
            self.assertIn(text, found.refused[FUNCTION])

    def test_the_definition_of_a_guest_that_does_not_run(self):
        self.add_guest(FUNCTION, 'm1', is_running=False)
        self.assertEqual(units_in_use.Found(), self.look())

    def test_before_the_api_has_listed_anything(self):
        """Guests of Nova's are taken at their word."""
        self.current.unjournaled = None
        self.add_guest(FUNCTION, 'm1', 'of another kind')
        self.assertEqual(
            units_in_use.Found({}, (self.mdevs[0],), frozenset({'m1'})),
            self.look(),
        )

    def test_a_guest_that_goes_meanwhile(self):
        """The journal loses its devices after that."""
        self.add_guest(FUNCTION)
        self.journaled = [a_function()]
        look = self.look_at_guests

        def look_and_go():
            self.journaled = []
            return look()

        self.look_at_guests = look_and_go
        self.assertEqual({}, self.look().refused)

    def test_a_guest_that_comes_meanwhile(self):
        def look_and_come():
            self.journaled = [a_function()]
            self.add_guest(FUNCTION)
            return tuple(self.guests)

        self.look_at_guests = look_and_come
        self.assertEqual({}, self.look().refused)
