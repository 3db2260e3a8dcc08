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

import json
import time

import fixtures
from lxml import etree
from nova import conf as nova_conf
from nova.virt.libvirt import config as vconfig
from oslo_reports import guru_meditation_report

from nova_accel import exceptions
from nova_accel import guru_report
from nova_accel.db import device
from nova_accel.testing import fabric_manager
from nova_accel.testing import fake_fpga
from nova_accel.virt import wiring
from nova_accel.virt.fabric import no_fabric
from unit.virt import started

CONF = nova_conf.CONF

_UUID = '0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e5f'
_GUEST = f'''
<domain type='qemu'>
  <name>guest</name><uuid>{_UUID}</uuid><memory>1024</memory>
  <metadata>{{}}</metadata>
  <vcpu>1</vcpu><os><type>hvm</type></os>
  <devices><hostdev mode='subsystem' type='pci' managed='yes'><source>
    <address domain='0x0000' bus='0x82' slot='0x00' function='0x1'/>
  </source></hostdev></devices>
</domain>'''


class TestStart(started.StartedTestCase):
    def test_a_malformed_line_stops_the_start(self):
        line = json.dumps({'driver': 'pci'})
        CONF.set_override('device_spec', [line], 'nova_accel')
        error = self.assertRaises(exceptions.InvalidDeviceSpec, self.start)
        self.assertIn(line, str(error))

    def test_a_line_that_contradicts_itself_stops_the_start(self):
        line = json.dumps(
            {'vendor_id': '10de', 'product_id': '2235', 'driver': 'nvme'}
        )
        CONF.set_override('device_spec', [line], 'nova_accel')
        for start in (wiring.check_configured, self.start):
            error = self.assertRaises(exceptions.InvalidDeviceSpec, start)
            self.assertIn(line, str(error))

    def test_the_report_of_nova_compute_tells_the_devices(self):
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.guru_report._FACTS', {})
        )
        self.start()
        report = guru_meditation_report.TextGuruMeditation
        title, section = report.persistent_sections.pop()
        self.assertEqual(guru_report.TITLE, title)
        told = str(section().data)
        self.assertIn('none came', told)
        self.assertIn('units', told)
        self.assertIn('pci_0000_', told)

    def test_the_start_does_not_wait_for_the_api(self):
        self.api.refuse = True
        host = self.start()
        vgpus, regions, functions = 16, 2, 8
        self.assertEqual(
            vgpus + regions + functions, len(self.current.view.drivers)
        )
        CONF.set_override('publish_timeout_s', 0, 'nova_accel')
        self.addCleanup(CONF.clear_override, 'publish_timeout_s', 'nova_accel')
        self.assertRaises(
            exceptions.CyborgAgentUnavailable,
            host.os_acc.acquire,
            None,
            'qat',
            [],
        )

    def test_what_a_guest_has_is_not_cleaned(self):
        """Whatever the journal, which is that of a host of this name, says."""
        cleaning = self.useFixture(fake_fpga.Cleaning())
        instance = vconfig.LibvirtConfigGuestMetaNovaInstance()
        instance.package = '34.0.0'
        self.libvirt.connection.defineXML(
            _GUEST.format(
                etree.tostring(instance.format_dom(), encoding='unicode')
            )
        )
        host = self.start()
        in_guest, other = (
            uuid
            for uuid, handle in sorted(
                self.current.view.handles.items(),
                key=lambda item: str(item[1].address),
            )
            if str(handle.address).startswith('0000:82')
        )
        expected = [
            {
                'uuid': in_guest,
                'deployable': 'region0',
                'reason': f'not cleaned: 0000:82:00.1 is in guest {_UUID}',
            }
        ]
        for _second in range(30):
            host.cycle._idle.wait(30)
            unclean = [
                each for found in device.get_all() for each in found['unclean']
            ]
            if unclean == expected:
                break
            time.sleep(1)
        self.assertEqual(expected, unclean)
        self.assertEqual([other], cleaning.cleaned)


class TestFabric(started.StartedTestCase):
    def test_without_the_option_nobody_is_asked(self):
        def ask(*arguments):
            self.fail('Fabric Manager is asked')

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.fabric_manager._run', ask
            )
        )
        host = self.start()
        self.assertIs(no_fabric.NoFabric, type(host.fabric))
        host.cycle.run()
        host.fabric.watch()
        host.fabric.ready('i', [None])
        host.fabric.let_go('handle')
        self.assertEqual((), host.fabric.partitions())
        with host.fabric.during('i'):
            host.fabric.end()
        self.assertFalse((self.state / 'nova_accel/partitions').exists())

    def test_with_the_option(self):
        daemon = self.useFixture(fabric_manager.FabricManager())
        daemon.restart()
        host = self.start()
        # It is told that nothing is active, when its partitions are listed.
        self.assertIn(['--set-activated-list', ''], daemon.calls)
        self.assertEqual(15, len(host.fabric.partitions()))
