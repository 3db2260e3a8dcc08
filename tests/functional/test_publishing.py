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

from nova import context as nova_context
from nova import exception
from nova.scheduler.client import report

from functional import base
from nova_accel.testing import devices
from nova_accel.testing import fake_fpga

HOST = 'host1'
QAT_APART = json.dumps({**json.loads(devices.QAT_SPEC), 'pool': False})
QAT_TRAIT = json.dumps(
    {**json.loads(devices.QAT_SPEC), 'traits': ['CUSTOM_GOLD']}
)
POOL = 'qat_8086_37c9'


class PublishingTestCase(base.AcceleratorTestCase):
    def setUp(self):
        super().setUp()
        self.create_profile('qat', [base.QAT])
        self.create_profile('fpga', [base.FPGA])

    def boot_with_profile(self, name, **kwargs):
        return self.boot(self.create_accel_flavor(name), **kwargs)

    def update(self, times=1):
        """Nova updates its resources, after our worker's cycle."""
        for _time in range(times):
            self.settle(HOST)
            self.computes[HOST].manager.update_available_resource(
                nova_context.get_admin_context()
            )

    def units(self, resource_class):
        """Name after the infix -> total, reserved, used."""
        return {
            provider['name'].removeprefix(f'{HOST}_accel_'): (
                provider['inventory'][resource_class],
                provider['reserved'][resource_class],
                provider['usage'][resource_class],
            )
            for provider in self.accelerator_providers(HOST)
            if resource_class in provider['inventory']
        }

    def pci_devices(self):
        return self.connection(HOST).pci_info.devices

    def pull_out(self, *names):
        """libvirt does not list the devices any more."""
        pulled = {name: self.pci_devices().pop(name) for name in names}
        return lambda: self.pci_devices().update(pulled)

    def provider_of(self, server):
        """The name after the infix of the provider of its one ARQ."""
        (arq,) = self.arqs(server)
        return self.provider_names()[arq['device_rp_uuid']].removeprefix(
            f'{HOST}_accel_'
        )

    def name_of(self, address):
        return 'pci_' + address.replace(':', '_').replace('.', '_')


