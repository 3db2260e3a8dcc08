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

"""A driver of Nova with a mixin of ours, on a host that is simulated."""

from nova.compute import provider_tree as nova_tree
import testtools

from nova_accel.model import naming

NODE = '3f2c7b1e-0b5a-4d59-9d3b-3a1b8f0a5c11'
#: A provider of ours, below the node.
PROVIDER = '0e8c2b0e-6a67-4f0b-a7ac-0b0a5a3f1d11'


class MixinTestCase(testtools.TestCase):
    """
    :cvar driver_class: what the mixin is mixed into, with the mixin
    :cvar accelerators_class: what the mixin uses of the host
    """

    def setUp(self):
        super().setUp()
        self.driver = self.driver_class()
        self.accelerators = self.accelerators_class()
        self.attachments = self.accelerators.attachments
        self.driver._accelerators = self.driver.os_acc = self.accelerators
        tree = self.driver.provider_tree = nova_tree.ProviderTree()
        tree.new_root('here', NODE)
        tree.new_child('here_accel_gpu', 'here', PROVIDER)
        tree.add_traits(PROVIDER, naming.OWNERSHIP_TRAIT)
