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

from nova_accel import privileged
from nova_accel.privileged import qat
from unit.privileged import tree

CARD, VIRTUAL = '0000:6b:00.0', '0000:6b:00.1'


class TestHeartbeat(tree.TreeTestCase):
    def setUp(self):
        super().setUp()
        context = privileged.sysfs_pctxt
        context.set_client_mode(False)
        self.addCleanup(context.set_client_mode, True)
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.privileged.qat.SYSFS', self.root)
        )
        debugfs = self.root / 'debug'
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.privileged.qat.DEBUGFS', debugfs)
        )
        card = self.add(CARD, '4xxx')
        self.add(VIRTUAL, physfn=CARD)
        (card / 'virtfn0').symlink_to(f'../{VIRTUAL}')
        self.status = debugfs / f'qat_4xxx_{CARD}' / 'heartbeat/status'
        tree.offer(self, {'address': CARD})

    def heartbeat(self, address=CARD):
        return qat.heartbeat(address)

    def test_what_the_kernel_says(self):
        self.assertIsNone(self.heartbeat())
        self.status.parent.mkdir(parents=True)
        for text in ('0', '-1'):
            self.status.write_text(f'{text}\n')
            self.assertEqual(text, self.heartbeat())

    def test_a_text_that_is_too_long(self):
        self.status.parent.mkdir(parents=True)
        self.status.write_bytes(b'\xff' + 10**6 * b'1')
        self.assertEqual(16, len(self.heartbeat()))

    def test_a_line_may_offer_the_virtual_functions_only(self):
        tree.offer(self, {'address': VIRTUAL})
        self.assertIsNone(self.heartbeat())

    def test_a_card_that_no_line_offers(self):
        tree.offer(self, {'address': '0000:99:00.0'})
        for address in (CARD, VIRTUAL, '0000:98:00.0'):
            self.assertRaises(ValueError, self.heartbeat, address)