class TestReshape(PublishingTestCase):
    def restart(self, *lines):
        """With other lines for the QAT functions."""
        self.flags(
            device_spec=[devices.GPU_SPEC, devices.FPGA_SPEC, *lines],
            group='nova_accel',
        )
        stopped = self.computes[HOST], self.compute_rp_uuids[HOST]
        try:
            self.restart_compute_service(HOST)
        except Exception:
            self.computes[HOST], self.compute_rp_uuids[HOST] = stopped
            raise

    def allocations(self, server):
        """Provider name after the infix -> units of QAT."""
        names = self.provider_names()
        found = self.placement.get(
            f'/allocations/{server["id"]}', version='1.28'
        )
        return {
            names[rp_uuid].removeprefix(f'{HOST}_accel_'): allocation[
                'resources'
            ]['CUSTOM_QAT']
            for rp_uuid, allocation in found.body['allocations'].items()
            if rp_uuid in names
        }

    def assert_apart(self, server, device):
        own = self.name_of(device)
        self.assertEqual({own: 1}, self.allocations(server))
        units = self.units('CUSTOM_QAT')
        self.assertEqual((1, 0, 1), units.pop(own))
        units.pop(POOL, None)
        self.assertEqual({(1, 0, 0)}, set(units.values()))
        self.assertEqual(7, len(units))
        self.assertEqual([device], self.guest_devices(server))

    def test_a_pool_is_taken_apart_and_made_again(self):
        server, other = (
            self.boot_with_profile('qat'),
            self.boot_with_profile('qat'),
        )
        ((device,), (others,)) = map(self.guest_devices, (server, other))
        self.assertEqual({POOL: (8, 0, 2)}, self.units('CUSTOM_QAT'))
        self._delete_server(other)

        self.restart(QAT_APART)
        self.assert_apart(server, device)
        # What is of no use any more cannot be taken meanwhile.
        self.assertEqual((8, 8, 0), self.units('CUSTOM_QAT')[POOL])
        self.update(2)
        self.assert_apart(server, device)
        self.assertEqual(8, len(self.units('CUSTOM_QAT')))
        self.assertEqual(self.name_of(device), self.provider_of(server))
        # Its devices are its own as before, and it can get others.
        more = [self.boot_with_profile('qat') for _number in range(7)]
        self.assertIn(
            others,
            [found for each in more for found in self.guest_devices(each)],
        )
        self.boot_with_profile('qat', expected_state='ERROR')
        for each in more:
            self._delete_server(each)

        self.restart(devices.QAT_SPEC)
        self.assertEqual({POOL: 1}, self.allocations(server))
        self.update(2)
        self.assertEqual({POOL: (8, 0, 1)}, self.units('CUSTOM_QAT'))
        self.assertEqual(POOL, self.provider_of(server))
        self.assertEqual([device], self.guest_devices(server))
        self.delete(server)
        self.assertEqual({POOL: (8, 0, 0)}, self.units('CUSTOM_QAT'))

    def test_other_traits(self):
        server = self.boot_with_profile('qat')
        self.restart(QAT_TRAIT)
        self.update(2)
        ((name, units),) = self.units('CUSTOM_QAT').items()
        self.assertNotEqual(POOL, name)
        self.assertEqual((8, 0, 1), units)
        self.assertEqual({name: 1}, self.allocations(server))
        self.assertEqual(name, self.provider_of(server))
        self.delete(server)

    def test_a_restart_without_a_change(self):
        server = self.boot_with_profile('qat')
        for _restart in range(2):
            self.restart(devices.QAT_SPEC)
            self.assertEqual({POOL: (8, 0, 1)}, self.units('CUSTOM_QAT'))
        self.delete(server)

    def test_a_migration_that_waits_to_be_confirmed(self):
        """A resize to the same host holds two, of two consumers."""
        self.flags(allow_resize_to_same_host=True)
        server = self.boot_with_profile('qat')
        (old,) = self.guest_devices(server)
        server = self._resize_server(
            server, self.create_accel_flavor('qat', memory_mb=128)
        )
        (new,) = self.guest_devices(server)
        self.restart(QAT_APART)
        self.assertEqual({self.name_of(new): 1}, self.allocations(server))
        units = self.units('CUSTOM_QAT')
        self.assertEqual(
            [(1, 0, 1)] * 2,
            [units[self.name_of(device)] for device in (old, new)],
        )
        self.update(2)
        # The one option that all of Nova's services here share.
        self.flags(host=HOST)
        self._revert_resize(server)
        self.update()
        self.assert_apart(server, old)
        self.delete(server)

    def test_a_failure_leaves_all_as_it_was(self):
        server = self.boot_with_profile('qat')
        (device,) = self.guest_devices(server)
        before = (
            self.units('CUSTOM_QAT'),
            self.allocations(server),
            self.journal(),
        )
        self.break_method(
            report.SchedulerReportClient,
            '_reshape',
            exception.ReshapeFailed(error='Placement is broken'),
            times=2,
        )
        for _start in range(2):
            self.assertRaises(exception.ReshapeFailed, self.restart, QAT_APART)
            self.assertEqual(
                before,
                (
                    self.units('CUSTOM_QAT'),
                    self.allocations(server),
                    self.journal(),
                ),
            )
        self.assertEqual(2, self.failures)
        self.restart(QAT_APART)
        self.update(2)
        self.assert_apart(server, device)
        self.delete(server)

    def journal(self):
        return {
            path.name: json.loads(path.read_text())['arqs']
            for path in self.state_path.glob('nova_accel/*/*.json')
        }

    def test_a_failure_and_the_old_lines_again(self):
        server = self.boot_with_profile('qat')
        before = self.provider_names()
        self.break_method(
            report.SchedulerReportClient,
            '_reshape',
            exception.ReshapeFailed(error='Placement is broken'),
        )
        self.assertRaises(exception.ReshapeFailed, self.restart, QAT_APART)
        self.restart(devices.QAT_SPEC)
        self.update(2)
        self.assertEqual(before, self.provider_names())
        self.assertEqual({POOL: (8, 0, 1)}, self.units('CUSTOM_QAT'))
        self.delete(server)

    def test_placement_is_changed_by_another_meanwhile(self):
        """Nova tries such a conflict again at once."""
        server = self.boot_with_profile('qat')
        (device,) = self.guest_devices(server)
        self.break_method(
            report.SchedulerReportClient,
            '_reshape',
            exception.PlacementReshapeConflict(error='conflict'),
        )
        self.restart(QAT_APART)
        self.assertEqual(1, self.failures)
        self.update(2)
        self.assert_apart(server, device)
        self.delete(server)


