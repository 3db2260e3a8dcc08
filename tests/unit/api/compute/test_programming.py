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

from collections.abc import Callable
from collections.abc import Iterator
from concurrent import futures
import contextlib
import threading
from typing import Any

import fixtures
import webob.exc

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.api.compute import programming
from nova_accel.api.compute import waiting
from nova_accel.api.http import policy
from nova_accel.api.policies import deployable as policies
from nova_accel.model.fpga import programming_record
from unit.api import base
from unit.api import programming as programmed

CONF = conf.CONF

_OTHER_INSTANCE = base.numbered_uuid(99)


class ProgramTest(programmed.ProgrammingTestCase):
    def program(
        self,
        roles: tuple[str, ...] = base.ADMIN,
        project: str = base.PROJECT,
        deployable: str = programmed.DEPLOYABLE,
    ) -> object:
        return programming.program(
            base.a_caller(roles, project), deployable, programmed.BITSTREAM
        )

    def refusal(
        self, kind: type[Exception], *args: object, **kwargs: object
    ) -> str:
        error = self.assertRaises(kind, self.program, *args, **kwargs)
        self.assertEqual([], self.host.asked)
        if isinstance(error, exceptions.Conflict):
            # Tenants read neither of the card nor of its other users.
            for secret in (base.DEVICE, base.HOSTNAME, 'project', 'region0'):
                self.assertNotIn(secret, error.public)
        return str(error)

    def test_an_admin_programs_an_idle_region(self) -> None:
        found = self.program()
        self.assertEqual(
            (programmed.DEPLOYABLE, programmed.BITSTREAM),
            (found['uuid'], found['bitstream_id']),
        )  # type: ignore[index]
        self.assert_asked(None)

    def test_a_member_does_not(self) -> None:
        self.refusal(webob.exc.HTTPForbidden, base.MEMBER)

    def test_a_reader_never_does(self) -> None:
        self.occupy(base.INSTANCE)
        self.refusal(webob.exc.HTTPForbidden, base.READER)

    def test_the_owner_of_the_server_that_has_it(self) -> None:
        self.occupy(base.INSTANCE)
        for roles in (base.MEMBER, base.ADMIN):
            self.program(roles)
            self.assert_asked(base.INSTANCE)

    def test_by_the_arq_that_the_owner_knows(self) -> None:
        self.occupy(base.INSTANCE)
        [arq] = self.ok('GET', '/accelerator_requests')['arqs']
        for roles in (base.MEMBER, base.ADMIN):
            self.program(roles, deployable=arq['uuid'])
            self.assert_asked(base.INSTANCE)
        self.refusal(
            exceptions.NotFound,
            base.MEMBER,
            project=base.OTHER_PROJECT,
            deployable=arq['uuid'],
        )
        self.assertIn(
            'another project',
            self.refusal(
                exceptions.Conflict,
                project=base.OTHER_PROJECT,
                deployable=arq['uuid'],
            ),
        )

    def test_the_host_does_not_do_it_under_a_guest(self) -> None:
        self.occupy(base.INSTANCE)
        self.host.fault = exceptions.Conflict('not under a guest')
        error = self.assertRaises(
            exceptions.Conflict, self.program, base.MEMBER
        )
        self.assertEqual('not under a guest', str(error))

    def test_in_use_by_another_project(self) -> None:
        self.occupy(base.INSTANCE, project=base.OTHER_PROJECT)
        self.assertIn(
            'in use by a server of another project',
            self.refusal(exceptions.Conflict),
        )
        self.refusal(webob.exc.HTTPForbidden, base.MEMBER)

    def test_in_use_by_another_project_too(self) -> None:
        self.occupy(base.INSTANCE, project=base.OTHER_PROJECT)
        self.bind(self.create_arq(), instance=_OTHER_INSTANCE)
        for roles in (base.MEMBER, base.ADMIN):
            self.assertIn(
                'another project', self.refusal(exceptions.Conflict, roles)
            )

    def test_in_use_by_several(self) -> None:
        self.occupy(base.INSTANCE, _OTHER_INSTANCE)
        self.assertIn(
            'in use by several servers', self.refusal(exceptions.Conflict)
        )

    def test_no_such_deployable(self) -> None:
        self.assertIn(
            base.NOBODY,
            self.refusal(exceptions.NotFound, deployable=base.NOBODY),
        )

    def test_who_may_load_a_shell(self) -> None:
        self.program()
        self.assertIs(
            programming_record.ShellLoading.ALLOWED, self.host.shell_loading
        )
        self.occupy(base.INSTANCE)
        self.program()
        self.assertIs(
            programming_record.ShellLoading.IN_USE, self.host.shell_loading
        )
        self.program(base.MEMBER)
        self.assertIs(
            programming_record.ShellLoading.FORBIDDEN, self.host.shell_loading
        )

    def test_a_shell_is_not_what_the_region_holds(self) -> None:
        self.host.is_shell = True
        found = self.program()
        self.assertIsNone(found['bitstream_id'])  # type: ignore[index]

    def test_no_region(self) -> None:
        report = base.report()
        report['devices'][0]['deployables'][0]['region'] = None
        self.ok(
            'PUT',
            f'/hosts/{base.HOSTNAME}',
            {**report, 'digest': 'other'},
            roles=base.SERVICE,
        )
        self.refusal(webob.exc.HTTPForbidden, base.MEMBER)
        # Its card may get a shell, which has one.
        self.program()
        self.useFixture(
            fixtures.MockPatchObject(
                policy,
                'allows',
                lambda _context, rule, *_host: rule != policies.LOAD_SHELL,
            )
        )
        self.host.asked.clear()
        self.assertIn('no region', self.refusal(exceptions.Conflict))

    def test_a_silent_host_is_not_waited_for(self) -> None:
        self.be_silent()
        self.assertIn(
            'compute-1 has not reported for 180 s',
            self.refusal(exceptions.Conflict),
        )


