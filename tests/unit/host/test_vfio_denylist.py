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

from nova_accel.host import vfio_denylist
from nova_accel.testing import fake_sysfs
from nova_accel.testing import pci_functions


class TestReason(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.fake = self.useFixture(fake_sysfs.FakeSysfs())
        self.module = self.fake.root / 'module/vfio_pci'
        self.fake.allow_denied('N')

    def reason(self, vendor_id='8086', product_id='37c9', **facts):
        return vfio_denylist.reason(
            self.fake.sysfs,
            pci_functions.function(
                '0000:3d:01.0', vendor_id, product_id, **facts
            ),
        )

    def test_what_the_kernel_lists(self):
        for product_id in (
            *('19e2', '19e3', '37c8', '37c9', '0435', '0443'),
            *('0b25', '0cfe'),
        ):
            reason = self.reason(product_id=product_id, driver='c6xxvf')
            self.assertIn(f'0000:3d:01.0, because 8086:{product_id}', reason)
            self.assertIn('disable_denylist=1', reason)

    def test_any_other(self):
        self.assertIsNone(self.reason(product_id='4941'))
        self.assertIsNone(self.reason(vendor_id='10de'))

    def test_the_cure(self):
        self.fake.allow_denied('Y')
        self.assertIsNone(self.reason())

    def test_one_that_vfio_has(self):
        self.assertIsNone(self.reason(driver='vfio-pci'))

    def test_until_the_module_is_loaded(self):
        (self.module / 'parameters/disable_denylist').unlink()
        (self.module / 'parameters').rmdir()
        self.assertIsNone(self.reason(), 'a kernel without a list')
        self.module.rmdir()
        self.assertIsNotNone(self.reason())