class TestVanished(PublishingTestCase):
    def test_a_device_is_pulled_out_while_a_guest_has_it(self):
        """Cyborg's host could never report again after that."""
        server = self.boot_with_profile('qat')
        (device,) = self.guest_devices(server)
        self.pull_out(self.name_of(device))
        self.update(2)
        self.assertEqual({POOL: (8, 0, 1)}, self.units('CUSTOM_QAT'))
        self.assertEqual(
            ['Bound'], [arq['state'] for arq in self.arqs(server)]
        )
        others = [self.boot_with_profile('qat') for _number in range(7)]
        self.boot_with_profile('qat', expected_state='ERROR')
        for other in others:
            self._delete_server(other)
        self._delete_server(server)
        self.update()
        self.assertEqual({POOL: (7, 0, 0)}, self.units('CUSTOM_QAT'))
        self.assertEqual(7 + 2 + 16, len(self.attach_handles()))

    def test_the_last_device_of_a_provider(self):
        """It is in Placement for as long as the server, and no longer."""
        server = self.boot_with_profile('fpga')
        provider = self.provider_of(server)
        card = 'pci_0000_82_00_0'
        put_back = self.pull_out(card, f'{card[:-1]}1', f'{card[:-1]}2')
        self.update(3)
        self.assertEqual({provider: (1, 0, 1)}, self.units('FPGA'))
        self._delete_server(server)
        self.update(2)
        self.assertEqual({}, self.units('FPGA'))
        self.assertFalse(
            [name for name in self.provider_names().values() if card in name]
        )
        self.assert_nothing_left()
        put_back()
        self.update(2)
        self.assertEqual({(1, 0, 0)}, set(self.units('FPGA').values()))
        server = self.boot_with_profile('fpga')
        self.delete(server)


class TestReserved(PublishingTestCase):
    def test_a_broken_device(self):
        """No one gets any of it, and who has some of it keeps that."""
        server = self.boot_with_profile('fpga')
        self.addCleanup(fake_fpga.FakeFpgaDriver.faults.clear)
        fake_fpga.FakeFpgaDriver.faults['0000:82:00.0'] = 'it burns'
        self.update()
        self.assertEqual(
            [(1, 0, 1), (1, 1, 0)], sorted(self.units('FPGA').values())
        )
        failed = self.boot_with_profile('fpga', expected_state='ERROR')
        self._delete_server(failed)
        self.assertEqual(1, len(self.guest_devices(server)))
        self._delete_server(server)
        self.update()
        self.assertEqual({(1, 1, 0)}, set(self.units('FPGA').values()))
        fake_fpga.FakeFpgaDriver.faults.clear()
        self.update()
        self.assertEqual({(1, 0, 0)}, set(self.units('FPGA').values()))
        self.delete(self.boot_with_profile('fpga'))

    def test_a_drained_device(self):
        """All of it, and nothing of any other."""
        server = self.boot_with_profile('fpga')
        card = next(
            device['uuid']
            for device in self.accelerator.get('/devices')['devices']
            if device['type'] == 'FPGA'
        )
        self.accelerator.post(f'/devices/{card}/disable', None)
        # The API refuses at once, whatever Placement has.
        failed = self.boot_with_profile('fpga', expected_state='ERROR')
        self._delete_server(failed)
        self.update()
        self.assertEqual(
            [(1, 0, 1), (1, 1, 0)], sorted(self.units('FPGA').values())
        )
        self.assertEqual({POOL: (8, 0, 0)}, self.units('CUSTOM_QAT'))
        self.assertEqual(1, len(self.guest_devices(server)))
        self.api.post_server_action(server['id'], {'reboot': {'type': 'HARD'}})
        self._wait_for_server_parameter(
            server, {'status': 'ACTIVE', 'OS-EXT-STS:task_state': None}
        )
        self._delete_server(server)
        self.update()
        self.assertEqual({(1, 1, 0)}, set(self.units('FPGA').values()))
        self.accelerator.post(f'/devices/{card}/enable', None)
        self.update()
        self.assertEqual({(1, 0, 0)}, set(self.units('FPGA').values()))
        self.delete(self.boot_with_profile('fpga'))
