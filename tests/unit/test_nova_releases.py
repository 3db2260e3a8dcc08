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

import threading
import types

import testtools

from nova_accel import nova_releases


class TestSpawn(testtools.TestCase):
    def test_the_work_is_done_by_another_thread(self):
        done = threading.Event()
        asking = threading.get_ident()
        found = []

        def work():
            found.append(threading.get_ident())
            done.set()

        nova_releases.spawn(work)
        self.assertTrue(done.wait(30))
        self.assertNotEqual([asking], found)


class TestParentsOfMdevs(testtools.TestCase):
    def test_a_release_that_knows_virtual_ones(self):
        driver = types.SimpleNamespace(
            _is_virtual_mdev=lambda name: name == 'mtty_mtty'
        )
        for name, is_one in (('mtty_mtty', True), ('css_0_0_0052', False)):
            self.assertIs(
                is_one, nova_releases.is_virtual_mdev_parent(driver, name)
            )

    def test_a_release_that_does_not(self):
        driver = types.SimpleNamespace()
        self.assertIs(
            False, nova_releases.is_virtual_mdev_parent(driver, 'mtty_mtty')
        )
