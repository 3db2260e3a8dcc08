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
import webob.exc

from nova_accel import exceptions
from nova_accel.api.compute import replacing
from nova_accel.api.compute import waiting
from nova_accel.db import lease
from nova_accel.db import server_arqs
from unit import message_bus
from unit.api import base
from unit.api.handlers import test_binding

_ACTIVE = f'/hosts/{base.HOSTNAME}/instances/{base.INSTANCE}/active'


class ReplacingTestCase(base.ApiTestCase):
    """A server with two devices of a host, behind a message bus."""

    def setUp(self) -> None:
        super().setUp()
        self.bus = self.useFixture(message_bus.MessageBus())
        self.host = message_bus.FakeProgrammer()
        self.bus.add_host(base.HOSTNAME, self.host, self.host)
        self.report_host(functions=2)
        self.create_profile()
        self.arqs = [
            arq['uuid']
            for arq in self.ok(
                'PUT',
                _ACTIVE,
                test_binding.of_groups({'resources:FPGA': 2})
                | {
                    'providers': {
                        base.RP: {
                            'allocated': {'FPGA': 2},
                            'traits': base.TRAITS,
                        }
                    }
                },
                roles=base.SERVICE,
            )['arqs']
        ]

    def lose_devices(self, functions: int = 0) -> None:
        """The host reports only so many functions from now on."""
        self.report_host(functions=functions)


class ReplaceTest(ReplacingTestCase):
    def replace(
        self,
        arq: str | None = None,
        roles: tuple[str, ...] = base.MEMBER,
        project: str = base.PROJECT,
        instance: str = base.INSTANCE,
    ) -> None:
        replacing.replace(base.a_caller(roles, project), instance, arq)

    def refusal(self, kind: type[Exception], *args: Any, **kwargs: Any) -> str:
        error = self.assertRaises(kind, self.replace, *args, **kwargs)
        self.assertEqual([], self.host.replaced)
        if isinstance(error, exceptions.AcceleratorError):
            self.assertNotIn(base.HOSTNAME, error.public)
            return error.public
        return str(error)

    def test_all_that_have_failed(self) -> None:
        self.lose_devices()
        for roles in (base.MEMBER, base.ADMIN):
            self.replace(roles=roles)
            self.assertEqual(
                (base.PROJECT, base.INSTANCE, self.arqs),
                self.host.replaced.pop(),
            )

    def test_one_of_them(self) -> None:
        self.lose_devices()
        self.replace(self.arqs[1])
        [(_project, _instance, arqs)] = self.host.replaced
        self.assertEqual([self.arqs[1]], arqs)

    def test_only_what_has_failed(self) -> None:
        self.lose_devices(1)
        self.replace()
        [(_project, _instance, [failed])] = self.host.replaced
        self.host.replaced.clear()
        [works] = {*self.arqs} - {failed}
        self.assertIn('has failed', self.refusal(exceptions.Conflict, works))

    def test_nothing_has_failed(self) -> None:
        self.assertIn('has failed', self.refusal(exceptions.Conflict))

    def test_whose_server(self) -> None:
        self.lose_devices()
        self.replace(roles=base.ADMIN, project=base.OTHER_PROJECT)
        self.host.replaced.clear()
        for more in (
            {'project': base.OTHER_PROJECT},
            {'project': ''},
            {'instance': base.NOBODY},
            {'arq': base.NOBODY},
        ):
            self.refusal(exceptions.NotFound, **more)
        self.refusal(webob.exc.HTTPForbidden, roles=base.READER)

    def test_a_silent_host_is_not_waited_for(self) -> None:
        self.lose_devices()
        self.useFixture(base.SilentHosts())
        self.assertIn('not reported', self.refusal(exceptions.Conflict))

    def test_what_an_evacuated_server_has_left(self) -> None:
        self.lose_devices()
        rows = server_arqs.get_held(base.INSTANCE)
        dead, alive = (
            {**row, 'hostname': name, 'is_silent': name == 'dead'}
            for row, name in zip(rows, ('dead', 'alive'), strict=True)
        )
        self.useFixture(
            fixtures.MockPatchObject(
                server_arqs, 'get_held', lambda *_: [dead, alive]
            )
        )
        self.replace()
        [(_project, _instance, arqs)] = self.host.replaced
        self.assertEqual([alive['uuid']], arqs)

    def test_what_the_host_refuses(self) -> None:
        self.lose_devices()
        self.host.fault = exceptions.AcceleratorsBusy('why', public='full')
        error = self.assertRaises(exceptions.Conflict, self.replace)
        self.assertEqual(('why', 'full'), (str(error), error.public))

    def test_one_call_at_a_time(self) -> None:
        self.lose_devices()
        fault = exceptions.Conflict()
        with lease.alone(f'changing {base.INSTANCE}', 60, fault):
            self.assertIn('another call', self.refusal(exceptions.Conflict))
        self.replace()

    def test_no_more_calls_wait_than_may(self) -> None:
        self.lose_devices()
        self.useFixture(
            fixtures.MockPatchObject(waiting, '_most', lambda _threads: 1)
        )
        with waiting.place():
            self.refusal(exceptions.TooBusy)
        self.replace()
