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

import fixtures
from nova import context as nova_context
from nova import objects
from nova.tests.fixtures import libvirt as fakelibvirt

from functional import one_server
from functional import operations
from nova_accel.model.profiles import device_profile


class _Disk:
    """What is copied while no guest uses it."""

    def direct_snapshot(self, *_args, **_kwargs):
        raise NotImplementedError

    def cleanup_direct_snapshot(self, *_args, **_kwargs):
        """There is none."""

    def snapshot_extract(self, target, _format):
        pathlib.Path(target).touch()


class TestSnapshot(one_server.OneServerTestCase):
    def setUp(self):
        super().setUp()
        # There is no disk, and no qemu-img that would copy it.
        for name, function in (
            ('virt.libvirt.utils.get_disk_size', lambda path, format: 0),
            (
                'virt.libvirt.utils.get_disk_backing_file',
                lambda path, basename, format: None,
            ),
            (
                'virt.libvirt.utils.create_image',
                lambda path, *args, **kwargs: pathlib.Path(path).touch(),
            ),
            (
                'virt.libvirt.utils.extract_snapshot',
                lambda path, source_format, target, target_format: (
                    pathlib.Path(target).touch()
                ),
            ),
            ('privsep.path.chown', lambda *args, **kwargs: None),
            (
                'virt.libvirt.imagebackend.Backend.by_libvirt_path',
                lambda *args, **kwargs: _Disk(),
            ),
        ):
            self.useFixture(fixtures.MonkeyPatch(f'nova.{name}', function))

    def assert_taken(self, count):
        """So many snapshots are in Glance."""
        self.assertEqual(
            count,
            sum(
                image['name'] == 'a-snapshot'
                for image in self.glance.detail(None)
            ),
        )

    def snapshot(self, status='ACTIVE'):
        self.act('createImage', {'name': 'a-snapshot'})
        self.wait_for_status(status)

    def assert_snapshot_fails(self, text, status='ACTIVE'):
        """Nova does it in a thread, and keeps a fault that it never shows."""
        self.snapshot(status)
        fault = objects.InstanceFault.get_latest_for_instance(
            nova_context.get_admin_context(), self.server['id']
        )
        self.assertIn(text, fault.message)
        self.assert_taken(0)

    def cold(self):
        self.flags(disable_libvirt_livesnapshot=True, group='workarounds')

    def count(self, method):
        """How often libvirt is asked for it."""
        called = []
        real = getattr(fakelibvirt.Domain, method)

        def counted(domain, *args, **kwargs):
            called.append(method)
            return real(domain, *args, **kwargs)

        self.useFixture(
            fixtures.MonkeyPatch(
                f'nova.tests.fixtures.libvirt.Domain.{method}', counted
            )
        )
        return called

    @operations.shows('live snapshot')
    def test_live(self):
        detached = self.count('detachDeviceFlags')
        self.snapshot()
        self.assert_taken(1)
        self.assertEqual([], detached)
        self.assert_runs_with_all()
        self.delete(self.server)

    @operations.shows('live snapshot', 'the disk is not copied')
    def test_live_of_a_disk_that_is_not_copied(self):
        detached = self.count('detachDeviceFlags')
        self.break_libvirt((fakelibvirt.Domain, 'blockRebase'), times=1)
        self.assert_snapshot_fails('libvirtError')
        self.assertEqual(1, self.failures)
        self.assertEqual([], detached)
        self.assert_runs_with_all()
        self.delete(self.server)

    @operations.shows('cold snapshot')
    def test_cold(self):
        self.cold()
        saved = self.count('managedSave')
        for number in (1, 2):
            self.snapshot()
            self.assert_taken(number)
            self.assertEqual(number, len(saved))
            self.assert_runs_with_all()
        self.delete(self.server)

    def test_cold_of_a_stopped_server(self):
        self.act('os-stop')
        self.wait_for_status('SHUTOFF')
        self.snapshot('SHUTOFF')
        self.assert_taken(1)
        self.assert_kept()
        self.delete(self.server)

    def test_cold_of_a_paused_server(self):
        """A guest that is paused does not let go of a device."""
        self.cold()
        self.act('pause')
        self.wait_for_status('PAUSED')
        self.assert_snapshot_fails(
            'a guest that is paused does not let go', 'PAUSED'
        )
        self.act('unpause')
        self.wait_for_status('ACTIVE')
        self.assert_runs_with_all()
        self.delete(self.server)

    @operations.shows('cold snapshot', 'a device is not detached')
    def test_cold_with_a_device_that_is_not_detached(self):
        self.cold()
        self.break_libvirt((fakelibvirt.Domain, 'detachDeviceFlags'), times=1)
        self.assert_snapshot_fails('Failed to suspend instance: libvirtError')
        self.assert_runs_with_all()
        self.delete(self.server)

    @operations.shows('cold snapshot', 'a device is not attached')
    def test_cold_with_a_device_that_is_not_attached(self):
        self.cold()
        self.break_libvirt((fakelibvirt.Domain, 'attachDeviceFlags'), times=1)
        self.assert_snapshot_fails(
            'a hard reboot gives the server its accelerators back'
        )
        self.assert_held()
        self.assert_hard_reboot_helps()
        self.delete(self.server)


class TestSnapshotCompat(TestSnapshot):
    flavor_key = device_profile.CYBORG_FLAVOR_KEY
