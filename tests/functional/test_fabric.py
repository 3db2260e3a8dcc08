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

import os
import random

import fixtures
from nova.tests.fixtures import libvirt as fakelibvirt

from functional import board
from nova_accel.testing import fabric_manager
from nova_accel.testing import fmpm

#: How many random sequences are tried of each board.
_SEQUENCES = int(os.environ.get('FABRIC_SEQUENCES', '1'))
_STEPS = 8

#: Sequences of one test, which must end in time on a busy machine.
_AT_ONCE = 10

HOST = board.HOST


class TestOneServer(board.BoardTestCase):
    def test_each_operation(self):
        server = self.boot(self.flavors[2])
        self.assertEqual(1, len(self.daemon.active))
        for act in (
            lambda: self._stop_server(server),
            lambda: self._start_server(server),
            lambda: self._reboot_server(server),
            lambda: self._reboot_server(server, hard=True),
            lambda: self.rebuild(server),
            lambda: self._suspend_server(server),
            lambda: self._resume_server(server),
            lambda: self._shelve_server(server),
            lambda: self._unshelve_server(server),
        ):
            act()
            self.assert_as_needed()
        self.delete(server)
        self.assertEqual({}, self.daemon.active)

    def rebuild(self, server):
        self.api.post_server_action(
            server['id'],
            {
                'rebuild': {
                    'imageRef': self.glance.auto_disk_config_enabled_image[
                        'id'
                    ]
                }
            },
        )
        self._wait_for_state_change(server, 'ACTIVE')

    def test_resize(self):
        server = self.boot(self.flavors[1])
        for end in ('revert', 'confirm'):
            self.api.post_server_action(
                server['id'], {'resize': {'flavorRef': self.flavors[4]}}
            )
            self._wait_for_state_change(server, 'VERIFY_RESIZE')
            self.assertEqual(
                [4], [len(each) for each in self.daemon.active.values()]
            )
            self.assert_as_needed()
            self.end(server, end)
            self.assert_as_needed()
        self.delete(server)

    def end(self, server, end):
        self.api.post_server_action(server['id'], {f'{end}Resize': None})
        self._wait_for_state_change(server, 'ACTIVE')

    def test_a_partition_that_cannot_be_activated(self):
        self.daemon.refuse('-a', fmpm.NVLINK_ERROR)
        server = self.boot(self.flavors[2], expected_state='ERROR')
        self.assertEqual({}, self.daemon.active)
        self.assertEqual([], self.journal_files())
        self.daemon.refuse('-a', 0)
        other = self.boot(self.flavors[2])
        self.assert_as_needed()
        self.delete(server, other)

    def test_a_guest_that_dies(self):
        server = self.boot(self.flavors[4])
        [domain] = self.connection(HOST).listAllDomains(
            fakelibvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE
        )
        domain.destroy()
        self.settle(HOST)
        self.assertEqual({}, self.daemon.active)
        self.delete(server)


class TestLostBeforeTheStart(board.BoardTestCase):
    """Fabric Manager forgets all after the last look, when a guest starts."""

    # As a call, a fault would go back to nova-api.
    CAST_AS_CALL = False

    def setUp(self):
        super().setUp()
        self.server = self.boot(self.flavors[2])

    def forget(self, method='createWithFlags', fails=False):
        """Once, just before a call of libvirt."""
        real = getattr(fakelibvirt.Domain, method)
        self.forgotten = 0

        def forget_first(domain, *args, **kwargs):
            if not self.forgotten:
                self.daemon.reset()
                if fails:
                    self.daemon.refuse('-a', fmpm.NVLINK_ERROR)
            self.forgotten += 1
            return real(domain, *args, **kwargs)

        return fixtures.MonkeyPatch(
            f'nova.tests.fixtures.libvirt.Domain.{method}', forget_first
        )

    def assert_joined(self, act, *args, **kwargs):
        with self.forget(*args, **kwargs):
            act()
        self.assertLess(0, self.forgotten)
        self.assert_as_needed()
        self.assertEqual(1, len(self.running()))

    def fail_to(self, action, status):
        self.api.post_server_action(self.server['id'], action)
        self._wait_for_assert(lambda: self.assertLess(0, self.forgotten))
        return self._wait_for_server_parameter(
            self.server, {'status': status, 'OS-EXT-STS:task_state': None}
        )

    def test_boot(self):
        self.delete(self.server)
        self.assert_joined(lambda: self.boot(self.flavors[2]))

    def test_reboots_and_starts(self):
        self.assert_joined(lambda: self._reboot_server(self.server, hard=True))
        self._stop_server(self.server)
        self.assert_joined(lambda: self._start_server(self.server))

    def test_soft_reboot(self):
        """Nova starts the guest itself, and it is paused at once."""
        with self.forget():
            self._reboot_server(self.server)
        self.assertEqual(1, len(self.violations))
        self.violations.clear()
        self.assert_as_needed()
        self.assertEqual(1, len(self.running()))

    def test_resume(self):
        for method in ('createWithFlags', 'attachDeviceFlags'):
            self._suspend_server(self.server)
            self.assert_joined(
                lambda: self._resume_server(self.server), method
            )

    def test_a_boot_that_cannot_be_helped(self):
        self.delete(self.server)
        with self.forget(fails=True):
            server = self.boot(self.flavors[2], expected_state='ERROR')
        self.assertEqual({}, self.running())
        self.assertEqual([], self.journal_files())
        self.assert_as_needed()
        self.delete(server)
        self.assert_nothing_left()

    def test_a_reboot_that_cannot_be_helped(self):
        with self.forget(fails=True):
            self.fail_to({'reboot': {'type': 'HARD'}}, 'ERROR')
        self.assertEqual({}, self.running())
        self.daemon.refuse('-a', 0)
        self._reboot_server(self.server, hard=True)
        self.assert_as_needed()
        self.assertEqual(1, len(self.running()))

    def test_a_soft_reboot_that_cannot_be_helped(self):
        with self.forget(fails=True):
            self.fail_to({'reboot': {'type': 'SOFT'}}, 'ERROR')
        self.assertEqual({}, self.running())
        self.violations.clear()
        self.assert_as_needed()

    def test_a_resume_that_cannot_be_helped(self):
        self._suspend_server(self.server)
        with self.forget('attachDeviceFlags', fails=True):
            server = self.fail_to({'resume': None}, 'SUSPENDED')
        self.assertEqual({}, self.running())
        self.daemon.refuse('-a', 0)
        self._resume_server(server)
        self.assertEqual(
            [2], [len(each) for each in self.daemon.active.values()]
        )


