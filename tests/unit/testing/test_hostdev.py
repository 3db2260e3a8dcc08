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

from lxml import etree
import testtools

from nova_accel.testing import hostdev

PCI = etree.fromstring("""
<hostdev mode='subsystem' type='pci' managed='yes'>
  <source>
    <address domain='0x0000' bus='0x82' slot='0x1f' function='0x7'/>
  </source>
  <address type='pci' domain='0x0000' bus='0x00' slot='0x05' function='0x0'/>
</hostdev>""")
MDEV = etree.fromstring("""
<hostdev mode='subsystem' type='mdev' managed='no' model='vfio-pci'>
  <source>
    <address uuid='9ac4ad62-6bcd-51e7-b1fa-8a2a99f58213'/>
  </source>
</hostdev>""")


class TestHostdev(testtools.TestCase):
    def test_identity(self) -> None:
        self.assertEqual('0000:82:1f.7', hostdev.identity(PCI))
        self.assertEqual(
            '9ac4ad62-6bcd-51e7-b1fa-8a2a99f58213', hostdev.identity(MDEV)
        )

    def test_text_is_one_line(self) -> None:
        self.assertEqual(
            '<hostdev mode="subsystem" type="mdev" managed="no" '
            'model="vfio-pci"><source><address '
            'uuid="9ac4ad62-6bcd-51e7-b1fa-8a2a99f58213"/></source></hostdev>',
            hostdev.text(MDEV),
        )
