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

"""Mistakes of those who call the API."""

import testscenarios

from unit.api import base as api_base
from unit.mistakes import base

_mistake = base.mistake

_DEVICE = api_base.DEVICE
_DEPLOYABLE = api_base.DEPLOYABLE


class TestRole(
    testscenarios.WithScenarios, api_base.ApiTestCase, base.MistakeTestCase
):
    """The answer says which role is lacking."""

    method: str
    path: str
    roles: tuple[str, ...]

    scenarios = [
        _mistake(
            'a tenant disables a device',
            'nova_accel:device:disable',
            'which needs the role admin',
            method='POST',
            path=f'/devices/{_DEVICE}/disable',
            roles=api_base.MEMBER,
        ),
        _mistake(
            'nobody lists profiles',
            'nova_accel:device_profile:list',
            'which needs one of the roles admin, reader, service',
            method='GET',
            path='/device_profiles',
            roles=(),
        ),
        _mistake(
            'a host reports as an administrator',
            'nova_accel:host:report',
            'which needs the role service',
            method='PUT',
            path=f'/hosts/{api_base.HOSTNAME}',
            roles=api_base.ADMIN,
        ),
    ]

    def test_it_is_told(self) -> None:
        body = api_base.report() if self.method == 'PUT' else None
        self.assert_told_to_a_tenant(
            self.refused(403, self.method, self.path, body, roles=self.roles)
        )


class TestProgramming(api_base.ApiTestCase, base.MistakeTestCase):
    culprit = 'nova_accel:deployable:program, which needs the role admin'
    cure = 'or nova_accel:deployable:program_own, which needs one of the roles'

    def test_422_has_a_reason(self) -> None:
        self.report_host()
        answer = self.call(
            'POST',
            f'/fpga/{_DEPLOYABLE}',
            {'glance_bitstream_uuid': api_base.NOBODY},
            roles=api_base.READER,
        )
        self.assertEqual(422, answer.status_int)
        self.assert_told_to_a_tenant(answer.json['error'])


class TestInUse(api_base.ApiTestCase, base.MistakeTestCase):
    """What servers have is disabled, or deleted."""

    def setUp(self) -> None:
        super().setUp()
        self.report_host()
        self.create_profile()
        self.arq = self.create_arq()
        self.bind(self.arq)

    def test_a_device(self) -> None:
        self.culprit = api_base.INSTANCE
        self.cure = 'keep what they have of it until they are deleted or moved'
        answer = self.call('POST', f'/devices/{_DEVICE}/disable')
        self.assertEqual(204, answer.status_int)
        self.assert_told(answer.headers['Warning'])

    def test_a_device_that_nobody_has(self) -> None:
        self.ok('DELETE', f'/accelerator_requests?arqs={self.arq}', token=True)
        answer = self.call('POST', f'/devices/{_DEVICE}/disable')
        self.assertNotIn('Warning', answer.headers)

    def test_a_profile(self) -> None:
        self.culprit = 'Device profile profile is in use'
        self.cure = f'by accelerator requests {self.arq}'
        self.assert_told(
            self.refused(409, 'DELETE', '/device_profiles/profile')
        )


class TestCall(
    testscenarios.WithScenarios, api_base.ApiTestCase, base.MistakeTestCase
):
    status: int
    call_: tuple[str, str]

    scenarios = [
        _mistake(
            'an argument that does not exist',
            'Unknown argument',
            '"nmae"',
            status=400,
            call_=('GET', '/device_profiles?nmae=gold'),
        ),
        _mistake(
            'a profile that does not exist',
            'Device Profile not found',
            'with name=gold',
            status=404,
            call_=('GET', '/device_profiles/gold'),
        ),
        _mistake(
            'a device by its address',
            "'0000:0c:00.0'",
            'Expected a uuid',
            status=400,
            call_=('GET', '/devices/0000:0c:00.0'),
        ),
    ]

    def test_it_is_told(self) -> None:
        self.assert_told(self.refused(self.status, *self.call_))
