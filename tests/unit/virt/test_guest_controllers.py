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
from nova.virt.libvirt import config as vconfig
import testtools

from nova_accel.model.links import guest_pcie
from nova_accel.virt import guest_controllers

M = guest_pcie.Model

CONTROLLERS = (
    guest_pcie.GuestPort(3, M.EXPANDER, guest_pcie.PortPlace(0, 8), 128, 1),
    guest_pcie.GuestPort(4, M.EXPANDER, guest_pcie.PortPlace(0, 9), 200),
    guest_pcie.GuestPort(5, M.ROOT_PORT, guest_pcie.PortPlace(3, 31)),
    guest_pcie.GuestPort(
        6, M.ROOT_PORT, guest_pcie.PortPlace(0, 8, 0, is_multifunction=True)
    ),
    guest_pcie.GuestPort(17, M.UPSTREAM_PORT, guest_pcie.PortPlace(5)),
    guest_pcie.GuestPort(
        18, M.DOWNSTREAM_PORT, guest_pcie.PortPlace(17, 1, 0)
    ),
)

GOLDEN = """\
<controller type="pci" index="3" model="pcie-expander-bus">
  <target busNr="128">
    <node>1</node>
  </target>
  <address type="pci" domain="0x0000" bus="0x00" slot="0x08" function="0x0"/>
</controller>
<controller type="pci" index="4" model="pcie-expander-bus">
  <target busNr="200"/>
  <address type="pci" domain="0x0000" bus="0x00" slot="0x09" function="0x0"/>
</controller>
<controller type="pci" index="5" model="pcie-root-port">
  <address type="pci" domain="0x0000" bus="0x03" slot="0x1f" function="0x0"/>
</controller>
<controller type="pci" index="6" model="pcie-root-port">
  <address type="pci" domain="0x0000" bus="0x00" slot="0x08" function="0x0" \
multifunction="on"/>
</controller>
<controller type="pci" index="17" model="pcie-switch-upstream-port">
  <address type="pci" domain="0x0000" bus="0x05" slot="0x00" function="0x0"/>
</controller>
<controller type="pci" index="18" model="pcie-switch-downstream-port">
  <address type="pci" domain="0x0000" bus="0x11" slot="0x01" function="0x0"/>
</controller>
"""


class TestController(testtools.TestCase):
    def test_xml(self):
        self.assertEqual(
            GOLDEN,
            ''.join(
                etree.tostring(
                    guest_controllers.GuestController(wanted).format_dom(),
                    pretty_print=True,
                    encoding='unicode',
                )
                for wanted in CONTROLLERS
            ),
        )


class TestTaken(testtools.TestCase):
    def taken(self, *devices):
        guest = vconfig.LibvirtConfigGuest()
        guest.devices = list(devices)
        return set(guest_controllers.taken_indexes(guest))

    def port(self, index=None):
        port = vconfig.LibvirtConfigGuestPCIeRootPortController()
        port.index = index
        return port

    def test_nothing(self):
        self.assertEqual(set(), self.taken())

    def test_what_libvirt_will_give_them(self):
        self.assertEqual(
            {1, 2, 3, 5},
            self.taken(
                vconfig.LibvirtConfigGuestPCIeRootController(),
                self.port(),
                self.port(2),
                self.port(),
                self.port('5'),
            ),
        )

    def test_controllers_of_other_types(self):
        self.assertEqual(
            set(),
            self.taken(
                vconfig.LibvirtConfigGuestUSBHostController(),
                vconfig.LibvirtConfigGuestInterface(),
            ),
        )
