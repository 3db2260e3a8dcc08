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

from typing import Any

from nova_accel import exceptions
from unit.api import base
from unit.api import programming

_PATH = f'/fpga/{programming.DEPLOYABLE}'
_BODY = {'glance_bitstream_uuid': programming.BITSTREAM}


class FpgaTest(programming.ProgrammingTestCase):
    def post(
        self, path: str = _PATH, body: Any = None, **kwargs: Any
    ) -> tuple[int, Any]:
        answer = self.call(
            'POST',
            path,
            _BODY if body is None else body,
            version=None,
            **kwargs,
        )
        return answer.status_int, answer.json

    def test_programs(self) -> None:
        self.assertEqual(
            (200, {'msg': 'bitstream has been loaded successfully'}),
            self.post(),
        )
        self.assert_asked(None)

    def test_who_may_not(self) -> None:
        any_region = 'deployable:program, which needs the role admin'
        either = (
            f'{any_region}, or nova_accel:deployable:program_own, which needs '
            'one of the roles admin, member, service'
        )
        for roles, rule in (
            (base.MEMBER, any_region),
            (base.READER, either),
            (('other',), either),
        ):
            self.assertEqual(
                (
                    422,
                    {
                        'error': (
                            'User is not authorized to use the resource: '
                            'Access was denied to the following resource: '
                            f'nova_accel:{rule}'
                        )
                    },
                ),
                self.post(roles=roles),
            )
        self.assertEqual([], self.host.asked)

    def test_a_shell_that_the_caller_may_not_load(self) -> None:
        self.host.fault = exceptions.NotAllowed('why')
        self.assertEqual(422, self.post()[0])
        self.assertEqual(
            403,
            self.call(
                'PATCH',
                f'/deployables/{programming.DEPLOYABLE}/program',
                [
                    {
                        'path': '/program',
                        'op': 'replace',
                        'value': [{'image_uuid': programming.BITSTREAM}],
                    }
                ],
            ).status_int,
        )

    def test_the_owner_of_the_server_may(self) -> None:
        self.occupy(base.INSTANCE)
        self.assertEqual(200, self.post(roles=base.MEMBER)[0])

    def test_what_does_not_work_is_told(self) -> None:
        for fault, status in (
            (exceptions.BitstreamNotFound('why'), 404),
            (exceptions.BitstreamRefused('why'), 409),
            (exceptions.Conflict('why'), 409),
            (exceptions.DeviceError('why'), 502),
            (exceptions.ServiceUnavailable('why'), 503),
        ):
            self.host.fault = fault
            self.assertEqual((status, {'error': 'why'}), self.post())

    def test_a_fault_of_the_host_s_own_is_not(self) -> None:
        self.host.fault = KeyError('the secret')
        status, body = self.post()
        self.assertEqual((502, ['error']), (status, list(body)))
        self.assertNotIn('secret', body['error'])

    def test_what_is_wrong_in_the_request(self) -> None:
        for body in (
            {},
            [],
            {'glance_bitstream_uuid': 1},
            {'glance_bitstream_uuid': 'x'},
            {**_BODY, 'more': 1},
        ):
            status, answer = self.post(body=body)
            self.assertEqual((400, ['error']), (status, list(answer)))
        self.assertEqual(400, self.post('/fpga/x')[0])
        self.assertEqual(
            (404, {'error': f'Deployable not found with uuid={base.NOBODY}'}),
            self.post(f'/fpga/{base.NOBODY}'),
        )
        self.assertEqual([], self.host.asked)
