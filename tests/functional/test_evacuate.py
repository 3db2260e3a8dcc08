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

import fixtures
from nova import exception
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.virt import libvirt

from functional import one_server
from functional import operations
from nova_accel.model.profiles import device_profile
from nova_accel.testing import hostdev


class TestEvacuate(one_server.OneServerTestCase):
    """Each host has its own devices, and gives back only those."""

    hosts = ('host1', 'host2')

    def setUp(self):
        super().setUp()
        self.source = self.host
        (self.destination,) = set(self.hosts) - {self.source}

    def evacuate(self):
        self.go_down()
        self.server = self._evacuate_server(
            self.server, expected_host=self.destination
        )
        self.act('os-start')
        self.wait_for_status('ACTIVE')

    def arqs_by_host(self):
        return {
            host: [
                arq
                for arq in self.arqs(self.server)
                if arq['hostname'] == host
            ]
            for host in self.hosts
        }

    def assert_destination_has_its_own(self):
        arqs = self.arqs_by_host()[self.destination]
        self.assertEqual({'Bound'}, {arq['state'] for arq in arqs})
        devices = sorted(map(self.arq_device, arqs))
        self.assertEqual(2, len(devices))
        self.assertEqual(
            devices,
            sorted(
                map(
                    hostdev.identity,
                    self.hostdevs(self.server, self.destination),
                )
            ),
        )
        self.assertEqual(1, len(self.mdevs(self.destination)))

    def assert_source_has(self, count):
        self.assertEqual(2 * count, len(self.arqs_by_host()[self.source]))
        self.assertEqual(count, len(self.mdevs(self.source)))
        self.assertEqual(
            count,
            len(
                list(self.state_path.glob(f'nova_accel/{self.source}/*.json'))
            ),
        )

    @operations.shows('evacuate')
    @operations.shows('return of the source of an evacuation')
    def test_the_source_gives_back_its_own(self):
        self.evacuate()
        self.assert_destination_has_its_own()
        self.assert_source_has(1)
        self.come_back()
        self.assert_source_has(0)
        self.assert_destination_has_its_own()
        self._reboot_server(self.server, hard=True)
        self.assert_destination_has_its_own()
        self.delete(self.server)

    @operations.shows(
        'return of the source of an evacuation', 'the API is away'
    )
    def test_the_source_returns_while_the_api_is_away(self):
        self.evacuate()
        with self.api_away():
            self.come_back()
            (path,) = self.state_path.glob(f'nova_accel/{self.source}/*.json')
            self.assertIn('"releasing"', path.read_text())
            self.assertFalse(self.mdevs(self.source))
        self.computes[self.source].driver._accelerators.attachments.retry()
        self.assert_source_has(0)
        self.assert_destination_has_its_own()
        self.delete(self.server)

    @operations.shows(
        'return of the source of an evacuation', 'the server is deleted'
    )
    def test_deleted_before_the_source_returns(self):
        self.evacuate()
        self._delete_server(self.server)
        self.assert_source_has(1)
        self.come_back()
        self.assert_nothing_left()

    @operations.shows('return of the source of an evacuation', 'too early')
    def test_the_source_returns_too_early(self):
        """The destination does not have the server yet."""
        create = fakelibvirt.Domain.createWithFlags
        starting, go_on = threading.Event(), threading.Event()

        def wait(domain, flags):
            starting.set()
            go_on.wait(60)
            create(domain, flags)

        self.go_down()
        with fixtures.MonkeyPatch(
            'nova.tests.fixtures.libvirt.Domain.createWithFlags', wait
        ):
            self.act('evacuate', {})
            self.assertTrue(starting.wait(60))
            self.come_back()
            self.assert_source_has(0)
            go_on.set()
            self.wait_for_status('SHUTOFF')
        self.act('os-start')
        self.wait_for_status('ACTIVE')
        self.assert_destination_has_its_own()
        self.delete(self.server)

    @operations.shows(
        'return of the source of an evacuation', 'a device is stuck'
    )
    def test_the_source_returns_with_a_device_that_is_stuck(self):
        self.evacuate()
        with self.stuck('unplug'):
            self.come_back()
            self.settle(self.source)
            self.assert_source_has(1)
        self.settle(self.source)
        self.assert_source_has(0)
        self.assert_destination_has_its_own()
        self.delete(self.server)

    @operations.shows('evacuate', 'the destination fails')
    def test_a_destination_that_fails(self):
        self.break_libvirt((fakelibvirt.Domain, 'createWithFlags'), times=1)
        self.assert_stays_on_the_source('ERROR')

    @operations.shows('evacuate', 'a device refuses', devices=['PCI'])
    def test_a_pci_device_that_refuses_on_the_destination(self):
        self.break_plug('PCI')
        self.assert_stays_on_the_source('ACTIVE')

    @operations.shows('evacuate', 'a device refuses', devices=['mdev'])
    def test_an_mdev_that_refuses_on_the_destination(self):
        self.break_plug('mdev')
        self.assert_stays_on_the_source('ACTIVE')

    def assert_stays_on_the_source(self, status):
        """The destination holds nothing, the source's guest what it has."""
        self.go_down()
        self._evacuate_server(
            self.server,
            expected_host=self.source,
            expected_state=status,
            expected_migration_status='failed',
        )
        self.assertEqual([], self.arqs_by_host()[self.destination])
        self.assertFalse(self.mdevs(self.destination))
        self.come_back()
        self.assert_source_has(1)
        self.assertEqual(
            self.devices,
            sorted(
                map(hostdev.identity, self.hostdevs(self.server, self.source))
            ),
        )
        self.assert_hard_reboot_helps()
        self.delete(self.server)


