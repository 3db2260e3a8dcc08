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

from nova import utils
import testtools

from nova_accel import exceptions
from nova_accel.virt import server_request

OURS = {'uuid': 'a', 'hostname': 'here', 'device_rp_uuid': 'ours'}
CYBORGS = {'uuid': 'b', 'hostname': 'here', 'device_rp_uuid': 'other'}
LEFT_BEHIND = {'uuid': 'c', 'hostname': 'there', 'device_rp_uuid': 'theirs'}
FOUND_OURS = server_request.Split(
    ours=('5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01',)
)


class TestSplit(testtools.TestCase):
    def split(self, *arqs):
        return server_request.split(arqs, 'here', {'ours'})

    def test_ours_and_cyborgs(self):
        self.assertEqual(
            server_request.Split(('a',), (CYBORGS,)), self.split(CYBORGS, OURS)
        )

    def test_what_another_host_has_not_given_back_is_neither(self):
        self.assertEqual(
            server_request.Split(('a',)), self.split(LEFT_BEHIND, OURS)
        )

    def test_what_is_held_is_ours_whatever_its_provider_is(self):
        """As before the allocations of a server that was taken over moved."""
        self.assertEqual(
            server_request.Split(('b',)),
            server_request.split([CYBORGS], 'here', {'ours'}, {'b'}),
        )

    def test_none(self):
        self.assertEqual(server_request.Split(), self.split())


class TestProfile(testtools.TestCase):
    def profile(self, *found, **keys):
        return server_request.profile(
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
        self.assertEqual('gpu', self.profile(FOUND_OURS, accel='gpu'))
        self.assertIsNone(self.profile(accel='gpu'))
        self.assertIsNone(self.profile(server_request.Split(), accel='gpu'))

    def test_a_server_may_be_ours_by_cyborgs_key_if_nova_did_not_ask(self):
        theirs = server_request.Split(others=({'uuid': 'theirs'},))
        for expected, found, keys in (
            (False, server_request.NOTHING, ()),
            (True, server_request.NOTHING, ('accel',)),
            (True, FOUND_OURS, ('accel',)),
            (False, theirs, ('accel',)),
            (True, server_request.NOTHING, ('nova_accel',)),
            (True, theirs, ('nova_accel',)),
        ):
            self.assertEqual(
                expected,
                server_request.may_ask_us(
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
        self.assertIsNone(self.profile(FOUND_OURS))


class TestImageProperties(testtools.TestCase):
    def test_properties_that_nova_does_not_know(self):
        properties = {'accel:bitstream_id': 'uuid', 'hw_disk_bus': 'virtio'}
        metadata = utils.get_system_metadata_from_image(
            {'properties': properties, 'name': 'cirros'}
        )
        metadata['boot_roles'] = 'admin'
        self.assertEqual(
            properties,
            server_request.image_properties(
                types.SimpleNamespace(system_metadata=metadata)
            ),
        )
        self.assertEqual(
            {},
            server_request.image_properties(
                types.SimpleNamespace(system_metadata={})
            ),
        )


class TestOfOsAcc(testtools.TestCase):
    def instance(self, specs=(), properties=None):
        return server_request.of_os_acc(
            {'uuid': FOUND_OURS.ours[0], 'project_id': 'project'},
            {'nova_accel:device_profile': 'fpga', **dict(specs)},
            {'name': 'cirros', 'properties': properties},
        )

    def test_from_a_volume(self):
        instance = server_request.of_os_acc(
            {'uuid': FOUND_OURS.ours[0], 'project_id': 'project'}, {}, {}
        )
        self.assertEqual(
            (FOUND_OURS.ours[0], 'project', None, None),
            (
                instance.uuid,
                instance.project_id,
                instance.user_id,
                instance.numa_topology,
            ),
        )
        self.assertEqual({}, server_request.image_properties(instance))

    def test_the_flavor_asks_for_a_bitstream_as_an_image_does(self):
        wanted = {'accel:function_name': 'gzip'}
        for specs, properties in (
            (wanted, None),
            ((), wanted),
            (wanted, wanted),
        ):
            instance = self.instance(specs, properties)
            self.assertEqual('fpga', server_request.profile(instance.flavor))
            self.assertEqual(wanted, server_request.image_properties(instance))

    def test_flavor_and_image_ask_for_two_bitstreams(self):
        self.assertRaises(
            exceptions.InvalidDeviceProfile,
            self.instance,
            {'accel:function_name': 'gzip'},
            {'accel:function_name': 'zstd'},
        )
