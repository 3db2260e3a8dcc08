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

"""Another device profile for a server that stays where it is."""

import threading

import fixtures
from nova import context as nova_context
from nova import objects
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.tests.functional.api import client

from functional import base
from functional import changes_by_state
from functional import test_publishing
from nova_accel import exceptions
from nova_accel.client import our_allocations
from nova_accel.model.profiles import device_profile
from nova_accel.virt.holding import changes

HOST = test_publishing.HOST
NOWHERE = '0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e5f'


class SetTestCase(test_publishing.PublishingTestCase):
    hosts = ()

    def setUp(self):
        super().setUp()
        self.start_accelerated_compute(HOST)
        self.accelerator.microversion = '2.5'
        self.create_profile('two', [base.FPGA, base.QAT])

    def boot_plain(self):
        return self.boot(self._create_flavor())

    def set(self, server, name, status=200):
        answer = self.accelerator.request(
            'PUT',
            f'/servers/{server["id"]}/accelerators',
            json={'device_profile': name},
        )
        self.assertEqual(status, answer.status_code, answer.text)
        return answer

    def confirm(self, server, source):
        # Nova's driver looks at the one option that all computes here share.
        self.flags(host=source)
        return self._confirm_resize(server)

    def assert_has(self, server, name, *expected):
        """Guest, API, journal, Placement and both flavors say the same.

        :param expected: as for ``assert_guest_has_its_arqs``
        """
        if expected:
            self.assert_guest_has_its_arqs(server, *expected)
        else:
            self.assertEqual([], self.guest_devices(server))
            self.assertEqual([], self.arqs(server))
            self.assert_counted(server)
        attachments = self.computes[HOST].driver._accelerators.attachments
        self.assertEqual(
            sorted(arq['uuid'] for arq in self.arqs(server)),
            sorted(arq.uuid for arq in attachments.held.arqs_of(server['id'])),
        )
        self.assertFalse(attachments.settle(server['id']))
        self.assertEqual(
            {name} if expected else set(),
            {arq['device_profile_name'] for arq in self.arqs(server)},
        )
        self.assert_named(server, name)

    def assert_named(self, server, name):
        """Both copies of the flavor name the device profile."""
        context = nova_context.get_admin_context()
        spec = objects.RequestSpec.get_by_instance_uuid(context, server['id'])
        with nova_context.target_cell(
            context,
            objects.InstanceMapping.get_by_instance_uuid(
                context, server['id']
            ).cell_mapping,
        ) as cell:
            instance = objects.Instance.get_by_uuid(
                cell, server['id'], expected_attrs=['flavor']
            )
        self.assertEqual(
            [name, name, None],
            [
                flavor.extra_specs.get(device_profile.FLAVOR_KEY)
                for flavor in (spec.flavor, instance.flavor)
            ]
            + [instance.task_state],
        )


class TestSet(SetTestCase):
    def test_a_plain_server_that_runs(self):
        server = self.boot_plain()
        self.set(server, 'qat')
        self.assert_has(server, 'qat', (0, 'PCI'))
        actions = self.admin_api.get_instance_actions(server['id'])
        self.assertEqual('set_accelerators', actions[0]['action'])
        self.set(server, None)
        self.assert_has(server, None)
        self.delete(server)

    def test_a_plain_server_that_is_stopped(self):
        server = self._stop_server(self.boot_plain())
        self.set(server, 'qat')
        self._start_server(server)
        self.assert_has(server, 'qat', (0, 'PCI'))
        self._stop_server(server)
        self.set(server, None)
        self._start_server(server)
        self.assert_has(server, None)
        self.delete(server)

    def test_what_stays_keeps_its_device(self):
        server = self.boot_with_profile('qat')
        before = self.guest_devices(server)
        self.set(server, 'two')
        self.assert_has(server, 'two', (0, 'PCI'), (1, 'PCI'))
        self.assertLess(set(before), set(self.guest_devices(server)))
        self.set(server, 'fpga')
        self.assert_has(server, 'fpga', (0, 'PCI'))
        self.assertNotEqual(before, self.guest_devices(server))
        self.set(server, 'fpga')
        self.assert_has(server, 'fpga', (0, 'PCI'))

    def test_moves_ask_for_it(self):
        server = self.boot_plain()
        self.set(server, 'qat')
        self.start_accelerated_compute('host2')
        server = self.confirm(self._migrate_server(server), HOST)
        self.assertEqual('host2', server['OS-EXT-SRV-ATTR:host'])
        self.assert_guest_has_its_arqs(server, (0, 'PCI'))
        server = self._unshelve_server(self._shelve_server(server))
        self.assert_guest_has_its_arqs(server, (0, 'PCI'))
        # A resize takes what the new flavor says.
        source = server['OS-EXT-SRV-ATTR:host']
        server = self._resize_server(server, self._create_flavor(memory_mb=65))
        server = self.confirm(server, source)
        self.assertEqual([], self.guest_devices(server))
        self.delete(server)


