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
import threading

import fixtures
from nova import exception
from nova.tests.fixtures import libvirt as fakelibvirt

from functional import moves
from functional import operations
from nova_accel.testing import devices
from nova_accel.testing import fake_sysfs
from rig import compute_parts

QAT = {'resources:CUSTOM_QAT': '1'}


class LiveMigrationTestCase(moves.MoveTestCase):
    """Servers that move live, or do not.

    :ivar migrate: what libvirt does with a running guest when it is told to
        move it
    """

    # As a call, a refusal would go back to a conductor that is long gone.
    CAST_AS_CALL = False

    def setUp(self):
        super().setUp()
        self.migrate = self.arrive
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.tests.fixtures.libvirt.Domain.migrateToURI3',
                lambda domain, uri, params, flags: self.migrate(
                    domain, params
                ),
            )
        )

    def arrive(self, domain, params):
        """The guest runs on the other host, and no more on this one."""
        source = domain._connection
        (destination,) = (
            connection
            for connection in map(self.connection, self.hosts)
            if connection is not source
        )
        destination.createXML(params['destination_xml'], 0)
        source._mark_not_running(domain)
        # One that has arrived here is not defined.
        source._vms.pop(domain.name(), None)
        domain.complete_job()

    @staticmethod
    def stay(domain, params):
        """The guest runs on as before."""
        domain.fail_job()

    def live_migrate(self, server, status='completed'):
        self.admin_api.post_server_action(
            server['id'],
            {'os-migrateLive': {'host': None, 'block_migration': 'auto'}},
        )
        self._wait_for_migration_status(server, [status])
        return self._wait_for_server_parameter(
            server, {'status': 'ACTIVE', 'OS-EXT-STS:task_state': None}
        )

    def assert_arrived(self, server, devices=2):
        """On host2, with as many devices, for good; nothing on host1."""
        found = self.guest_devices(server)
        self.assertEqual(devices, len(found))
        self.assert_guest(server, 'host2', found)
        self.assertFalse(self.mdevs('host1'))
        self.wait_for_usage('host1')
        self._reboot_server(server, hard=True)
        self.assert_guest(server, 'host2', found)
        self.delete(server)

    def assert_stayed(self, server, before):
        """On host1, with what it had; nothing on host2."""
        self.assert_guest(server, 'host1', before)
        self.assertFalse(self.mdevs('host2'))
        self.wait_for_usage('host2')
        self._reboot_server(server, hard=True)
        self.assert_guest(server, 'host1', before)
        self.delete(server)

    def wait_for_usage(self, host, **usage):
        """Nova gives a migration's allocations back when all is done."""
        self._wait_for_assert(lambda: self.assert_usage(host, **usage))

    def assert_refused(self, server, reason):
        before = self.guest_devices(server)
        self.live_migrate(server, 'error')
        self.assertIn(reason, self.stdlog.logger.output)
        self.assert_stayed(server, before)


