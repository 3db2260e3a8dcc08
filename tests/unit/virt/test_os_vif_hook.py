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

import importlib
import sys

import os_vif
from oslo_utils import importutils
import testtools

from nova_accel.virt import os_vif_hook


class TestDriverHook(testtools.TestCase):
    def test_the_entry_point_makes_novas_driver_name_importable(self):
        sys.modules.pop(os_vif_hook.MODULE, None)
        os_vif.initialize(reset=True)
        self.assertIsNotNone(sys.modules.get(os_vif_hook.MODULE))
        driver = importutils.import_class('nova.virt.nova_accel.LibvirtDriver')
        self.assertIs(
            importlib.import_module('nova_accel.virt.driver').LibvirtDriver,
            driver,
        )

    def test_loading_the_plugin_does_not_import_nova(self):
        hook = os_vif_hook.DriverHook.load('nova_accel')
        self.assertEqual([], hook.describe().vif_info)

    def test_an_unknown_driver_name_is_an_import_error(self):
        os_vif_hook.DriverHook.load('nova_accel')
        self.assertRaises(
            ImportError,
            importutils.import_class,
            'nova.virt.nova_accel.NoSuchDriver',
        )