class TestGuestHoldsOn(SetTestCase):
    def setUp(self):
        super().setUp()
        self.server = self.boot_with_profile('qat')

        def hold_on(guest, arqs, timeout_s):
            raise exceptions.DeviceError.for_all('the guest holds on')

        with fixtures.MonkeyPatch('nova_accel.virt.hot_plug.detach', hold_on):
            (told,) = self.set(self.server, None).json()['accelerators']
        self.assertTrue(told['is_leaving'])
        self.assertEqual(1, len(self.guest_devices(self.server)))
        self.assert_named(self.server, None)
        self.update(2)
        self.assertEqual(1, len(self.arqs(self.server)))

    def test_until_it_is_stopped(self):
        self._stop_server(self.server)
        self.update()
        self.assertEqual([], self.arqs(self.server))
        self._start_server(self.server)
        self.assert_has(self.server, None)

    def test_until_it_is_rebooted(self):
        self._reboot_server(self.server)
        self.assert_has(self.server, None)

    def test_until_it_is_suspended(self):
        for action in ('suspend', 'resume'):
            self.admin_api.post_server_action(
                self.server['id'], {action: None}
            )
            self._wait_for_state_change(
                self.server,
                {'suspend': 'SUSPENDED', 'resume': 'ACTIVE'}[action],
            )
            self.update()
        self.assert_has(self.server, None)

    def test_until_it_is_rescued(self):
        for action, state in (('rescue', 'RESCUE'), ('unrescue', 'ACTIVE')):
            self.admin_api.post_server_action(
                self.server['id'], {action: None}
            )
            self._wait_for_state_change(self.server, state)
            self.assertEqual([], self.guest_devices(self.server))
            self.update()
        self.assert_has(self.server, None)

    def test_until_it_is_deleted(self):
        self.delete(self.server)

    def test_until_it_has_moved(self):
        self.start_accelerated_compute('host2')
        server = self._migrate_server(self.server)
        server = self.confirm(server, HOST)
        self.assertEqual([], self.guest_devices(server))
        self.delete(server)

    def test_a_second_change_waits(self):
        self.set(self.server, 'qat', 409)
        self._reboot_server(self.server, hard=True)
        self.set(self.server, 'qat')
        self.assert_has(self.server, 'qat', (0, 'PCI'))