class TestMediatedDevices(LiveMigrationTestCase):
    def setUp(self):
        super().setUp()
        self.server = self.boot_on('host1', self.vgpus)
        self.before = self.guest_devices(self.server)

    @operations.shows('live migration', devices=['mdev'])
    def test_they_are_others_on_the_destination(self):
        self.live_migrate(self.server)
        self.assertFalse(
            set(self.before) & set(self.guest_devices(self.server))
        )
        self.assert_arrived(self.server)

    def test_there_and_back(self):
        self.live_migrate(self.server)
        self.live_migrate(self.server)
        found = self.guest_devices(self.server)
        self.assertEqual(2, len(found))
        self.assert_stayed(self.server, found)

    def test_both_sets_are_held_meanwhile(self):
        """Whatever the workers of both hosts look at."""

        def look_and_arrive(domain, params):
            for host in self.hosts:
                self.computes[host].driver._accelerators.cycle.run()
            held.update(self.held(self.server))
            self.arrive(domain, params)

        held = {}
        self.migrate = look_and_arrive
        self.live_migrate(self.server)
        self.assertEqual(
            {
                ('host1', 'active'): self.before,
                ('host2', 'incoming'): self.guest_devices(self.server),
            },
            held,
        )
        self.assert_arrived(self.server)

    def test_with_a_numa_topology(self):
        server = self.boot_on(
            'host1',
            self.create_accel_flavor(
                'vgpus', extra_spec={'hw:numa_nodes': '1'}
            ),
        )
        self.live_migrate(server)
        self.assertEqual(2, len(self.guest_devices(server)))
        self.assertEqual([('host2', 'active')], list(self.held(server)))
        self.delete(server, self.server)

    def test_paused(self):
        self.api.post_server_action(self.server['id'], {'pause': None})
        self._wait_for_state_change(self.server, 'PAUSED')
        self.admin_api.post_server_action(
            self.server['id'],
            {'os-migrateLive': {'host': None, 'block_migration': 'auto'}},
        )
        self._wait_for_migration_status(self.server, ['completed'])
        found = self.guest_devices(self.server)
        self.assert_guest(self.server, 'host2', found)
        self.delete(self.server)

    @operations.shows(
        'live migration', 'the guest does not arrive', devices=['mdev']
    )
    def test_libvirt_fails(self):
        self.migrate = self.stay
        self.live_migrate(self.server, 'failed')
        self.assert_stayed(self.server, self.before)

    @operations.shows(
        'live migration', 'the destination makes no device', devices=['mdev']
    )
    def test_the_destination_makes_no_device(self):
        self.break_libvirt((fakelibvirt.Connection, 'nodeDeviceCreateXML'), 1)
        self.live_migrate(self.server, 'failed')
        self.assertEqual(1, self.failures)
        self.assert_stayed(self.server, self.before)

    def test_the_destination_is_not_prepared(self):
        self.break_driver(
            'pre_live_migration', exception.InternalError('broken')
        )
        self.live_migrate(self.server, 'failed')
        self.assert_stayed(self.server, self.before)

    def test_the_destination_does_not_clean_up(self):
        self.migrate = self.stay
        self.break_driver(
            'rollback_live_migration_at_destination',
            exception.InternalError('broken'),
        )
        self.live_migrate(self.server, 'failed')
        self._wait_for_assert(
            lambda: self.assertEqual(
                [('host1', 'active')], list(self.held(self.server))
            )
        )
        self.assert_stayed(self.server, self.before)

    def test_a_failure_of_which_the_destination_hears_nothing(self):
        """Its worker asks Nova whether the migration goes on."""
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.compute.rpcapi.ComputeAPI.live_migration', _fail
            )
        )
        self.live_migrate(self.server, 'error')
        self.assertEqual(
            {('host1', 'active'), ('host2', 'incoming')},
            set(self.held(self.server)),
        )
        self.settle('host2')
        self._wait_for_assert(
            lambda: self.assertEqual(
                [('host1', 'active')], list(self.held(self.server))
            )
        )
        self.assert_stayed(self.server, self.before)

    def test_again_after_such_a_failure(self):
        with fixtures.MonkeyPatch(
            'nova.compute.rpcapi.ComputeAPI.live_migration', _fail
        ):
            self.live_migrate(self.server, 'error')
        self.live_migrate(self.server)
        self.assert_arrived(self.server)

    def test_the_end_fails_on_the_source(self):
        """Nova does not tell the destination then."""
        self.break_driver(
            'post_live_migration_at_source', exception.InternalError('broken')
        )
        self.admin_api.post_server_action(
            self.server['id'],
            {'os-migrateLive': {'host': None, 'block_migration': 'auto'}},
        )
        self._wait_for_migration_status(self.server, ['error'])
        self.settle('host2')
        self.assert_arrived_after_all()

    @operations.shows(
        'live migration', 'a device is stuck on the source', devices=['mdev']
    )
    def test_a_device_that_is_stuck_on_the_source(self):
        self.break_plug('mdev', 'unplug')
        server = self.live_migrate(self.server)
        self.assertEqual(1, self.failures)
        self.settle('host1')
        self.assert_arrived(server)

    def test_the_end_fails_on_the_destination(self):
        self.break_driver(
            'post_live_migration_at_destination',
            exception.InternalError('broken'),
        )
        self.admin_api.post_server_action(
            self.server['id'],
            {'os-migrateLive': {'host': None, 'block_migration': 'auto'}},
        )
        self._wait_for_state_change(self.server, 'ERROR')
        self.assert_arrived_after_all()

    def assert_arrived_after_all(self):
        self._wait_for_assert(
            lambda: self.assertEqual(
                [('host2', 'active')], list(self.held(self.server))
            )
        )
        self._reboot_server(self.server, hard=True)
        # Nova leaves the allocations of such a migration to its host.
        driver = self.computes['host1'].driver
        reconciler = compute_parts.reconciler(
            driver._accelerators, driver._host
        )
        for _time in range(2):
            reconciler.repair()
        self.assert_guest(
            self.server, 'host2', self.held(self.server)['host2', 'active']
        )
        self.assertFalse(self.mdevs('host1'))
        self.delete(self.server)

    def test_the_api_is_away_on_the_destination_at_its_end(self):
        def arrive_alone(domain, params):
            reconnect.append(self.cut_off('host2'))
            self.arrive(domain, params)

        reconnect = []
        self.migrate = arrive_alone
        self.live_migrate(self.server)
        self.assertEqual([('host2', 'incoming')], list(self.held(self.server)))
        reconnect.pop()()
        self.computes['host2'].driver._accelerators.cycle.run()
        self.assert_arrived(self.server)

    def test_the_api_is_away_on_the_destination(self):
        reconnect = self.cut_off('host2')
        self.live_migrate(self.server, 'error')
        reconnect()
        self.assert_stayed(self.server, self.before)

    def test_the_api_does_not_know_what_the_source_has(self):
        reconnect = self.cut_off('host1')
        attachments = self.computes['host1'].driver._accelerators.attachments
        for roles in (('active', 'old'), ('old', 'active')):
            attachments.move(self.server['id'], *roles)
        self.live_migrate(self.server, 'error')
        self.assertIn('the network is cut', self.stdlog.logger.output)
        reconnect()
        self.assert_stayed(self.server, self.before)

    def test_a_device_profile_that_has_changed(self):
        self.change_profile('vgpus', [{'resources:VGPU': '1'}])
        self.assert_refused(
            self.server, 'group 0 has different numbers of devices'
        )

    def test_nova_compute_dies_on_the_destination(self):
        """It comes back while the guest arrives, and knows of it."""
        arriving, arrived = threading.Event(), threading.Event()

        def arrive_slowly(domain, params):
            arriving.set()
            arrived.wait(60)
            self.arrive(domain, params)

        self.migrate = arrive_slowly
        self.admin_api.post_server_action(
            self.server['id'],
            {'os-migrateLive': {'host': None, 'block_migration': 'auto'}},
        )
        self.assertTrue(arriving.wait(60))
        self.restart_compute_service('host2')
        self.computes['host2'].driver._accelerators.cycle.run()
        arrived.set()
        self._wait_for_migration_status(self.server, ['completed'])
        self._wait_for_server_parameter(
            self.server, {'status': 'ACTIVE', 'OS-EXT-STS:task_state': None}
        )
        self.assert_arrived(self.server)


