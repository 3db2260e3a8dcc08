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
from nova import exception
from nova import objects
import sqlalchemy as sa
import webob.exc

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.api.compute import profile_setting
from nova_accel.api.compute import waiting
from nova_accel.db import lease
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model.profiles import device_profile
from unit import message_bus
from unit import nova_servers
from unit.api import base
from unit.api.http import test_policy

_KEY = device_profile.FLAVOR_KEY


class ProfileSettingTestCase(base.ApiTestCase):
    """A server without accelerators, on a host behind a message bus.

    :ivar nova: has the server
    :ivar host: changes the flavor of the server as it is asked to
    """

    def setUp(self) -> None:
        super().setUp()
        self.bus = self.useFixture(message_bus.MessageBus())
        self.host = message_bus.FakeProgrammer()
        self.bus.add_host(base.HOSTNAME, self.host, self.host)
        self.nova = self.useFixture(nova_servers.NovaServers(self.bus))
        self.nova.add(base.INSTANCE, base.PROJECT, base.HOSTNAME, a='b')
        self.host.effect = self.name_profile
        self.report_host()
        self.create_profile()

    def name_profile(self, uuid: str, name: str | None) -> None:
        self.nova.change(uuid, a='b', **({} if name is None else {_KEY: name}))

    def assert_named(self, name: str | None) -> None:
        """Both copies of the flavor name the device profile."""
        specs = {'a': 'b'} if name is None else {'a': 'b', _KEY: name}
        self.assertEqual([specs] * 2, self.nova.extra_specs(base.INSTANCE))

    def set(
        self,
        name: str | None = 'profile',
        roles: tuple[str, ...] = base.ADMIN,
        project: str = base.PROJECT,
        instance: str = base.INSTANCE,
    ) -> None:
        profile_setting.set_profile(
            base.a_caller(roles, project), instance, name
        )

    def refusal(self, kind: type[Exception], *args: Any, **kwargs: Any) -> str:
        """What the caller reads; the host has not been asked."""
        error = self.assertRaises(kind, self.set, *args, **kwargs)
        self.assertEqual([], self.host.profiles)
        if isinstance(error, exceptions.AcceleratorError):
            self.assertNotIn(base.HOSTNAME, error.public)
            return error.public
        return str(error)


class SetProfileTest(ProfileSettingTestCase):
    def test_a_profile_and_none(self) -> None:
        for name, groups in (('profile', [base.GROUP]), (None, [])):
            self.set(name)
            self.assertEqual(
                (base.PROJECT, base.INSTANCE, name, groups),
                self.host.profiles.pop(),
            )
            self.assert_named(name)

    def test_what_there_is_not(self) -> None:
        self.assertIn('gold', self.refusal(exceptions.NotFound, 'gold'))
        self.assertIn(
            base.NOBODY,
            self.refusal(exceptions.NotFound, instance=base.NOBODY),
        )

    def test_whose_server(self) -> None:
        self.set(project=base.OTHER_PROJECT)
        self.host.profiles.clear()
        self.refusal(webob.exc.HTTPForbidden, roles=base.MANAGER)
        self.useFixture(test_policy.OperatorsRules()).write(
            '"nova_accel:server:set": "role:manager"'
        )
        self.set(roles=base.MANAGER)
        self.host.profiles.clear()
        for project in (base.OTHER_PROJECT, ''):
            self.refusal(
                exceptions.NotFound, roles=base.MANAGER, project=project
            )

    def test_a_server_of_no_host_that_can_be_asked(self) -> None:
        for host, told in ((None, 'on no host'), ('plain', 'no accelerators')):
            self.nova.add(base.NOBODY, base.PROJECT, host)
            self.assertIn(
                told,
                self.refusal(exceptions.Conflict, instance=base.NOBODY),
            )
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.objects.InstanceMapping.get_by_instance_uuid',
                lambda *_asked: objects.InstanceMapping(cell_mapping=None),
            )
        )
        self.assertIn('no cell', self.refusal(exceptions.Conflict))

    def test_a_silent_host_is_not_waited_for(self) -> None:
        self.useFixture(base.SilentHosts())
        self.assertIn('not reported', self.refusal(exceptions.Conflict))

    def test_a_flavor_with_cyborgs_key(self) -> None:
        self.nova.change(
            base.INSTANCE, **{device_profile.CYBORG_FLAVOR_KEY: 'profile'}
        )
        self.assertIn('server to-native', self.refusal(exceptions.Conflict))

    def test_what_the_host_refuses(self) -> None:
        for fault, kind in (
            (
                exceptions.AcceleratorsBusy('why', public='full'),
                exceptions.Conflict,
            ),
            (
                exceptions.OverQuota('why', {'FPGA': 1}, public='full'),
                exceptions.NotAllowed,
            ),
        ):
            self.host.fault = fault
            error = self.assertRaises(kind, self.set)
            self.assertEqual(('why', 'full'), (str(error), error.public))
        self.assert_named(None)

    def test_one_call_at_a_time(self) -> None:
        with lease.alone(
            f'changing {base.INSTANCE}', 60, exceptions.Conflict()
        ):
            self.assertIn('another call', self.refusal(exceptions.Conflict))
        self.set()

    def test_no_more_calls_wait_than_may(self) -> None:
        self.useFixture(
            fixtures.MockPatchObject(waiting, '_most', lambda _threads: 1)
        )
        with waiting.place():
            self.refusal(exceptions.TooBusy)
        self.set()


class RequestSpecTest(ProfileSettingTestCase):
    def test_what_a_call_before_has_left(self) -> None:
        """Also if the host has nothing to do, or refuses it."""
        for fault in (None, exceptions.Conflict('it is busy')):
            self.nova.add(base.INSTANCE, base.PROJECT, base.HOSTNAME, a='b')
            self.name_profile(base.INSTANCE, 'profile')
            self.host.fault = fault
            if fault is None:
                self.set()
            else:
                self.assertRaises(exceptions.Conflict, self.set)
            self.assert_named('profile')

    def test_the_host_does_not_answer_in_time(self) -> None:
        conf.CONF.set_override('long_rpc_timeout', 1)
        self.addCleanup(conf.CONF.clear_override, 'long_rpc_timeout')
        self.bus.add_host('deaf')
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.HOSTS).values(service_host='deaf')
            )
        self.name_profile(base.INSTANCE, 'profile')
        self.refusal(exceptions.NoAnswerInTime)
        self.assert_named('profile')

    def test_it_cannot_be_saved(self) -> None:
        self.nova.fault = exception.NovaException('the secret')
        error = self.assertRaises(exceptions.ServiceUnavailable, self.set)
        self.assertIn('set it again', error.public)
        self.assertIn('the secret', self.log.output)
        self.host.fault = exceptions.Conflict('it is busy')
        refusal = self.assertRaises(exceptions.Conflict, self.set)
        self.assertEqual('it is busy', str(refusal))
        self.host.fault = self.nova.fault = None
        self.set()
        self.assert_named('profile')

    def test_there_is_none(self) -> None:
        del self.nova.specs[base.INSTANCE]
        self.set()
        self.assertEqual({}, self.nova.specs)

    def test_a_server_that_is_being_resized(self) -> None:
        """Its request spec has the new flavor already."""
        self.nova.specs[base.INSTANCE].flavorid = 'large'
        self.host.fault = exceptions.Conflict('it is busy')
        self.name_profile(base.INSTANCE, 'profile')
        self.assertRaises(exceptions.Conflict, self.set)
        self.assertEqual(
            {'a': 'b'}, self.nova.specs[base.INSTANCE].extra_specs
        )
