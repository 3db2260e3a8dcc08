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

"""What becomes of accelerators that change, in each state of a server."""

import contextlib

import fixtures
from nova import context as nova_context
from nova import objects

from functional import changes_by_state
from functional import test_set_profile
from nova_accel import exceptions
from nova_accel.testing import fake_sysfs

_HOST = test_set_profile.HOST

_Operation = changes_by_state.Operation
_Outcome = changes_by_state.Outcome

#: An action of Nova -> the status of the server after it.
_STATUS = {
    'delete': 'SOFT_DELETED',
    'migrate': 'VERIFY_RESIZE',
    'os-start': 'ACTIVE',
    'os-stop': 'SHUTOFF',
    'pause': 'PAUSED',
    'rescue': 'RESCUE',
    'restore': 'ACTIVE',
    'resume': 'ACTIVE',
    'revertResize': 'ACTIVE',
    'shelve': 'SHELVED',
    'shelveOffload': 'SHELVED_OFFLOADED',
    'suspend': 'SUSPENDED',
    'unpause': 'ACTIVE',
    'unrescue': 'ACTIVE',
    'unshelve': 'ACTIVE',
}


class TestTable(test_set_profile.SetTestCase):
    """All cells of :data:`.changes_by_state.TABLE`."""

    def setUp(self):
        self.sysfs = self.useFixture(fake_sysfs.FakeSysfs())
        super().setUp()
        self.start_accelerated_compute('host2')
        self.flags(reclaim_instance_interval=3600, shelved_offload_time=-1)

    def report(self):
        """Both hosts do, with what they find."""
        self.update(2)
        self.settle('host2')

    def act(self, server, action):
        if action == 'delete':
            self.api.delete_server(server['id'])
        elif action in ('active', 'error'):
            self.admin_api.post_server_action(
                server['id'], {'os-resetState': {'state': action}}
            )
            return
        else:
            self.admin_api.post_server_action(server['id'], {action: None})
        self._wait_for_state_change(server, _STATUS[action])

    @contextlib.contextmanager
    def brought_to(self, server, state):
        for action in state.there:
            self.act(server, action)
        instance = objects.Instance.get_by_uuid(
            nova_context.get_admin_context(), server['id']
        )
        self.assertEqual(state.vm_state, instance.vm_state)

        def hold_on(guest, arqs, timeout_s):
            raise exceptions.DeviceError.for_all('the guest holds on')

        with contextlib.ExitStack() as stack:
            if state == changes_by_state.HOLDS_ON:
                stack.enter_context(
                    fixtures.MonkeyPatch(
                        'nova_accel.virt.hot_plug.detach', hold_on
                    )
                )
            yield
        for action in state.back:
            self.act(server, action)

    def walk(self, operation, profile, change, check):
        """Try an operation in each state.

        A server that is refused is used for the next state, too.

        :param profile: of the server before it
        :param change: makes the operation, and takes the status of the answer
        :param check: of a running server, after the operation
        """
        server = None
        for state, outcomes in changes_by_state.TABLE.items():
            outcome = outcomes[operation]
            server = server or self.boot(
                self.create_accel_flavor(profile)
                if profile
                else self._create_flavor(),
                az=f'nova:{_HOST}',
            )
            with self.brought_to(server, state):
                before = self.arqs(server)
                change(server, outcome)
                if outcome is _Outcome.AT_ONCE:
                    check(server)
                elif outcome is not _Outcome.AT_START:
                    self.assertEqual(before, self.arqs(server), state)
            if outcome in (_Outcome.REFUSED, _Outcome.NOTHING):
                server = self.admin_api.get_server(server['id'])
                if profile:
                    self.assert_guest_has_its_arqs(server, (0, 'PCI'))
                else:
                    self.assertEqual([], self.guest_devices(server))
                self.assert_named(server, profile)
                continue
            if outcome is _Outcome.HELD:
                self.assertEqual(1, len(self.guest_devices(server)))
                self._reboot_server(server, hard=True)
            check(server)
            self.flags(reclaim_instance_interval=0)
            self.delete(server)
            self.flags(reclaim_instance_interval=3600)
            server = None

    def test_attach(self):
        self.walk(
            _Operation.ATTACH,
            None,
            lambda server, outcome: self.set(
                server, 'qat', status_of(outcome)
            ),
            lambda server: self.assert_has(server, 'qat', (0, 'PCI')),
        )

    def test_detach(self):
        self.walk(
            _Operation.DETACH,
            'qat',
            lambda server, outcome: self.set(server, None, status_of(outcome)),
            lambda server: self.assert_has(server, None),
        )

    def test_replace(self):
        failed = []

        def replace(server, outcome):
            for arq in self.arqs(server):
                failed.append(arq)
                self.sysfs.lose(address_of(arq))
            self.report()
            answer = self.accelerator.request(
                'POST',
                f'/servers/{server["id"]}/accelerators/replace',
                json={},
            )
            self.assertEqual(
                {200: 204}.get(status_of(outcome), status_of(outcome)),
                answer.status_code,
                answer.text,
            )
            for arq in failed:
                self.sysfs.revive(address_of(arq), '8086')
            self.report()

        def check(server):
            self.assert_has(server, 'qat', (0, 'PCI'))
            self.assertNotIn(
                failed[-1]['uuid'], [arq['uuid'] for arq in self.arqs(server)]
            )

        self.walk(_Operation.REPLACE, 'qat', replace, check)


def status_of(outcome):
    return {_Outcome.REFUSED: 409, _Outcome.NOTHING: 404}.get(outcome, 200)


def address_of(arq):
    return '{domain}:{bus}:{device}.{function}'.format(
        **arq['attach_handle_info']
    )
