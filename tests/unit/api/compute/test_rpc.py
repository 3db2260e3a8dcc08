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

import queue
import threading

import fixtures
import oslo_messaging
from oslo_messaging._drivers import common
from oslo_utils import uuidutils

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.api.compute import rpc
from nova_accel.model import host_contract
from nova_accel.model import host_rpc
from nova_accel.model.fpga import programming_record
from unit import message_bus

DEPLOYABLE = uuidutils.generate_uuid()
BITSTREAM = uuidutils.generate_uuid()
INSTANCE = uuidutils.generate_uuid()
CALLEE = host_rpc.Callee('compute-1', host_contract.NEWEST)


class Unheard(Exception):
    """Of no module that Nova lets through."""


class TestCase(message_bus.TestCase):
    def program(self, host='compute-1', contract=host_contract.NEWEST):
        return rpc.program(
            self.context,
            host_rpc.Callee(host, contract),
            DEPLOYABLE,
            BITSTREAM,
            INSTANCE,
            programming_record.ShellLoading.IN_USE,
        )


class TestProgram(TestCase):
    def test_each_host_in_its_cell(self):
        other = message_bus.FakeProgrammer()
        self.bus.add_host('compute-1', self.programmer, cell=0)
        self.bus.add_host('compute-2', other, cell=1)
        for host, programmer in (
            ('compute-1', self.programmer),
            ('compute-2', other),
        ):
            self.program(host)
            [(deployable, wanted, asker, context)] = programmer.asked
            self.assertEqual(
                (DEPLOYABLE, BITSTREAM, INSTANCE, 'project', 'user', 'token'),
                (
                    deployable,
                    wanted.bitstream_id,
                    asker.instance_uuid,
                    asker.project_id,
                    asker.user_id,
                    context.auth_token,
                ),
            )

    def test_a_shell(self):
        self.bus.add_host('compute-1', self.programmer)
        for is_shell in (False, True):
            self.programmer.is_shell = is_shell
            self.assertIs(is_shell, self.program())
        self.assertIs(
            programming_record.ShellLoading.IN_USE,
            self.programmer.shell_loading,
        )

    def test_what_the_host_refuses(self):
        self.bus.add_host('compute-1', self.programmer)
        for kind in (
            exceptions.NotFound,
            exceptions.Conflict,
            exceptions.NotAllowed,
            exceptions.BitstreamRefused,
            exceptions.DeviceError,
        ):
            self.programmer.fault = kind('why')
            self.assertEqual('why', str(self.assertRaises(kind, self.program)))

    def test_a_host_that_does_not_listen(self):
        conf.CONF.set_override('long_rpc_timeout', 1)
        self.addCleanup(conf.CONF.clear_override, 'long_rpc_timeout')
        self.bus.add_host('compute-1')
        error = self.assertRaises(exceptions.NoAnswerInTime, self.program)
        self.assertIn('compute-1', str(error))
        self.assertNotIn('compute-1', error.public)

    def test_a_host_of_no_cell(self):
        error = self.assertRaises(exceptions.Conflict, self.program)
        self.assertIn('compute-1', str(error))


class TestReplace(TestCase):
    def replace(self):
        rpc.replace(self.context, CALLEE, INSTANCE, ('a', 'b'))

    def test_the_host_is_waited_for(self):
        self.bus.add_host('compute-1', self.programmer)
        self.replace()
        self.assertEqual(
            [('project', INSTANCE, ['a', 'b'])], self.programmer.replaced
        )

    def test_what_the_host_refuses(self):
        self.bus.add_host('compute-1', self.programmer)
        self.programmer.fault = exceptions.NotFound('why')
        error = self.assertRaises(exceptions.NotFound, self.replace)
        self.assertEqual('why', str(error))

    def test_a_host_that_does_not_listen(self):
        conf.CONF.set_override('long_rpc_timeout', 1)
        self.addCleanup(conf.CONF.clear_override, 'long_rpc_timeout')
        self.bus.add_host('compute-1')
        error = self.assertRaises(exceptions.NoAnswerInTime, self.replace)
        self.assertIn('log of the host', str(error))


class TestSetProfile(TestCase):
    def set(self):
        rpc.set_profile(self.context, CALLEE, INSTANCE, 'gold', [{'a': 'b'}])

    def test_the_host_is_waited_for(self):
        self.bus.add_host('compute-1', self.programmer)
        self.set()
        self.assertEqual(
            [('project', INSTANCE, 'gold', [{'a': 'b'}])],
            self.programmer.profiles,
        )

    def test_what_the_host_refuses(self):
        self.bus.add_host('compute-1', self.programmer)
        self.programmer.fault = exceptions.OverQuota('why', public='its why')
        error = self.assertRaises(exceptions.NotAllowed, self.set)
        self.assertEqual(('why', 'its why'), (str(error), error.public))


class TestHurry(TestCase):
    def test_the_host_is_told(self):
        self.bus.add_host('compute-1', self.programmer)
        rpc.hurry(CALLEE)
        self.assertIsNone(self.programmer.hurried.get(timeout=10))

    def test_a_host_that_does_not_listen(self):
        """Nobody waits for it."""
        self.bus.add_host('compute-1')
        rpc.hurry(CALLEE)

    def test_a_host_of_no_cell(self):
        self.assertRaises(exceptions.Conflict, rpc.hurry, CALLEE)