class TestOtherTypes(LiveMigrationTestCase):
    hosts = ()

    def test_no_guest_finds_its_devices_changed(self):
        for host, mdev_type in (
            ('host1', fakelibvirt.NVIDIA_11_VGPU_TYPE),
            ('host2', fakelibvirt.NVIDIA_12_VGPU_TYPE),
        ):
            self.start_accelerated_compute(
                host,
                device_spec=[
                    json.dumps(
                        {
                            **json.loads(devices.GPU_SPEC),
                            'mdev_type': mdev_type,
                        }
                    ),
                    devices.FPGA_SPEC,
                    devices.QAT_SPEC,
                ],
            )
        self.assert_refused(
            self.boot_on('host1', self.vgpus),
            'group 0 is nvidia-11 on the source and nvidia-12 on the',
        )


class TestPciFunctions(LiveMigrationTestCase):
    hosts = ()

    def start(self, driver='c6xxvf'):
        """Two hosts, whose QAT functions a running guest has so."""
        self.hosts = ('host1', 'host2')
        for host, bus in zip(self.hosts, (0x81, 0x91), strict=True):
            info = devices.pci_info(bus=bus)
            for device in info.devices.values():
                device.pci_device = device.pci_device.replace('c6xxvf', driver)
            self.start_accelerated_compute(host, info)

    def boot_with_qat(self, driver):
        self.start(driver)
        self.create_profile('qat', [QAT, {'resources:VGPU': '1'}])
        return self.boot_on('host1', self.create_accel_flavor('qat'))

    @operations.shows('live migration', devices=['PCI'])
    def test_a_driver_that_saves_their_state(self):
        server = self.boot_with_qat('qat_vfio_pci')
        before = self.guest_devices(server)
        self.live_migrate(server)
        self.assertFalse(set(before) & set(self.guest_devices(server)))
        self.assert_arrived(server)

    @operations.shows(
        'live migration', 'the guest does not arrive', devices=['PCI']
    )
    def test_roll_back(self):
        server = self.boot_with_qat('qat_vfio_pci')
        before = self.guest_devices(server)
        self.migrate = self.stay
        self.live_migrate(server, 'failed')
        self.assert_stayed(server, before)

    @operations.shows(
        'live migration', 'refused by the driver of a device', devices=['PCI']
    )
    def test_the_driver_that_fits_all(self):
        self.assert_refused(
            self.boot_with_qat('vfio-pci'),
            'is bound to vfio-pci, which cannot migrate it live',
        )

    def test_a_vendors_driver_that_does_not_save_their_state(self):
        self.assert_refused(
            self.boot_with_qat('nvgrace_gpu_vfio_pci'),
            'is bound to nvgrace_gpu_vfio_pci, which cannot migrate it live',
        )

    def test_a_device_whose_driver_says_nothing_of_it(self):
        self.start()
        server = self.boot_on('host1', self.both)
        self.assert_refused(server, 'cannot be migrated live')


