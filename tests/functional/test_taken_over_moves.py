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

"""What is done to a server after its host has taken it over."""

from functional import taken_over
from functional import test_flavor_key
from nova_accel.model.profiles import device_profile


class MovesTestCase(
    taken_over.TakenOverTestCase, test_flavor_key.FlavorKeyTestCase
):
    """A server with two mediated devices; both hosts are switched."""

    def setUp(self):
        super().setUp()
        self.need_mdevs_of_cyborg()
        self.server = self.boot_on('host1', self.vgpus)
        self.before = self.guest_devices(self.server)
        self.assertEqual(2, len(self.before))
        self.stop_cyborg()
        for host in self.both_hosts:
            self.take_over(host)
        self.assert_taken_over(self.server, self.before)


class TestToNative(MovesTestCase):
    def test_what_nova_forbids_is_possible_then(self):
        self.assertEqual('changed', self.to_native())
        self.act('suspend', status='SUSPENDED')
        self.act('resume')
        self.assert_taken_over(self.server, self.before)

        self.live_migrate(self.server)
        found = self.guest_devices(self.server)
        self.assertFalse(set(self.before) & set(found))
        self.assert_taken_over(self.server, found)
        self._wait_for_assert(lambda: self.assertFalse(self.mdevs('host1')))
        self._wait_for_assert(lambda: self.assert_placement_agrees('host1'))
        self.assert_placement_agrees('host2')

        self.flavor_key = device_profile.FLAVOR_KEY
        both = self.create_accel_flavor('both', name='both, by our key')
        self.resize(self.server, both)
        self.confirm(self.server, 'host2')
        self.assert_taken_over(self.server, self.guest_devices(self.server))
        for host in self.both_hosts:
            self._wait_for_assert(
                lambda host=host: self.assert_placement_agrees(host)
            )
        self.assert_nothing_is_wrong()
        self.delete(self.server)

    def test_a_resize_that_is_reverted(self):
        self.to_native()
        self.flavor_key = device_profile.FLAVOR_KEY
        both = self.create_accel_flavor('both', name='both, by our key')
        self.resize(self.server, both)
        self.revert(self.server)
        self.assert_taken_over(self.server, self.before)
        self.delete(self.server)


class TestCompat(MovesTestCase):
    def test_shelve_and_unshelve(self):
        self.act('shelve', status='SHELVED_OFFLOADED')
        self.assertEqual([], self.arqs(self.server))
        self.assertFalse(self.mdevs('host1'))
        self.act('unshelve')
        found = self.guest_devices(self.server)
        self.assertEqual(2, len(found))
        self.assert_taken_over(self.server, found)
        self.delete(self.server)

    def test_rebuild(self):
        self.admin_api.post_server_action(
            self.server['id'],
            {
                'rebuild': {
                    'imageRef': self.api.get_server(self.server['id'])[
                        'image'
                    ]['id']
                }
            },
        )
        self._wait_for_state_change(self.server, 'ACTIVE')
        self.assert_taken_over(self.server, self.before)
        self.delete(self.server)
