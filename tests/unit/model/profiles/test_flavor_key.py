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


import hypothesis
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import flavor_key

NATIVE = device_profile.FLAVOR_KEY
COMPAT = device_profile.CYBORG_FLAVOR_KEY

others = st.dictionaries(st.text('abc:_', min_size=1), st.text())


class TestChanged(testtools.TestCase):
    @hypothesis.given(others, st.text(), st.booleans())
    def test_there_and_back(
        self, other: dict[str, str], profile: str, to_native: bool
    ) -> None:
        """Nothing but the key changes, and the order stays."""
        profile = profile.replace(',', '')
        key, back = (NATIVE, COMPAT) if to_native else (COMPAT, NATIVE)
        before = {**other, back: profile}
        after = flavor_key.changed(before, key)
        assert after is not None
        self.assertEqual({**other, key: profile}, after)
        self.assertEqual(before, flavor_key.changed(after, back))

    def test_cyborgs_key_names_one_profile(self) -> None:
        error = self.assertRaises(
            exceptions.Conflict,
            flavor_key.changed,
            {NATIVE: 'fpga, gpu'},
            COMPAT,
        )
        self.assertIn('several device profiles, fpga, gpu', str(error))
        self.assertIn('server set --device-profile', str(error))

    def test_it_has_the_key_already(self) -> None:
        self.assertIsNone(flavor_key.changed({NATIVE: 'fpga'}, NATIVE))
        self.assertIsNone(flavor_key.changed({COMPAT: 'fpga'}, COMPAT))

    def test_it_has_both(self) -> None:
        both = {NATIVE: 'fpga', COMPAT: 'gpu'}
        for key in both:
            error = self.assertRaises(
                exceptions.Conflict, flavor_key.changed, both, key
            )
            self.assertIn('has both', str(error))

    def test_it_has_neither(self) -> None:
        error = self.assertRaises(
            exceptions.InvalidRequest,
            flavor_key.changed,
            {'hw:cpu_policy': 'dedicated'},
            NATIVE,
        )
        self.assertIn('has neither', str(error))


class TestNaming(testtools.TestCase):
    @hypothesis.given(others, st.none() | st.text(), st.none() | st.text())
    def test_nothing_else_changes(
        self, other: dict[str, str], before: str | None, name: str | None
    ) -> None:
        def named(profile: str | None) -> dict[str, str]:
            return {**other, **({} if profile is None else {NATIVE: profile})}

        self.assertEqual(
            None if before == name else named(name),
            flavor_key.naming(named(before), name),
        )

    def test_not_cyborgs(self) -> None:
        flavor_key.check_not_cyborgs({NATIVE: 'fpga'})
        error = self.assertRaises(
            exceptions.Conflict, flavor_key.check_not_cyborgs, {COMPAT: 'fpga'}
        )
        self.assertIn('server to-native', error.public)