class OneAtATimeTest(programmed.ProgrammingTestCase):
    """Calls that come while another one waits for the host."""

    def setUp(self) -> None:
        super().setUp()
        CONF.set_override('waiting_calls', 2, group='nova_accel')
        self.addCleanup(
            CONF.clear_override, 'waiting_calls', group='nova_accel'
        )
        # The host is given time, however busy the machine is.
        CONF.set_override('rpc_response_timeout', 60)
        self.addCleanup(CONF.clear_override, 'rpc_response_timeout')

    @contextlib.contextmanager
    def waited_for(self) -> Iterator[None]:
        """The host does not answer the first call until the body ends."""
        asked, go_on = threading.Event(), threading.Event()
        program = self.host.program

        def wait(*args: Any) -> Any:
            asked.set()
            go_on.wait(30)
            return program(*args)

        self.host.program = wait  # type: ignore[method-assign]
        with futures.ThreadPoolExecutor() as threads:
            first = threads.submit(self.patch)
            try:
                self.assertTrue(asked.wait(30))
                yield
            finally:
                go_on.set()
            self.assertEqual(200, first.result().status_int)

    def patch(self, **kwargs: Any) -> Any:
        return self.call(
            'PATCH',
            f'/deployables/{programmed.DEPLOYABLE}/program',
            [
                {
                    'op': 'replace',
                    'path': '/bitstream_id',
                    'value': [{'image_uuid': programmed.BITSTREAM}],
                }
            ],
            roles=base.ADMIN,
            **kwargs,
        )

    def post(self) -> Any:
        return self.call(
            'POST',
            f'/fpga/{programmed.DEPLOYABLE}',
            {'glance_bitstream_uuid': programmed.BITSTREAM},
            roles=base.ADMIN,
        )

    def test_a_region(self) -> None:
        with self.waited_for():
            for ask in (self.patch, self.post):
                answer = ask()
                self.assertEqual(409, answer.status_int)
                self.assertIn('by another call', answer.text)
        self.assertEqual(1, len(self.host.asked))
        self.assertEqual(200, self.patch().status_int)

    def test_a_region_that_another_process_has_programmed(self) -> None:
        """Nothing of this process says so."""
        with self.waited_for():
            self.useFixture(
                fixtures.MockPatchObject(waiting, '_PLACES', waiting._Places())
            )
            self.assertEqual(409, self.patch().status_int)

    def test_it_is_free_after_each_failure(self) -> None:
        for fault in (
            exceptions.DeviceError('why'),
            exceptions.Conflict('why'),
            exceptions.BitstreamNotFound('why'),
            KeyError('why'),
        ):
            self.host.fault = fault
            self.assertNotEqual(200, self.patch().status_int)
        self.host.fault = None
        self.assertEqual(200, self.patch().status_int)

    def test_no_more_calls_wait_than_may(self) -> None:
        """Neither for a programming nor for a message bus."""
        with waiting.place(), waiting.place():
            for ask in self.all_that_wait():
                answer = ask()
                self.assertEqual(503, answer.status_int, answer.text)
                self.assertEqual('5', answer.headers['Retry-After'])
            # It is stored, so it is not refused any more.
            self.ok(
                'POST',
                '/device_profiles',
                [
                    {
                        'name': 'fpga',
                        'groups': [
                            {
                                **base.GROUP,
                                'accel:bitstream_id': programmed.BITSTREAM,
                                'accel:prefetch': 'true',
                            }
                        ],
                    }
                ],
            )
            self.assertEqual(200, self.call('GET', '/deployables').status_int)
        self.assertIn('not asked to fetch', self.log.output)
        self.assertTrue(self.host.fetched.empty())
        self.assertEqual([], self.host.asked)
        # A call that was refused leaves the region to others.
        self.assertEqual(200, self.patch().status_int)

    def test_a_region_is_busy_whoever_else_waits(self) -> None:
        with self.waited_for(), waiting.place():
            self.assertEqual(409, self.patch().status_int)

    def all_that_wait(self) -> list[Callable[[], Any]]:
        path = f'/bitstreams/{programmed.BITSTREAM}/prefetch'
        return [
            self.patch,
            self.post,
            lambda: self.call('POST', path, {}, version='2.4'),
            lambda: self.call(
                'POST', path, {'hostnames': [base.HOSTNAME]}, version='2.4'
            ),
        ]
