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
from typing import Any

import fixtures
from oslo_db import exception as db_exceptions

from nova_accel import exceptions
from unit.api import base


class AnswerTest(base.ApiTestCase):
    def fail_with(self, fault: Exception) -> None:
        """Let the database fail so from now on."""

        def fail(*args: object, **kwargs: object) -> None:
            raise fault

        for function in ('device_profile.get_all', 'host_arqs.get'):
            self.useFixture(
                fixtures.MonkeyPatch(f'nova_accel.db.{function}', fail)
            )

    def test_tells_nothing_of_a_fault_of_its_own(self) -> None:
        self.fail_with(KeyError('the secret'))
        answer = self.call('GET', '/device_profiles')
        self.assertEqual(500, answer.status_int)
        self.assertNotIn('secret', answer.text)
        fault = json.loads(answer.json['error_message'])
        self.assertEqual('Server', fault['faultcode'])
        self.assertRegex(fault['faultstring'], 'logged it as req-')
        self.assertIn('the secret', self.log.output)

    def test_no_request_forges_a_line_of_the_log(self) -> None:
        line = '2026-01-01 00:00:00 INFO all is well'
        for fault in (
            KeyError('x'),
            db_exceptions.DBDataError(ValueError(f'{line}\n{line}')),
        ):
            self.fail_with(fault)
            answer = self.call(
                'GET',
                f'/hosts/h/instances/{base.INSTANCE}/active%0A{line}',
                roles=base.SERVICE,
            )
            self.assertEqual(400, answer.status_int)
            self.call('GET', f'/device_profiles/%0A{line}')
            self.call('GET', f'/device_profiles?name=%0A{line}')
            self.refused(400, 'GET', f'/device_profiles?%0A{line}=1')
        self.assertNotIn(f'\n{line}', self.log.output)

    def test_an_error_is_one_line(self) -> None:
        self.assertIn(
            r'"a\nb"', self.refused(400, 'GET', '/device_profiles?a%0Ab=1')
        )

    def test_tells_no_sql(self) -> None:
        for fault, status in (
            (db_exceptions.DBDuplicateEntry(ValueError('INSERT x')), 409),
            (db_exceptions.DBDataError(ValueError('INSERT x')), 400),
            (db_exceptions.DBError(ValueError('INSERT x')), 500),
        ):
            self.fail_with(fault)
            answer = self.call('GET', '/device_profiles')
            self.assertEqual(status, answer.status_int)
            self.assertNotIn('INSERT', answer.text)

    def test_is_unavailable_while_the_database_is(self) -> None:
        self.fail_with(exceptions.ServiceUnavailable('no answer'))
        self.assertEqual(
            'no answer', self.refused(503, 'GET', '/device_profiles')
        )

    def test_says_when_to_try_again(self) -> None:
        for fault, expected in (
            (exceptions.TooBusy('why'), '5'),
            (exceptions.ServiceUnavailable('why'), None),
        ):
            self.fail_with(fault)
            answer = self.call('GET', '/device_profiles')
            self.assertEqual(503, answer.status_int)
            self.assertEqual(expected, answer.headers.get('Retry-After'))

    def test_tells_tenants_what_is_for_them(self) -> None:
        self.fail_with(
            exceptions.Conflict('compute-1 is in use', public='it is in use')
        )
        for roles, token, expected in (
            (base.ADMIN, False, 'compute-1 is in use'),
            (base.SERVICE, False, 'compute-1 is in use'),
            (base.MANAGER, False, 'it is in use'),
            (base.MEMBER, False, 'it is in use'),
            # Nova tells it to a user.
            (base.MEMBER, True, 'it is in use'),
            (base.ADMIN, True, 'it is in use'),
        ):
            self.assertEqual(
                expected,
                self.refused(
                    409, 'GET', '/device_profiles', roles=roles, token=token
                ),
            )

    def test_names_the_fault_to_compute_hosts_alone(self) -> None:
        for fault, status in (
            (exceptions.InvalidRequest, 400),
            (exceptions.InvalidDeviceProfile, 400),
            (exceptions.NotFound, 404),
            (exceptions.Conflict, 409),
            (exceptions.AcceleratorsBusy, 409),
            (exceptions.StaleAttempt, 409),
            (exceptions.DeviceError, 502),
            (exceptions.ServiceUnavailable, 503),
            (exceptions.NoAnswerInTime, 504),
        ):
            self.fail_with(fault('why'))
            answer = self.call(
                'GET',
                f'/hosts/h/instances/{base.INSTANCE}/active',
                roles=base.SERVICE,
            )
            self.assertEqual(status, answer.status_int)
            self.assertEqual(fault.__name__, answer.json['error_code'])
            answer = self.call('GET', '/device_profiles')
            self.assertEqual(status, answer.status_int)
            self.assertEqual(['error_message'], list(answer.json))


#: Calls that Cyborg 17 answers with 500, by what its code does with them, and
#: what the answer has to name. The fault is the client's in all of them.
_CYBORG_500: tuple[tuple[int, str, str, Any, str], ...] = (
    (400, 'POST', '/device_profiles', 5, 'device profile'),
    (400, 'POST', '/device_profiles', ['a'], 'object'),
    (400, 'POST', '/device_profiles', [{'name': 1, 'groups': [{}]}], 'name'),
    (
        400,
        'POST',
        '/device_profiles',
        [{'name': 'a', 'groups': [1]}],
        'groups/0',
    ),
    (
        400,
        'POST',
        '/device_profiles',
        [{'name': 'a', 'groups': [{'resources:FPGA': None}]}],
        'resources:FPGA',
    ),
    (400, 'POST', '/accelerator_requests', [], 'object'),
    (400, 'PATCH', '/accelerator_requests', [], 'object'),
    (400, 'PATCH', '/accelerator_requests', {}, '{}'),
    (400, 'PATCH', '/accelerator_requests', {base.NOBODY: []}, base.NOBODY),
    (
        400,
        'PATCH',
        '/accelerator_requests',
        {base.NOBODY: [{'op': 'add'}]},
        'path',
    ),
    (
        400,
        'PATCH',
        '/accelerator_requests',
        {base.NOBODY: [{'op': 'add', 'path': '/hostname'}]},
        'hostname',
    ),
    (400, 'PATCH', f'/deployables/{base.NOBODY}/program', [], '[]'),
    (
        400,
        'PATCH',
        f'/deployables/{base.NOBODY}/program',
        [{'op': 'replace', 'path': '/bitstream_id', 'value': 'x'}],
        'value',
    ),
    (
        400,
        'PATCH',
        f'/deployables/{base.NOBODY}/program',
        [{'op': 'replace', 'path': '/bitstream_id', 'value': [{}]}],
        'image_uuid',
    ),
    (400, 'POST', '/attributes', [], 'object'),
    (400, 'POST', '/attributes', {'key': 'a', 'value': 'b'}, 'deployable_id'),
    (
        400,
        'POST',
        '/attributes',
        {'deployable_id': 1, 'key': 'a', 'value': 'b', 'frob': 1},
        'frob',
    ),
    (
        404,
        'POST',
        '/attributes',
        {'attribute': {'deployable_id': 7, 'key': 'a', 'value': 'b'}},
        'id=7',
    ),
)


class ClientFaultTest(base.ApiTestCase):
    def test_is_no_500_and_names_the_culprit(self) -> None:
        for status, method, path, body, culprit in _CYBORG_500:
            self.assertIn(
                culprit,
                self.refused(
                    status, method, path, body, roles=base.ADMIN + base.SERVICE
                ),
                (path, body),
            )