class TestVgpusOfVirtualFunctions(LiveMigrationTestCase):
    """NVIDIA's, with an imitated sysfs and no hardware."""

    hosts = ()

    def setUp(self):
        super().setUp()
        self.hosts = ('host1', 'host2')
        self.sysfs = self.useFixture(fake_sysfs.FakeSysfs())
        self.ecc = {}
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.host.nvidia_smi.ecc_modes',
                lambda cards: {
                    card: self.ecc.get(card.bus, 'Enabled') for card in cards
                },
            )
        )
        spec = {
            'vendor_id': '10de',
            'product_id': '2235',
            'driver': 'nvidia_vfio',
            'vgpu_types': {'558': 2},
            'vgpu_params': 'enable_uvm=1',
        }
        for host, bus in zip(self.hosts, (0x81, 0x91), strict=True):
            # A QAT card has virtual functions, too.
            info = devices.pci_info(gpus=0, fpgas=0, bus=bus)
            for device in info.devices.values():
                for old, new in (
                    ('0x8086', '0x10de'),
                    ('0x37c8', '0x2235'),
                    ('0x37c9', '0x2235'),
                ):
                    device.pci_device = device.pci_device.replace(old, new)
            card = f'0000:{bus:02x}:00.0'
            self.sysfs.set(
                card, device='0x2235', driver__module__version='570.133.10'
            )
            for number in range(1, 9):
                address = self.function(bus, number)
                self.sysfs.set(
                    address,
                    nvidia__current_vgpu_type='0',
                    nvidia__creatable_vgpu_types='558 : NVIDIA A40-12Q',
                    nvidia__vgpu_params='',
                )
                link = self.sysfs.root / 'bus/pci/devices' / address
                if not (link / 'physfn').is_symlink():
                    (link / 'physfn').symlink_to(f'../{card}')
            self.start_accelerated_compute(
                host, info, device_spec=[json.dumps(spec)]
            )
        self.create_profile('vgpu', [{'resources:VGPU': '1'}])
        self.server = self.boot_on('host1', self.create_accel_flavor('vgpu'))

    @staticmethod
    def function(bus, number):
        return f'0000:{bus:02x}:{number // 8:02x}.{number % 8}'

    def types(self, bus):
        """The vGPU types that functions of a card have."""
        return [
            current
            for current in self.read(bus, 'nvidia/current_vgpu_type')
            if current != '0'
        ]

    def parameters(self, bus):
        return list(filter(None, self.read(bus, 'nvidia/vgpu_params')))

    def read(self, bus, attribute):
        return [
            self.sysfs.sysfs.read(self.function(bus, number), attribute)
            for number in range(1, 9)
        ]

    def assert_types(self, here, there):
        """What has a type has the parameters of its line, too."""
        self._wait_for_assert(
            lambda: self.assertEqual(
                (here, there), (self.types(0x81), self.types(0x91))
            )
        )
        for bus, types in ((0x81, here), (0x91, there)):
            self.assertEqual(
                ['enable_uvm=1' for _each in types], self.parameters(bus)
            )

    def test_the_destination_has_its_type_before_the_guest_arrives(self):
        def look_and_arrive(domain, params):
            self.assert_types(['558'], ['558'])
            self.arrive(domain, params)

        self.migrate = look_and_arrive
        self.live_migrate(self.server)
        self.assert_types([], ['558'])
        found = self.guest_devices(self.server)
        self.assert_guest(self.server, 'host2', found)
        self.delete(self.server)
        self.assert_types([], [])

    def test_the_type_is_taken_back_if_the_guest_does_not_arrive(self):
        before = self.guest_devices(self.server)
        self.migrate = self.stay
        self.live_migrate(self.server, 'failed')
        self.assert_types(['558'], [])
        self.assert_guest(self.server, 'host1', before)
        self.delete(self.server)

    def refuse(self, *texts):
        before = self.guest_devices(self.server)
        self.live_migrate(self.server, 'error')
        for text in texts:
            self.assertIn(text, self.stdlog.logger.output)
        self.assert_types(['558'], [])
        self.assert_guest(self.server, 'host1', before)
        self.delete(self.server)

    def test_another_ecc_mode(self):
        self.ecc[0x91] = 'Disabled'
        self.refuse("the ECC mode is 'Enabled' at", "'Disabled' at")

    def test_another_branch_of_the_driver(self):
        self.sysfs.set('0000:91:00.0', driver__module__version='550.90.05')
        self.refuse("the branch of the driver is '570' at", "'550' at")

    def test_other_parameters(self):
        (own,) = (
            self.function(0x81, number + 1)
            for number, text in enumerate(
                self.read(0x81, 'nvidia/vgpu_params')
            )
            if text
        )
        self.sysfs.set(own, nvidia__vgpu_params='uuid=1')
        self.live_migrate(self.server, 'error')
        for text in ("vgpu_params is 'uuid=1' at", "'enable_uvm=1' at"):
            self.assertIn(text, self.stdlog.logger.output)
        self.assertEqual([], self.parameters(0x91))
        self.delete(self.server)
        self.assert_types([], [])


def _fail(*_args, **_kwargs):
    raise exception.MigrationPreCheckError(reason='broken')
