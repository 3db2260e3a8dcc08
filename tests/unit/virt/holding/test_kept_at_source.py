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

import types

import testtools

from nova_accel.model import arq_types
from nova_accel.virt.holding import kept_at_source

INSTANCE = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
ACTIVE, OLD = arq_types.Role.ACTIVE, arq_types.Role.OLD


class Attachments:
    """Of one instance: role -> attempt of what it holds."""

    def __init__(self, **held):
        self.roles = {
            arq_types.Role(role): attempt for role, attempt in held.items()
        }
        self.held = self

    def has(self, instance_uuid, role=ACTIVE):
        return role in self.roles

    def move(self, instance_uuid, source, target):
        if source in self.roles:
            self.roles[target] = self.roles.pop(source)


class TestRestore(testtools.TestCase):
    def test_what_was_set_aside_is_active(self):
        attachments = Attachments(old=1)
        kept_at_source.restore(attachments, INSTANCE)
        self.assertEqual({ACTIVE: 1}, attachments.roles)

    def test_what_is_active_stays_so(self):
        attachments = Attachments(active=2, old=1)
        kept_at_source.restore(attachments, INSTANCE)
        self.assertEqual({ACTIVE: 2, OLD: 1}, attachments.roles)

    def test_what_is_active_after_a_revert_was_not_released(self):
        attachments = Attachments(active=2, old=1)
        kept_at_source.restore(attachments, INSTANCE, is_reverted=True)
        self.assertEqual({ACTIVE: 1}, attachments.roles)

    def restored(self, **fields):
        attachments = Attachments(old=1)
        kept_at_source.restore_reverted(
            attachments,
            types.SimpleNamespace(
                **{
                    'uuid': INSTANCE,
                    'host': 'here',
                    'old_flavor': None,
                    **fields,
                }
            ),
            'here',
        )
        return ACTIVE in attachments.roles

    def test_only_what_a_revert_brought_back(self):
        self.assertTrue(self.restored())
        self.assertFalse(self.restored(host='there'))
        self.assertFalse(self.restored(old_flavor=object()))
