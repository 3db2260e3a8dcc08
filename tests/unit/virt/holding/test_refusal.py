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


import fixtures
import testtools

from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import refusal

INSTANCE = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
OTHER = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a02'
THIRD = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a03'


def an_arq(bus):
    return arq_types.Arq(
        f'arq{bus}',
        arq_types.State.BOUND,
        'gpu',
        0,
        {},
        'rp',
        attach_handle.AttachHandle(
            f'handle{bus}', pci_address.PciAddress(0, bus, 0, 0)
        ),
    )


class TestOf(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('nova_accel'))
        self.entry = attach_journal.Entry(
            INSTANCE,
            arq_types.Role.ACTIVE,
            1,
            attach_journal.Step.HELD,
            tuple(map(an_arq, (1, 2, 3))),
        )

    def test_each_device_and_who_has_it(self):
        fault = refusal.of(
            'compute1', self.entry, {'handle1': OTHER, 'handle3': THIRD}
        )
        self.assertEqual(
            '; '.join(
                f'the accelerator API gives {address} of host compute1 to '
                f"instance {INSTANCE}, and by the host's journal instance "
                f'{owner} has it'
                for address, owner in (
                    ('0000:01:00.0', OTHER),
                    ('0000:03:00.0', THIRD),
                )
            ),
            str(fault),
        )

    def test_the_operator_is_told(self):
        fault = refusal.of('compute1', self.entry, {'handle2': OTHER})
        self.assertIn(
            f'Accelerators are refused: {fault}. Has the database',
            self.log.output,
        )