class TestRefused(SetTestCase):
    def assert_refused(self, server, name, words, expected=()):
        before = self.guest_devices(server)
        self.assertIn(words, self.set(server, name, 409).text)
        self.update(2)
        self.assertEqual(before, self.guest_devices(server))
        self.assert_has(server, *expected or (None,))

    def test_no_unit_is_free(self):
        server = self.boot_plain()
        others = [self.boot_with_profile('qat') for _other in range(8)]
        self.assert_refused(server, 'qat', 'no pool of its host has 1 free')
        self._delete_server(others[0])
        self.update(2)
        self.set(server, 'qat')
        self.assert_has(server, 'qat', (0, 'PCI'))

    def test_placement_refuses(self):
        server = self.boot_plain()

        def refuse(consumer, resources):
            raise exceptions.Conflict.for_all('others have it')

        with fixtures.MonkeyPatch(
            'nova_accel.client.our_allocations.claim', refuse
        ):
            self.assert_refused(server, 'qat', 'others have it')

    def test_the_guest_has_no_port_left(self):
        server = self.boot_with_profile('qat')
        self.break_libvirt((fakelibvirt.Domain, 'attachDeviceFlags'), 1)
        self.assert_refused(
            server, 'two', 'free PCIe port', ('qat', (0, 'PCI'))
        )

    def test_a_server_that_is_busy(self):
        server = self.boot_plain()
        self.admin_api.post_server_action(server['id'], {'pause': None})
        self._wait_for_state_change(server, 'PAUSED')
        self.assert_refused(server, 'qat', 'active or stopped')

    def test_cyborgs_key(self):
        flavor = self._create_flavor(
            extra_spec={device_profile.CYBORG_FLAVOR_KEY: 'other'}
        )
        server = self.boot_plain()
        context = nova_context.get_admin_context()
        instance = objects.Instance.get_by_uuid(
            context, server['id'], expected_attrs=['flavor']
        )
        instance.flavor = objects.Flavor.get_by_flavor_id(context, flavor)
        instance.save()
        answer = self.set(server, 'qat', 409)
        self.assertIn('server to-native', answer.text)

    def test_no_such_thing(self):
        server = self.boot_plain()
        self.assertIn('nonsense', self.set(server, 'nonsense', 404).text)
        self.assert_has(server, None)
        self.set({'id': NOWHERE}, 'qat', 404)


class TestInterrupted(SetTestCase):
    """A step fails, and the server has the old profile or the new one."""

    def test_a_step_that_fails(self):
        server = self.boot_with_profile('qat')
        for target, method, fault in (
            (changes.Changes, 'commit', exceptions.DeviceError('disk full')),
            (changes.Changes, 'settle', exceptions.DeviceError('disk full')),
            (
                changes.Changes,
                'rename',
                exceptions.ServiceUnavailable('Nova is away'),
            ),
        ):
            self.break_method(target, method, fault)
            self.accelerator.request(
                'PUT',
                f'/servers/{server["id"]}/accelerators',
                json={'device_profile': 'two'},
            )
            self.restart_compute_service(HOST)
            self.update(2)
            self.set(server, 'two')
            self.assert_has(server, 'two', (0, 'PCI'), (1, 'PCI'))
            self.set(server, 'qat')
            self.assert_has(server, 'qat', (0, 'PCI'))


class TestMeanwhile(SetTestCase):
    """What Nova does meanwhile; ``test_changes_by_state`` has the states."""

    def during(self, meanwhile):
        """Do something while a plain server is changed."""
        server = self.boot_plain()
        claim = our_allocations.claim

        def claim_meanwhile(*arguments):
            meanwhile(server)
            claim(*arguments)

        with fixtures.MonkeyPatch(
            'nova_accel.client.our_allocations.claim', claim_meanwhile
        ):
            self.accelerator.request(
                'PUT',
                f'/servers/{server["id"]}/accelerators',
                json={'device_profile': 'qat'},
            )
        return server

    def test_nova_changes_nothing_meanwhile(self):
        refused = []

        def act(server):
            arguments = {
                'reboot': {'type': 'HARD'},
                'os-migrateLive': {'host': None, 'block_migration': 'auto'},
                'rebuild': {'imageRef': server['image']['id']},
                'resize': {'flavorRef': self._create_flavor(memory_mb=65)},
            }
            for action in changes_by_state.REFUSED_MEANWHILE.values():
                error = self.assertRaises(
                    client.OpenStackApiException,
                    self.admin_api.post_server_action,
                    server['id'],
                    {action: arguments.get(action)},
                )
                refused.append(error.response.status_code)
            refused.append(self.set(server, 'two', 409).status_code)

        server = self.during(act)
        self.assertEqual(
            [409] * (len(changes_by_state.REFUSED_MEANWHILE) + 1), refused
        )
        self.assert_has(server, 'qat', (0, 'PCI'))

    def test_it_is_deleted_meanwhile(self):
        threads = []

        def delete(server):
            # It waits for the host, which waits for the change to end.
            threads.append(
                threading.Thread(
                    target=self.api.delete_server, args=(server['id'],)
                )
            )
            threads[0].start()
            self._wait_for_server_parameter(
                server, {'OS-EXT-STS:task_state': 'deleting'}
            )

        server = self.during(delete)
        threads[0].join()
        self._wait_until_deleted(server)
        self.assert_nothing_left()
