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

from nova import rpc
import oslo_messaging
from oslo_utils import uuidutils

from nova_accel import exceptions
from nova_accel.model import host_rpc
from nova_accel.model.fpga import fpga_bitstream
from nova_accel.model.fpga import programming_record
from unit import message_bus

DEPLOYABLE = uuidutils.generate_uuid()
BITSTREAM = uuidutils.generate_uuid()


class TestEndpoint(message_bus.TestCase):
    def setUp(self):
        super().setUp()
        self.bus.add_host(
            'compute-1',
            self.programmer,
            self.programmer,
        )
        self.context.mq_connection = self.bus.transport()
        self.client = (
            rpc.ClientRouter(
                rpc.get_client(
                    oslo_messaging.Target(
                        topic=host_rpc.TOPIC, version=host_rpc.FIRST
                    )
                )
            )
            .client(self.context)
            .prepare(server='compute-1')
        )

    def call(self, method, **arguments):
        return self.client.call(
            self.context, method, bitstream_uuid=BITSTREAM, **arguments
        )

    def refusal(self):
        """What comes of the fault that the host has."""
        error = self.assertRaises(
            exceptions.RefusedByHost,
            self.call,
            'program',
            deployable_uuid=DEPLOYABLE,
            instance_uuid=None,
            shell_loading='forbidden',
        )
        return host_rpc.refused(str(error))

    def test_programs_for_the_caller(self):
        for method, more in (
            (
                'program',
                {'instance_uuid': DEPLOYABLE, 'shell_loading': 'forbidden'},
            ),
            ('program_fpga_with_bitstream', {}),
        ):
            self.call(method, deployable_uuid=DEPLOYABLE, **more)
            *asked, context = self.programmer.asked.pop()
            self.assertEqual(
                [
                    DEPLOYABLE,
                    fpga_bitstream.WantedBitstream(BITSTREAM),
                    programming_record.Asker(
                        'project', 'user', more.get('instance_uuid')
                    ),
                ],
                asked,
            )
            self.assertEqual('token', context.auth_token)

    def test_shells(self):
        for method, more, expected in (
            (
                'program',
                {'instance_uuid': None, 'shell_loading': 'allowed'},
                'allowed',
            ),
            ('program_fpga_with_bitstream', {}, 'forbidden'),
        ):
            self.call(method, deployable_uuid=DEPLOYABLE, **more)
            self.assertEqual(expected, self.programmer.shell_loading)

    def test_a_fault_reaches_the_caller(self):
        self.programmer.fault = exceptions.Conflict('a guest has it')
        error = self.refusal()
        self.assertIsInstance(error, exceptions.Conflict)
        self.assertEqual('a guest has it', str(error))
        self.assertNotIn('Traceback', self.log.output)

    def test_a_fault_of_its_own_stays_in_the_log(self):
        self.programmer.fault = KeyError('the secret')
        error = self.refusal()
        self.assertIsInstance(error, exceptions.DeviceError)
        self.assertNotIn('secret', str(error))
        self.assertIn('the secret', self.log.output)

    def replace(self):
        self.client.call(
            self.context,
            'replace',
            instance_uuid=DEPLOYABLE,
            arq_uuids=[BITSTREAM],
        )

    def test_replaces_for_the_caller(self):
        self.replace()
        self.assertEqual(
            [('project', DEPLOYABLE, [BITSTREAM])], self.programmer.replaced
        )

    def test_what_is_not_replaced(self):
        for fault, kind, text in (
            (
                exceptions.AcceleratorsBusy('none is free'),
                exceptions.Conflict,
                'none is free',
            ),
            (KeyError('the secret'), exceptions.DeviceError, 'its log'),
        ):
            self.programmer.fault = fault
            error = self.assertRaises(exceptions.RefusedByHost, self.replace)
            told = host_rpc.refused(str(error))
            self.assertIs(kind, type(told))
            self.assertIn(text, str(told))
        self.assertIn(
            f'Devices of server {DEPLOYABLE} are not replaced',
            self.log.output,
        )

    def set_profile(self):
        self.client.call(
            self.context,
            'set_profile',
            instance_uuid=DEPLOYABLE,
            device_profile_name=None,
            groups=[],
        )

    def test_sets_a_profile_for_the_caller(self):
        self.set_profile()
        self.assertEqual(
            [('project', DEPLOYABLE, None, [])], self.programmer.profiles
        )

    def test_what_is_not_set(self):
        for fault, kind in (
            (exceptions.NoAssignment('no such unit'), exceptions.Conflict),
            (exceptions.OverQuota('too many'), exceptions.NotAllowed),
            (KeyError('the secret'), exceptions.DeviceError),
        ):
            self.programmer.fault = fault
            error = self.assertRaises(
                exceptions.RefusedByHost, self.set_profile
            )
            self.assertIs(kind, type(host_rpc.refused(str(error))))
        self.assertIn(
            f'Server {DEPLOYABLE} does not get device profile None',
            self.log.output,
        )

    def test_the_spec_s_return_codes(self):
        for fault, code in (
            (None, 0),
            (exceptions.DeviceError('why'), 1),
            (exceptions.Conflict('why'), 1),
            (KeyError('why'), 1),
            (exceptions.NotFound('why'), 2),
            (exceptions.BitstreamNotFound('why'), 3),
            (exceptions.BitstreamRefused('why'), 3),
        ):
            self.programmer.fault = fault
            self.assertEqual(
                code,
                self.call(
                    'program_fpga_with_bitstream', deployable_uuid=DEPLOYABLE
                ),
            )
        self.assertEqual(
            6,
            self.log.output.count(
                f'{DEPLOYABLE} is not programmed with bitstream {BITSTREAM}: '
            ),
        )
        self.assertEqual(1, self.log.output.count('Traceback'))

    def test_prefetch(self):
        for fault, told in (
            (None, f'Bitstream {BITSTREAM} is on this host'),
            (exceptions.BitstreamRefused('too large'), 'too large'),
        ):
            self.programmer.fault = fault
            self.assertIsNone(self.call('prefetch'))
            self.assertEqual(
                BITSTREAM, self.programmer.fetched.get(timeout=10)
            )
            self.assertIn(told, self.log.output)

    def test_stock(self):
        self.client.cast(
            self.context,
            'stock',
            deployable_uuid=DEPLOYABLE,
            bitstream_uuid=BITSTREAM,
        )
        self.assertEqual(
            (DEPLOYABLE, BITSTREAM), self.programmer.stocked.get(timeout=10)
        )

    def test_hurry(self):
        self.client.cast(self.context, 'hurry')
        self.assertIsNone(self.programmer.hurried.get(timeout=10))
