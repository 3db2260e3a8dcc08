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

import testtools

from nova_accel.model.profiles import device_profile
from nova_accel.model.units import free_providers

A, B = (('FPGA', frozenset({trait})) for trait in 'AB')
VGPU = 'VGPU', frozenset[str]()


def group(
    resource_class: str = 'FPGA',
    required: str = '',
    forbidden: str = '',
    amount: int = 1,
) -> device_profile.Group:
    return device_profile.Group(
        {resource_class: amount}, frozenset(required), frozenset(forbidden)
    )


class TestFreeProviders(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.free = free_providers.FreeProviders()
        self.free.put('a1', 'one', {A: 1})
        self.free.put('b1', 'one', {B: 1})
        self.free.put('a2', 'two', {A: 1})
        self.free.put('v2', 'two', {VGPU: 1})

    def hosts(self, *groups: device_profile.Group) -> list[str]:
        return list(self.free.hosts(groups))

    def test_hosts_of_a_group(self) -> None:
        self.assertEqual(['one', 'two'], self.hosts(group()))
        self.assertEqual(['one', 'two'], self.hosts(group(required='A')))
        self.assertEqual(['one'], self.hosts(group(forbidden='A')))
        self.assertEqual(['two'], self.hosts(group('VGPU')))
        self.assertEqual([], self.hosts(group(required='AB')))
        self.assertEqual([], self.hosts(group('CUSTOM_QAT')))

    def test_the_rarest_group_tells(self) -> None:
        self.assertEqual(['two'], self.hosts(group(), group('VGPU')))
        self.assertEqual(['two'], self.hosts(group('VGPU'), group()))

    def test_hosts_with_enough(self) -> None:
        self.free.put('more', 'one', {A: 2})
        for groups, hosts in (
            ([group(amount=4)], ['one']),
            ([group(amount=5)], []),
            ([group(required='A', amount=3)], ['one']),
            ([group(required='A', amount=4)], []),
            ([group(amount=2), group(amount=2)], ['one']),
            ([group(amount=2), group(amount=3)], []),
            ([group(required='B'), group(required='A', amount=3)], ['one']),
            ([group(), group('VGPU', amount=2)], []),
        ):
            self.assertEqual(hosts, self.hosts(*groups))
        self.free.put('more', 'one', {A: 1})
        self.assertEqual([], self.hosts(group(amount=4)))

    def test_of_host(self) -> None:
        self.assertEqual({'a1', 'b1'}, set(self.free.of_host('one')))
        self.assertEqual(set(), set(self.free.of_host('three')))

    def test_a_provider_that_changes(self) -> None:
        self.free.put('a1', 'one', {A: 1, VGPU: 1})
        self.assertEqual({'one', 'two'}, set(self.hosts(group('VGPU'))))
        self.free.put('a1', 'three', {B: 1})
        self.assertEqual(['two'], self.hosts(group('VGPU')))
        self.assertEqual(['two'], self.hosts(group(required='A')))
        self.assertEqual({'b1'}, set(self.free.of_host('one')))
        self.assertEqual({'a1'}, set(self.free.of_host('three')))

    def test_nothing_is_kept_of_one_that_is_full(self) -> None:
        for rp_uuid in ('a1', 'b1', 'a2', 'v2', 'unknown'):
            self.free.put(rp_uuid, '', {})
        self.assertEqual([], self.hosts(group()))
        self.assertEqual(
            {'_of_kind': {}, '_of_host': {}, '_places': {}}, vars(self.free)
        )