class TestThroughRealRpc(TestCase):
    """A real bus sends a fault as text: so does this one."""

    def fail_with(self, fault):
        text = common.serialize_remote_exception((type(fault), fault, None))
        self.raise_at_once(
            common.deserialize_remote_exception(text, ['nova.exception'])
        )

    def raise_at_once(self, fault):
        def call(*_args, **_kwargs):
            raise fault

        self.bus.add_host('compute-1')
        self.useFixture(
            fixtures.MonkeyPatch(
                'oslo_messaging.rpc.client._BaseCallContext.call', call
            )
        )

    def test_what_the_host_refuses(self):
        for kind in (
            exceptions.InvalidRequest,
            exceptions.NotFound,
            exceptions.BitstreamNotFound,
            exceptions.Conflict,
            exceptions.BitstreamRefused,
            exceptions.DeviceError,
            exceptions.ServiceUnavailable,
        ):
            self.fail_with(
                exceptions.RefusedByHost(
                    host_rpc.refusal(kind('why', public='its why'))
                )
            )
            error = self.assertRaises(kind, self.program)
            self.assertEqual(
                (kind, 'why', 'its why'),
                (type(error), str(error), error.public),
            )

    def test_a_fault_of_the_host_itself(self):
        self.fail_with(Unheard('the secret'))
        error = self.assertRaises(exceptions.DeviceError, self.program)
        self.assertNotIn('secret', str(error))
        self.assertIn('the secret', self.log.output)

    def test_a_bus_that_is_away(self):
        self.raise_at_once(oslo_messaging.MessageDeliveryFailure('refused'))
        error = self.assertRaises(exceptions.ServiceUnavailable, self.program)
        self.assertIn('compute-1', str(error))


class TestPrefetch(TestCase):
    def test_does_not_wait(self):
        self.programmer.fault = exceptions.BitstreamNotFound('why')
        self.bus.add_host('compute-1', self.programmer, self.programmer)
        rpc.prefetch(self.context, CALLEE, [BITSTREAM])
        self.assertEqual(BITSTREAM, self.programmer.fetched.get(timeout=10))

    def test_a_host_of_no_cell(self):
        self.assertRaises(
            exceptions.Conflict,
            rpc.prefetch,
            self.context,
            CALLEE,
            [BITSTREAM],
        )


class TestLostBus(TestCase):
    def test_an_order_does_not_wait_for_it(self):
        """By default oslo.messaging tries to reach it for ever."""
        self.bus.add_host('compute-1', self.programmer, self.programmer)
        self.bus.lose()
        faults = queue.SimpleQueue()

        def ask():
            try:
                rpc.prefetch(self.context, CALLEE, [BITSTREAM])
            except exceptions.ServiceUnavailable as fault:
                faults.put(str(fault))

        # A daemon: if it waits for ever, it must not keep the test.
        threading.Thread(target=ask, daemon=True).start()
        self.assertIn('cannot be called', faults.get(timeout=60))


class TestStock(TestCase):
    def test_does_not_wait(self):
        self.bus.add_host('compute-1', self.programmer)
        rpc.stock(CALLEE, DEPLOYABLE, BITSTREAM)
        self.assertEqual(
            (DEPLOYABLE, BITSTREAM), self.programmer.stocked.get(timeout=10)
        )

    def test_a_bus_that_is_away(self):
        self.bus.add_host('compute-1', self.programmer)
        self.bus.lose()
        self.assertRaises(
            exceptions.ServiceUnavailable,
            rpc.stock,
            CALLEE,
            DEPLOYABLE,
            BITSTREAM,
        )

    def test_a_host_of_the_next_release(self):
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.virt.rpc_agent.Endpoint.target',
                oslo_messaging.Target(version='1.1'),
            )
        )
        self.bus.add_host('compute-1', self.programmer, self.programmer)
        self.program(contract=host_contract.NEWEST + 1)
        self.assertEqual(1, len(self.programmer.asked))

    def test_a_call_of_the_next_release(self):
        """A host of this one does not serve it."""

        def call():
            with (
                rpc._translated(CALLEE),
                rpc._client(self.context, CALLEE) as (context, prepare),
            ):
                prepare(version='1.1').cast(context, 'stock')

        self.bus.add_host('compute-1', self.programmer)
        error = self.assertRaises(exceptions.Conflict, call)
        for text in (str(error), error.public):
            self.assertIn(f'serves version {host_rpc.VERSION} ', text)
            self.assertIn('version 1.1 is needed', text)
        self.assertIn('compute-1', str(error))
        self.assertNotIn('compute-1', error.public)
        self.assertTrue(self.programmer.stocked.empty())

    def test_a_host_of_no_cell(self):
        self.assertRaises(
            exceptions.Conflict,
            rpc.stock,
            CALLEE,
            DEPLOYABLE,
            BITSTREAM,
        )
