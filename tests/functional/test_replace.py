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

"""Other units in place of those that have failed."""

import fixtures
from nova.tests.functional.api import client
from oslo_config import fixture as config_fixture

from functional import test_publishing
from nova_accel import conf
from nova_accel import exceptions
from nova_accel.testing import fake_sysfs
from nova_accel.virt.holding import changes

HOST, POOL = test_publishing.HOST, test_publishing.POOL


class ReplaceTestCase(test_publishing.PublishingTestCase):
    hosts = ()

    def setUp(self):
        super().setUp()
        self.sysfs = self.useFixture(fake_sysfs.FakeSysfs())
        self.start_accelerated_compute(HOST)
        self.accelerator.microversion = '2.5'
        self.server = self.boot_with_profile('qat')
        (self.failed,) = self.guest_devices(self.server)

    def fail(self):
        self.sysfs.lose(self.failed)
        self.update(2)

    def replace(self, status=204, **body):
        answer = self.accelerator.request(
            'POST',
            f'/servers/{self.server["id"]}/accelerators/replace',
            json=body,
        )
        self.assertEqual(status, answer.status_code, answer.text)
        return answer

    def assert_replaced(self):
        (device,) = self.guest_devices(self.server)
        self.assertNotEqual(self.failed, device)
        self.assert_guest_has_its_arqs(self.server, (0, 'PCI'))
        self.update(2)
        # The failed one is kept for the operator.
        self.assertEqual({POOL: (8, 1, 1)}, self.units('CUSTOM_QAT'))
        self.assert_counted(self.server)
        self.assert_journal()

    def assert_journal(self):
        """The host has what its guest has, and nothing that leaves."""
        attachments = self.computes[HOST].driver._accelerators.attachments
        self.assertEqual(
            self.guest_devices(self.server),
            [str(arq.handle.address) for arq in attachments.held.arqs()],
        )
        self.assertFalse(attachments.settle(self.server['id']))

    def assert_kept(self):
        self.assertEqual([self.failed], self.guest_devices(self.server))
        self.update(2)
        self.assertEqual(1, self.units('CUSTOM_QAT')[POOL][2])
        self.assert_counted(self.server)
        self.assert_journal()


class TestAsked(ReplaceTestCase):
    def test_a_running_guest_that_lets_go(self):
        self.fail()
        self.replace()
        self.assert_replaced()
        actions = self.admin_api.get_instance_actions(self.server['id'])
        self.assertEqual('replace_accelerators', actions[0]['action'])

    def test_a_stopped_server(self):
        self._stop_server(self.server)
        self.fail()
        self.replace()
        self._start_server(self.server)
        self.assert_replaced()

    def test_nothing_has_failed(self):
        self.replace(409)
        self.assert_kept()

    def test_the_guest_does_not_let_go(self):
        self.fail()

        def hold_on(guest, arqs, timeout_s):
            raise exceptions.DeviceError.for_all('the guest holds on')

        with fixtures.MonkeyPatch('nova_accel.virt.hot_plug.detach', hold_on):
            answer = self.replace(409)
        self.assertIn('a hard reboot replaces what has failed', answer.text)
        self.assert_kept()
        self._reboot_server(self.server, hard=True)
        self.assert_replaced()

    def test_no_unit_is_free(self):
        self.fail()
        others = [self.boot_with_profile('qat') for _other in range(7)]
        answer = self.replace(409)
        self.assertIn('migrate the server to another host', answer.text)
        self.assertEqual([self.failed], self.guest_devices(self.server))
        self._delete_server(others[0])
        self.update(2)
        self.replace()
        self.assertNotEqual([self.failed], self.guest_devices(self.server))

    def test_placement_refuses(self):
        """Another server has been given the last unit meanwhile."""
        self.fail()

        def refuse(consumer, resources):
            raise exceptions.Conflict('others have it')

        with fixtures.MonkeyPatch(
            'nova_accel.client.our_allocations.claim', refuse
        ):
            self.replace(409)
        self.assert_kept()

    def test_a_server_that_is_busy(self):
        self.fail()
        self.admin_api.post_server_action(self.server['id'], {'pause': None})
        self._wait_for_state_change(self.server, 'PAUSED')
        self.replace(409)
        self.assert_kept()

    def test_a_step_that_fails(self):
        """The server has one of the two, and all is counted right."""
        self.fail()
        for target, name in (
            (changes.Changes, 'commit'),
            (changes.Changes, 'settle'),
        ):
            self.break_method(
                target, name, exceptions.DeviceError('the disk is full')
            )
            self.accelerator.request(
                'POST',
                f'/servers/{self.server["id"]}/accelerators/replace',
                json={},
            )
            self.update(2)
            self._reboot_server(self.server, hard=True)
            self.assert_replaced()
            self.sysfs.revive(self.failed, '8086')
            (self.failed,) = self.guest_devices(self.server)
            self.fail()


class TestByItself(ReplaceTestCase):
    def test_a_hard_reboot(self):
        self.fail()
        self._reboot_server(self.server, hard=True)
        self.assert_replaced()

    def test_a_start(self):
        self._stop_server(self.server)
        self.fail()
        self._start_server(self.server)
        self.assert_replaced()

    def test_not_if_the_operator_does_not_want_it(self):
        self.useFixture(config_fixture.Config(conf.CONF)).config(
            replace_failed=False, group='nova_accel'
        )
        self._stop_server(self.server)
        self.fail()
        self.assertRaises(
            client.OpenStackApiException, self._start_server, self.server
        )

    def test_killed_before_it_was_settled(self):
        """The next nova-compute ends what the last one began."""
        self.fail()
        self.break_method(
            changes.Changes, 'settle', exceptions.DeviceError('killed'), 1
        )
        self.replace()
        self.restart_compute_service(HOST)
        self.settle(HOST)
        self.assert_replaced()
