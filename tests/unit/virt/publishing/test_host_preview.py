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

import pathlib
import types

import fixtures
from nova.virt import node as nova_node
import testtools

from nova_accel import conf
from nova_accel import exceptions
from nova_accel import privileged
from nova_accel.drivers import configured_lines
from nova_accel.model.devices import device_spec
from nova_accel.testing import pci_functions
from nova_accel.virt.publishing import host_preview
from unit.virt import started
from unit.virt.publishing import previewed

CONF = conf.CONF
OF_THIS_HOST = host_preview.of_this_host

LINE = '{"vendor_id": "10de", "driver": "nvidia_gpu"}'
GPU = pci_functions.function('0000:3d:00.0', '10de', '2331')


class TestPreview(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.previewed = self.useFixture(previewed.Previewed([GPU]))

    def discover(self, preview):
        return preview.discover(device_spec.parse([LINE], preview.drivers))

    def test_what_nova_compute_would_find(self):
        found = self.discover(self.previewed.preview())
        self.assertEqual(
            ['0000:3d:00.0'], [str(each.address) for each in found.devices]
        )
        self.assertEqual((), found.refused)

    def test_nova_claims_it(self):
        CONF.set_override(
            'device_spec', ['{"address": "0000:3d:00.0"}'], 'pci'
        )
        self.addCleanup(CONF.clear_override, 'device_spec', 'pci')
        (why,) = self.discover(self.previewed.preview()).refused
        self.assertIn('Nova claims 0000:3d:00.0 too: [pci] device_spec', why)

    def test_nothing_is_made_below_the_state_of_nova(self):
        """A directory of root's would keep nova-compute from starting."""
        self.discover(self.previewed.preview())
        self.assertEqual([], [*pathlib.Path(self.previewed.state).iterdir()])

    def test_no_driver_can_write(self):
        error = self.assertRaises(
            exceptions.DeviceError,
            self.previewed.preview().sysfs.write,
            GPU.address,
            'sriov_numvfs',
            '1',
        )
        self.assertIn('Read-only', str(error))

    def test_no_daemon_is_started(self):
        self.previewed.preview()
        contexts = [
            each
            for each in vars(privileged).values()
            if isinstance(each, privileged.priv_context.PrivContext)
        ]
        self.assertTrue(contexts)
        self.assertEqual(
            {False}, {context.client_mode for context in contexts}
        )

    def test_the_uuid_of_the_node(self):
        """Units have the uuids that nova-compute gives them."""
        path = pathlib.Path(self.previewed.state, 'compute_id')
        uuids = []
        for text in (None, '8c4f6c2e-7a8e-4f0a-9a57-2f2c8a1d0001'):
            if text is not None:
                path.write_text(text)
            found = self.discover(self.previewed.preview())
            uuids += [each.uuid for each in found.devices[0].handles]
        self.assertEqual(2, len(set(uuids)))


class TestSameAsNovaCompute(started.StartedTestCase):
    """The same devices, units and traits, on a host that nova-compute runs."""

    def setUp(self):
        super().setUp()
        self.addCleanup(previewed.in_daemons)
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.virt.node.read_local_node_uuid',
                nova_node.get_local_node_uuid,
            )
        )

    def parts(self, found):
        return {
            (device.name, part.name): (
                part.traits,
                part.resource_class,
                [handle.uuid for handle in part.handles],
            )
            for device in found
            for part in device.deployables
        }

    def test_what_is_published(self):
        self.start()
        preview = host_preview.Preview(self.libvirt.host)
        found = preview.discover(configured_lines.read())
        self.assertEqual(
            self.parts(self.current.view.devices), self.parts(found.devices)
        )
        self.assertLess(1, len(found.devices))
        self.assertEqual(
            len(self.libvirt.host.list_pci_devices()), len(preview.functions)
        )


class TestOfThisHost(testtools.TestCase):
    """Before Nova's own code is asked, which would send a notification."""

    def test_no_module(self):
        self.useFixture(
            fixtures.MonkeyPatch('nova.virt.libvirt.host.libvirt', None)
        )
        self.assert_told('install python3-libvirt')

    def test_no_libvirt(self):
        class Error(Exception):
            pass

        def refuse(_uri):
            raise Error('Failed to connect socket')

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.virt.libvirt.host.libvirt',
                types.SimpleNamespace(
                    libvirtError=Error,
                    openReadOnly=refuse,
                    registerErrorHandler=lambda *_: None,
                ),
            )
        )
        self.assert_told(
            'libvirt does not answer at qemu:///system ([libvirt] '
            'connection_uri): Failed to connect socket. Start it: systemctl '
            'start libvirtd'
        )

    def assert_told(self, text):
        error = self.assertRaises(exceptions.DeviceError, OF_THIS_HOST)
        self.assertIn(text, str(error))