class RandomTestCase(board.BoardTestCase):
    """Guests of all sizes come, change and go, in any order."""

    def sequence(self, seed):
        self.random = random.Random(f'{type(self).__name__} {seed}')
        self.servers = {}
        done = []
        for _step in range(_STEPS):
            step = self.random.choice(self.possible())
            done.append(step.__name__)
            step()
            self.assert_as_needed(f'{seed}: {done}')
        for server in list(self.servers):
            self._delete_server({'id': server})
        self.assert_nothing_left()
        self.assert_as_needed(f'{seed}: {done}')

    def possible(self):
        steps = [self.create, self.create, self.restart, self.reboot_host]
        if self.servers:
            steps += [self.stop, self.start, self.delete_one, self.resize]
        return steps

    def any_server(self):
        server = self.random.choice(sorted(self.servers))
        return self.api.get_server(server)

    def create(self):
        size = self.random.choice((1, 1, 2, 2, 4, 8))
        server = self._create_server(
            flavor_id=self.flavors[size],
            networks='none',
            expected_state=self.state(size),
        )
        self.servers[server['id']] = size

    def state(self, size):
        """Whether there is a partition of GPUs that no one has."""
        taken = set().union(*self.held().values())
        return (
            'ACTIVE'
            if any(
                len(modules) == size and not taken & set(modules)
                for modules in self.board.values()
            )
            else 'ERROR'
        )

    def held(self):
        """Server -> the modules that it holds, whether its guest runs."""
        by_address = {
            str(address): number
            for address, number in self.hgx.module_ids.items()
        }
        return {
            server: {
                by_address[self.arq_device(arq)]
                for arq in self.arqs({'id': server})
            }
            for server in self.servers
        }

    def stop(self):
        server = self.any_server()
        if server['status'] == 'ACTIVE':
            self._stop_server(server)

    def start(self):
        server = self.any_server()
        if server['status'] == 'SHUTOFF':
            self._start_server(server)
        elif server['status'] == 'ACTIVE':
            # After a reboot of the host it does not run.
            self._reboot_server(server, hard=True)

    def delete_one(self):
        server = self.any_server()
        self._delete_server(server)
        del self.servers[server['id']]

    def resize(self):
        server = self.any_server()
        size = self.random.choice((1, 2, 4, 8))
        if (
            server['status'] != 'ACTIVE'
            or self.servers[server['id']] == size
            or self.state(size) != 'ACTIVE'
        ):
            return
        self.api.post_server_action(
            server['id'], {'resize': {'flavorRef': self.flavors[size]}}
        )
        self._wait_for_state_change(server, 'VERIFY_RESIZE')
        self.assert_as_needed('before it is confirmed')
        end = self.random.choice(('confirm', 'revert'))
        self.api.post_server_action(server['id'], {f'{end}Resize': None})
        self._wait_for_state_change(server, 'ACTIVE')
        if end == 'confirm':
            self.servers[server['id']] = size

    def restart(self):
        """Of Fabric Manager."""
        self.random.choice((self.daemon.reset, self.daemon.restart))()
        self.settle(HOST)

    def check(self, first):
        for seed in range(first, min(first + _AT_ONCE, _SEQUENCES)):
            self.sequence(seed)


class TestRandomOnH100(RandomTestCase):
    """Pairs 1 and 3, 2 and 4, and so on; the tests are made below."""


class TestRandomOnB200(RandomTestCase):
    """Pairs 1 and 2, 3 and 4, and so on."""

    board = fabric_manager.B200
    module_ids = tuple(range(1, 9))


for _case in (TestRandomOnH100, TestRandomOnB200):
    for _first in range(0, _SEQUENCES, _AT_ONCE):
        setattr(
            _case,
            f'test_sequences_from_{_first}',
            lambda self, first=_first: self.check(first),
        )
