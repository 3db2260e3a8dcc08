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

import testtools

from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import finding
from nova_accel.model import host_binding
from nova_accel.model import nova_server
from nova_accel.model import pci_address
from nova_accel.model.providers import provider_layout
from nova_accel.model.providers import take_over_choice

HERE = 'service'
SERVER = '0d0a4b1e-52f5-5f8e-9d3c-000000000001'


def an_arq(number, mdev_type=None):
    return arq_types.Arq(
        uuid=f'arq-{number}',
        state=arq_types.State.BOUND,
        device_profile_name='profile',
        device_profile_group_id=number,
        group={'resources:FPGA': '1'},
        device_rp_uuid=f'provider-{number}',
        handle=attach_handle.AttachHandle(
            f'handle-{number}',
            pci_address.PciAddress(0, 0x81, 0, number),
            mdev_type,
        ),
    )


class TestChoose(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.arqs = an_arq(0), an_arq(1, 'nvidia-11')
        self.binding = host_binding.Binding(
            SERVER, None, None, ('arq-0', 'arq-1'), self.arqs
        )
        self.server = nova_server.Server(HERE, 'active')
        self.guest = {'0000:81:00.0', 'handle-1', 'another'}
        self.places = {
            arq.handle.uuid: provider_layout.Place(arq.device_rp_uuid, 'FPGA')
            for arq in self.arqs
        }

    def choose(self):
        return take_over_choice.choose(
            self.binding, self.server, HERE, self.guest, self.places
        )

    def test_all_that_the_guest_has(self):
        self.assertEqual(take_over_choice.ArqChoice(self.arqs), self.choose())

    def test_a_guest_without_one_of_them(self):
        self.guest.remove('handle-1')
        found = self.choose()
        self.assertEqual(self.arqs[:1], found.arqs)
        (wrong,) = found.findings
        self.assertEqual(
            (finding.Kind.NOT_TAKEN_OVER, SERVER, 'handle-1', False),
            (
                wrong.kind,
                wrong.instance_uuid,
                wrong.device,
                wrong.is_repaired,
            ),
        )
        self.assertIn('the guest does not have handle-1', wrong.words)
        self.assertIn('arq-1', wrong.words)
        self.assertIn(f'reboot --hard {SERVER}', wrong.remedy)

    def test_a_unit_of_several_functions(self):
        """The guest has to have all of them."""
        (first, *_rest) = self.arqs
        second = pci_address.PciAddress(0, 0x81, 0, 7)
        unit = dataclasses.replace(
            first,
            handle=dataclasses.replace(
                first.handle, further_functions=(second,)
            ),
        )
        self.binding = dataclasses.replace(
            self.binding, arq_uuids=(unit.uuid,), arqs=(unit,)
        )
        self.assertEqual((), self.choose().arqs)
        self.guest.add(str(second))
        self.assertEqual((unit,), self.choose().arqs)

    def test_no_guest(self):
        self.guest = ()
        found = self.choose()
        self.assertEqual((), found.arqs)
        self.assertEqual(2, len(found.findings))

    def test_a_device_that_the_host_does_not_offer(self):
        del self.places['handle-0']
        found = self.choose()
        self.assertEqual(self.arqs[1:], found.arqs)
        (wrong,) = found.findings
        self.assertIn('does not offer it', wrong.words)
        self.assertIn('0000:81:00.0', wrong.words)

    def test_the_report_is_not_accepted_yet(self):
        self.places['handle-0'] = provider_layout.Place('ours', 'FPGA')
        self.assertEqual(
            take_over_choice.ArqChoice(self.arqs[1:]),
            self.choose(),
        )

    def test_servers_that_are_left_alone(self):
        for server in (
            None,
            nova_server.Server('elsewhere', 'active'),
            nova_server.Server(None, 'shelved_offloaded'),
            nova_server.Server(HERE, 'active', 'rebooting_hard'),
            nova_server.Server(HERE, 'building'),
            nova_server.Server(HERE, 'active', is_migrating=True),
        ):
            self.server = server
            self.assertEqual(take_over_choice.ArqChoice(), self.choose())

    def test_an_arq_without_a_device(self):
        self.binding = dataclasses.replace(self.binding, arqs=self.arqs[:1])
        self.assertEqual(
            take_over_choice.ArqChoice(self.arqs[:1]),
            self.choose(),
        )