class TestEvacuateCompat(TestEvacuate):
    flavor_key = device_profile.CYBORG_FLAVOR_KEY


class TestShelve(one_server.OneServerTestCase):
    """Shelved it keeps its devices, offloaded it has none."""

    hosts = ('host1', 'host2')

    def shelve(self, offload):
        self.flags(shelved_offload_time=0 if offload else -1)
        self.act('shelve')
        self.wait_for_status('SHELVED_OFFLOADED' if offload else 'SHELVED')

    def unshelve(self, host=None):
        if host:
            self.act('unshelve', {'host': host})
        else:
            self.act('unshelve')
        self.wait_for_status('ACTIVE')
        self.host = self.server['OS-EXT-SRV-ATTR:host']

    def assert_has_new_ones(self):
        self.devices = self.guest_devices(self.server)
        self.arqs_before = self.arqs(self.server)
        self.assertEqual(
            sorted(map(self.arq_device, self.arqs_before)), self.devices
        )
        self.assertEqual(2, len(self.devices))
        self.assertEqual(
            {self.host}, {arq['hostname'] for arq in self.arqs_before}
        )
        self.assert_runs_with_all()

    @operations.shows('shelve')
    def test_without_offload(self):
        self.shelve(offload=False)
        self.assert_kept()
        self.unshelve()
        self.assert_runs_with_all()
        self.delete(self.server)

    @operations.shows('shelve', 'the snapshot fails')
    def test_a_snapshot_that_fails(self):
        """The guest is off, and no one else gets its devices."""
        self.break_method(
            libvirt.LibvirtDriver,
            'snapshot',
            exception.InternalError('the disk is full'),
        )
        self.assertIn(
            'the disk is full',
            self.assert_fails('shelve', None, 'shelve', 'ACTIVE'),
        )
        self.assertFalse(self.domain().isActive())
        self.assert_kept()
        self.assert_hard_reboot_helps()
        self.delete(self.server)

    @operations.shows('shelve offload', 'a device is stuck')
    def test_a_device_that_is_stuck(self):
        """It is made up for, and until then no one gets it."""
        for _device in self.each_refusing('unplug'):
            self.shelve(offload=True)
            self.assertEqual(2, len(self.arqs(self.server)))
            self.settle(self.host)
            self.assert_nothing_left()
            self.unshelve()
            self.assert_has_new_ones()
        self.delete(self.server)

    @operations.shows('shelve offload')
    @operations.shows('unshelve', 'on the same host', 'on another host')
    def test_each_host(self):
        for host in self.hosts:
            self.shelve(offload=True)
            self.assert_nothing_left()
            self.unshelve(host)
            self.assertEqual(host, self.host)
            self.assert_has_new_ones()
        self.delete(self.server)

    @operations.shows('unshelve', 'a device refuses')
    def test_unshelve_with_a_device_that_refuses(self):
        for _device in self.each_refusing():
            self.shelve(offload=True)
            self.assertIn(
                'the device is stuck',
                self.assert_fails(
                    'unshelve', None, 'unshelve', 'SHELVED_OFFLOADED'
                ),
            )
            self.assert_nothing_left()
            self.unshelve()
            self.assert_has_new_ones()
        self.delete(self.server)

    @operations.shows('unshelve', 'the guest does not start')
    def test_a_host_that_fails(self):
        self.shelve(offload=True)
        self.break_libvirt((fakelibvirt.Domain, 'createWithFlags'), times=1)
        self.assert_fails('unshelve', None, 'unshelve', 'SHELVED_OFFLOADED')
        self.assert_nothing_left()
        self.unshelve()
        self.assert_has_new_ones()
        self.delete(self.server)


class TestShelveCompat(TestShelve):
    flavor_key = device_profile.CYBORG_FLAVOR_KEY
