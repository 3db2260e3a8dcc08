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

from nova_accel.virt import accel_info
from nova_accel.virt import flavor

OURS = accel_info.Split(ours=('5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01',))


class TestProfile(testtools.TestCase):
    def profile(self, *found, **keys):
        return flavor.profile(
            types.SimpleNamespace(
                extra_specs={
                    f'{key}:device_profile': name for key, name in keys.items()
                }
            ),
            *found,
        )

    def test_by_our_key(self):
        self.assertEqual('gpu', self.profile(nova_accel='gpu'))

    def test_by_cyborgs_key_only_if_nova_has_arqs_of_ours(self):
        self.assertEqual('gpu', self.profile(OURS, accel='gpu'))
        self.assertIsNone(self.profile(accel='gpu'))
        self.assertIsNone(self.profile(accel_info.Split(), accel='gpu'))

    def test_a_server_may_be_ours_by_cyborgs_key_if_nova_did_not_ask(self):
        theirs = accel_info.Split(others=({'uuid': 'theirs'},))
        for expected, found, keys in (
            (False, accel_info.NOTHING, ()),
            (True, accel_info.NOTHING, ('accel',)),
            (True, OURS, ('accel',)),
            (False, theirs, ('accel',)),
            (True, accel_info.NOTHING, ('nova_accel',)),
            (True, theirs, ('nova_accel',)),
        ):
            self.assertEqual(
                expected,
                flavor.may_ask_us(
                    types.SimpleNamespace(
                        extra_specs={
                            f'{key}:device_profile': 'gpu' for key in keys
                        }
                    ),
                    found,
                ),
            )

    def test_none(self):
        self.assertIsNone(self.profile())
        self.assertIsNone(self.profile(OURS))
