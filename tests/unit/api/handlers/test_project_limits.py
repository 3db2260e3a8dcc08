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

import fixtures
from keystoneauth1 import exceptions as ks_exc
from nova import exception
from nova.limit import utils as limit_utils
from oslo_limit import fixture as limit_fixture
import webob

from nova_accel import conf
from nova_accel.api.handlers import project_limits
from unit.api import base


class ProjectLimitsTest(base.ApiTestCase):
    """Keystone and Placement are imitated, and the database is not."""

    def setUp(self) -> None:
        super().setUp()
        self.configure(limit_utils.UNIFIED_LIMITS_DRIVER, 'driver')
        self.configure('compute', 'endpoint_service_type', 'oslo_limit')
        self.used = {'FPGA': 2}
        self.useFixture(
            fixtures.MockPatch(
                'nova.scheduler.client.report.report_client_singleton'
            )
        ).mock.return_value.get_usages_counts_for_limits = (
            lambda _context, _project_id: self.usage()
        )
        self.report_host()
        self.create_profile()

    def usage(self) -> dict[str, int]:
        return self.used

    def configure(self, value: str, name: str, group: str = 'quota') -> None:
        conf.CONF.set_override(name, value, group)
        self.addCleanup(conf.CONF.clear_override, name, group)

    def limit(self, registered: dict[str, int]) -> None:
        keystone = self.useFixture(limit_fixture.LimitFixture(registered, {}))
        self.useFixture(
            fixtures.MockPatch(
                'nova.limit.utils.IDENTITY_CLIENT',
                limit_utils.IdentityClient(
                    keystone.mock_conn, 'service_id', 'region_id'
                ),
            )
        )

    def path(self, number: int) -> str:
        instance_uuid = base.numbered_uuid(number)
        return f'/hosts/{base.HOSTNAME}/instances/{instance_uuid}/active'

    def acquire(self, *args: int, **kwargs: int) -> str | None:
        """Let an instance acquire an FPGA; why it is refused."""
        return self.reason(self.ask(*args, **kwargs))

    def ask(
        self, number: int, is_new: bool = True, attempt: int = 1
    ) -> webob.Response:
        body = {
            'attempt': attempt,
            'project_id': base.PROJECT,
            'device_profile_name': 'profile',
            'is_new': is_new,
            'providers': {
                base.RP: {'allocated': {'FPGA': 1}, 'traits': base.TRAITS}
            },
        }
        return self.call('PUT', self.path(number), body, roles=base.SERVICE)

    def adopt(self, number: int) -> str | None:
        """Let an instance adopt what Nova has bound for it."""
        arq = self.create_arq()
        self.bind(arq, instance=base.numbered_uuid(number))
        body = {'attempt': 1, 'arqs': [arq], 'is_new': True}
        return self.reason(
            self.call(
                'PUT', f'{self.path(number)}/arqs', body, roles=base.SERVICE
            )
        )

    def add(self, number: int, kept: Any = ()) -> str | None:
        """Let an instance get an FPGA beside those that it keeps."""
        body = {
            'attempt': 2,
            'project_id': base.PROJECT,
            'arqs': [base.WANTED],
            **({} if kept is None else {'kept': list(kept)}),
        }
        return self.reason(
            self.call(
                'PUT',
                f'{self.path(number)}/additions',
                body,
                roles=base.SERVICE,
            )
        )

    def reason(self, answer: webob.Response) -> str | None:
        if answer.status_int == 200:
            return None
        self.assertEqual(403, answer.status_int, answer.text)
        self.assertEqual('OverQuota', answer.json['error_code'])
        return str(answer.json['error_message'])

    def test_the_driver_is_novas(self) -> None:
        self.assertEqual(
            limit_utils.UNIFIED_LIMITS_DRIVER,
            project_limits.UNIFIED_LIMITS_DRIVER,
        )

    def test_the_second_is_over_a_limit_of_one(self) -> None:
        self.limit({'class:FPGA': 1})
        for first, ask in ((1, self.acquire), (3, self.adopt)):
            self.assertIsNone(ask(first))
            self.assertIn(
                'quota exceeded: class:FPGA: limit 1, in use 1, wanted 1',
                ask(first + 1) or '',
            )
            self.ok(
                'DELETE', f'{self.path(first)}?attempt=1', roles=base.SERVICE
            )

    def test_what_a_server_has_already_is_not_counted(self) -> None:
        self.limit({'class:FPGA': 0})
        self.assertIsNone(self.acquire(1, is_new=False))

    def test_what_a_server_keeps_counts_with_what_it_gets(self) -> None:
        self.limit({'class:FPGA': 1})
        [arq] = self.ask(1).json['arqs']
        self.assertIn('in use 0, wanted 2', self.add(1, [arq['uuid']]) or '')
        self.assertIn('in use 1, wanted 1', self.add(2) or '')
        # It gives back what it has.
        self.assertIsNone(self.add(1))
        # The host replaces what has failed.
        self.assertIsNone(self.add(3, None))

    def test_without_unified_limits_nobody_is_asked(self) -> None:
        self.configure('nova.quota.DbQuotaDriver', 'driver')
        for number in range(1, 3):
            self.assertIsNone(self.acquire(number))
        self.assertIsNone(self.add(3))

    def test_what_is_not_limited(self) -> None:
        for registered in ({}, {'class:FPGA': -1}):
            self.limit(registered)
            self.assertIsNone(self.acquire(len(registered) + 1))

    def test_nobody_may_have_any(self) -> None:
        self.limit({'class:FPGA': 0})
        self.assertIn('limit 0', self.acquire(1) or '')

    def test_what_placement_has_forgotten_does_not_count(self) -> None:
        """A host has not given back yet what a deleted server had."""
        self.limit({'class:FPGA': 1})
        self.assertIsNone(self.acquire(1))
        self.used = {'FPGA': 1}
        self.assertIsNone(self.acquire(2))
        self.assertIn('which do not count', self.log.output)

    def test_placement_does_not_answer(self) -> None:
        self.limit({'class:FPGA': 1})
        self.assertIsNone(self.acquire(1))
        for fault in (
            exception.UsagesRetrievalFailed(project_id='p', user_id='u'),
            ks_exc.ConnectFailure(),
        ):
            self.useFixture(
                fixtures.MockPatchObject(self, 'usage', side_effect=fault)
            )
            self.assertIn('limit 1', self.acquire(2) or '')

    def test_keystone_does_not_answer(self) -> None:
        self.useFixture(
            fixtures.MockPatch(
                'oslo_limit.limit._get_keystone_connection',
                side_effect=ks_exc.ConnectFailure('keystone.test'),
            )
        )
        self.assertIsNone(self.acquire(1, is_new=False))
        # One that has them is made again.
        self.assertIsNone(self.acquire(1, attempt=2))
        answer = self.ask(2)
        self.assertEqual(503, answer.status_int, answer.text)
        self.assertIn(f'the limits of project {base.PROJECT}', answer.text)

    def test_no_call_of_keystone_waits_for_ever(self) -> None:
        self.limit({'class:FPGA': 1})
        self.assertIsNone(self.acquire(1))
        self.assertEqual(10, conf.CONF.oslo_limit.timeout)
