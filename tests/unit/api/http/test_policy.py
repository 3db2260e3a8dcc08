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

"""Who may do what, by default and by the operator's file."""

from concurrent import futures
import inspect
import os
import pathlib
import threading
import time
from typing import Any

import fixtures
import testscenarios
import webob

from nova_accel import conf
from nova_accel.api import policies
from nova_accel.api.http import policy
from unit.api import base

_PROFILE = [{'name': 'other', 'groups': [base.GROUP]}]
_DEVICE = f'/devices/{base.DEVICE}'
_DEPLOYABLE = f'/deployables/{base.DEPLOYABLE}'
_ATTRIBUTE = f'/attributes/{base.NOBODY}'
_BINDING = f'/hosts/{base.HOSTNAME}/instances/{base.INSTANCE}/active'

#: Call -> (method, path, body, who may).
_CALLS = {
    'list_profiles': (
        'GET',
        '/device_profiles',
        None,
        'admin manager member reader service vouched',
    ),
    'show_profile': (
        'GET',
        '/device_profiles/profile',
        None,
        'admin manager member reader service vouched',
    ),
    'create_profile': ('POST', '/device_profiles', _PROFILE, 'admin'),
    'show_availability': (
        'GET',
        '/device_profiles/profile/availability',
        None,
        'admin manager member reader service vouched',
    ),
    'plan_room': (
        'POST',
        '/device_profiles/profile/room',
        {'count': 1, 'servers': {}},
        'admin',
    ),
    'explain_profile': (
        'GET',
        '/device_profiles/profile/explain',
        None,
        'admin',
    ),
    'update_profile': ('PUT', f'/device_profiles/{base.NOBODY}', {}, 'admin'),
    'delete_profile': (
        'DELETE',
        '/device_profiles?value=profile',
        None,
        'admin',
    ),
    'delete_profile_uuid': (
        'DELETE',
        f'/device_profiles/{base.NOBODY}',
        None,
        'admin',
    ),
    'list_arqs': (
        'GET',
        '/accelerator_requests',
        None,
        'admin manager member reader service vouched',
    ),
    'show_arq': (
        'GET',
        f'/accelerator_requests/{base.NOBODY}',
        None,
        'admin manager member reader service vouched',
    ),
    'create_arqs': (
        'POST',
        '/accelerator_requests',
        {'device_profile_name': 'profile'},
        'admin manager member service vouched',
    ),
    'bind_arqs': (
        'PATCH',
        '/accelerator_requests',
        {base.NOBODY: base.patch()},
        'service vouched',
    ),
    'bind_arqs_of_project': (
        'PATCH',
        '/accelerator_requests',
        {base.NOBODY: base.patch(project_id='p')},
        'service',
    ),
    'bind_arq': (
        'PATCH',
        f'/accelerator_requests/{base.NOBODY}',
        {base.NOBODY: base.patch()},
        'service vouched',
    ),
    'delete_arq': (
        'DELETE',
        f'/accelerator_requests/{base.NOBODY}',
        None,
        'admin manager member service vouched',
    ),
    'delete_arqs': (
        'DELETE',
        f'/accelerator_requests?arqs={base.NOBODY}',
        None,
        'admin manager member service vouched',
    ),
    'delete_instance_arqs': (
        'DELETE',
        f'/accelerator_requests?instance={base.INSTANCE}',
        None,
        'service vouched',
    ),
    'report_host': (
        'PUT',
        f'/hosts/{base.HOSTNAME}',
        base.report(),
        'service',
    ),
    'report_cleaning': (
        'PUT',
        f'/hosts/{base.HOSTNAME}/cleaning',
        {'revision': 0, 'cleaned': [], 'failed': {}},
        'service',
    ),
    'list_deployables': ('GET', '/deployables', None, 'admin'),
    'show_deployable': ('GET', _DEPLOYABLE, None, 'admin'),
    'program_deployable': (
        'PATCH',
        f'{_DEPLOYABLE}/program',
        {},
        'admin manager member service vouched',
    ),
    'list_attributes': ('GET', '/attributes', None, 'admin'),
    'show_attribute': ('GET', _ATTRIBUTE, None, 'admin'),
    'create_attribute': ('POST', '/attributes', {}, 'admin'),
    'delete_attribute': ('DELETE', _ATTRIBUTE, None, 'admin'),
    'list_programmings': ('GET', '/programmings', None, 'admin'),
    'list_topology': ('GET', '/topology', None, 'admin'),
    'show_usage': (
        'GET',
        '/usage',
        None,
        'admin manager member reader service vouched',
    ),
    'show_server': (
        'GET',
        f'/servers/{base.INSTANCE}/accelerators',
        None,
        'admin manager member reader service vouched',
    ),
    'vendordata': ('POST', '/vendordata', {}, 'service'),
    'prefetch': ('POST', f'/bitstreams/{base.NOBODY}/prefetch', {}, 'admin'),
    'report_programming': (
        'PUT',
        f'/hosts/{base.HOSTNAME}/programmings/{base.NOBODY}',
        {},
        'service',
    ),
    'list_devices': ('GET', '/devices', None, 'admin'),
    'show_device': ('GET', _DEVICE, None, 'admin'),
    'disable_device': ('POST', f'{_DEVICE}/disable', None, 'admin'),
    'enable_device': ('POST', f'{_DEVICE}/enable', None, 'admin'),
    'list_bindings': (
        'GET',
        f'/hosts/{base.HOSTNAME}/instances',
        None,
        'service',
    ),
    'delete_unadopted': (
        'DELETE',
        f'/hosts/{base.HOSTNAME}/instances/{base.INSTANCE}?arqs={base.NOBODY}',
        None,
        'service',
    ),
    'get_binding': ('GET', _BINDING, None, 'service'),
    'acquire': ('PUT', _BINDING, {}, 'service'),
    'adopt': ('PUT', f'{_BINDING}/arqs', {}, 'service'),
    'add': ('PUT', f'{_BINDING}/additions', {}, 'service'),
    'replace_failed': (
        'POST',
        f'/servers/{base.INSTANCE}/accelerators/replace',
        {},
        'admin manager member service vouched',
    ),
    'set_profile': (
        'PUT',
        f'/servers/{base.INSTANCE}/accelerators',
        {},
        'admin',
    ),
    'release': ('DELETE', f'{_BINDING}?attempt=1', None, 'service'),
}

#: Caller -> (roles, whether there is a service token).
_CALLERS: dict[str, tuple[tuple[str, ...], bool]] = {
    'admin': (base.ADMIN, False),
    'manager': (base.MANAGER, False),
    'member': (base.MEMBER, False),
    'reader': (base.READER, False),
    'nobody': (('other',), False),
    'service': (base.SERVICE, False),
    'vouched': (('other',), True),
}


#: The operator's rules by which each host has a user, as the manual has them.
_ONE_USER_PER_HOST = (
    pathlib.Path(__file__).parents[4]
    / 'doc/source/admin/snippets/one-user-per-host.yaml'
)


class OperatorsRules(fixtures.Fixture):
    """A policy file of the operator's, which is empty at first."""

    def _setUp(self) -> None:
        folder = self.useFixture(fixtures.TempDir()).path
        self.path = pathlib.Path(folder) / 'policy.yaml'
        self.write('{}')
        # It registers the options.
        policy.get_enforcer()
        conf.CONF.set_override('policy_file', str(self.path), 'oslo_policy')
        self.addCleanup(conf.CONF.clear_override, 'policy_file', 'oslo_policy')
        policy.get_enforcer.cache_clear()
        self.addCleanup(policy.get_enforcer.cache_clear)

    def write(self, rules: str) -> None:
        self.path.write_text(rules, 'utf-8')


class DefaultsTest(testscenarios.WithScenarios, base.ApiTestCase):
    scenarios = [
        (f'{call},{caller}', {'name': call, 'caller': caller})
        for call in _CALLS
        for caller in _CALLERS
    ]
    name: str
    caller: str

    def test_lets_the_right_ones_do_it(self) -> None:
        self.create_profile()
        method, path, body, allowed = _CALLS[self.name]
        roles, token = _CALLERS[self.caller]
        answer = self.call(
            method, path, body, roles=roles, token=token, version='latest'
        )
        self.assertEqual(
            self.caller in allowed.split(),
            answer.status_int != 403,
            answer.text,
        )


class OneUserPerHostTest(testscenarios.WithScenarios, base.ApiTestCase):
    """Two hosts with a service user each, by the rules of the manual."""

    #: The calls of a host, by their names above.
    scenarios = [
        (call, {'name': call})
        for call, (_method, path, _body, _allowed) in _CALLS.items()
        if path.startswith(f'/hosts/{base.HOSTNAME}') and call != 'get_binding'
    ]
    name: str

    def setUp(self) -> None:
        super().setUp()
        rules = self.useFixture(OperatorsRules())
        rules.write(_ONE_USER_PER_HOST.read_text('utf-8'))

    def ask(self, user: str, **said: str) -> webob.Response:
        method, path, body, _allowed = _CALLS[self.name]
        return self.call(
            method,
            path,
            body,
            roles=base.SERVICE,
            said={
                'HTTP_X_USER_NAME': user,
                'HTTP_X_USER_DOMAIN_ID': 'default',
                **said,
            },
        )

    def test_a_host_speaks_for_itself(self) -> None:
        own = self.ask(f'accel-{base.HOSTNAME}')
        self.assertNotEqual(403, own.status_int, own.text)

    def test_no_host_speaks_for_another(self) -> None:
        refused = self.ask('accel-compute-2')
        self.assertEqual(403, refused.status_int, refused.text)
        self.assertIn(
            f'user accel-compute-2 asked for host {base.HOSTNAME}',
            refused.text,
        )

    def test_nobody_else_does_by_a_name_alone(self) -> None:
        user = f'accel-{base.HOSTNAME}'
        for said in (
            {'HTTP_X_USER_DOMAIN_ID': 'of-a-tenant'},
            {'HTTP_X_ROLES': 'member'},
        ):
            self.assertEqual(403, self.ask(user, **said).status_int, said)
        self.assertEqual(403, self.ask('').status_int)


class EnforcerTest(base.ApiTestCase):
    def test_the_operator_may_change_a_rule(self) -> None:
        rules = self.useFixture(OperatorsRules())
        rules.write('"nova_accel:device_profile:list": "role:auditor"')
        self.refused(403, 'GET', '/device_profiles')
        self.ok('GET', '/device_profiles', roles=('auditor',))

    def test_a_changed_rule_is_heard_of_within_a_second(self) -> None:
        rules = self.useFixture(OperatorsRules())
        rules.write('"nova_accel:device_profile:list": "role:auditor"')
        now = time.monotonic()
        self.useFixture(fixtures.MonkeyPatch('time.monotonic', lambda: now))
        self.refused(403, 'GET', '/device_profiles', roles=('operator',))
        rules.write('"nova_accel:device_profile:list": "role:operator"')
        # Its time of change may have whole seconds.
        later = time.time() + 10
        os.utime(rules.path, (later, later))
        now += 1.0
        self.ok('GET', '/device_profiles', roles=('operator',))
        self.refused(403, 'GET', '/device_profiles', roles=('auditor',))

    def test_no_thread_sees_rules_that_another_one_is_loading(self) -> None:
        """The defaults come last, and a rule that is missing says no."""
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        rules = path / 'policy.yaml'
        rules.write_text('"nova_accel:device:list": "role:auditor"')
        policy.get_enforcer()
        conf.CONF.set_override('policy_file', str(rules), 'oslo_policy')
        self.addCleanup(conf.CONF.clear_override, 'policy_file', 'oslo_policy')
        policy.get_enforcer.cache_clear()
        self.addCleanup(policy.get_enforcer.cache_clear)
        enforcer = policy.get_enforcer()
        loading, go_on = threading.Event(), threading.Event()
        record = enforcer._record_file_rules

        def pause(*args: Any) -> None:
            loading.set()
            go_on.wait(1)
            record(*args)

        self.useFixture(
            fixtures.MockPatchObject(enforcer, '_record_file_rules', pause)
        )
        rule = 'nova_accel:device_profile:list'
        with futures.ThreadPoolExecutor() as threads:
            first = threads.submit(
                policy.allows, base.a_caller(base.ADMIN), rule
            )
            self.assertTrue(loading.wait(30))
            # As if this thread had looked at the file a moment ago.
            enforcer._looked_at = time.monotonic()
            self.assertTrue(policy.allows(base.a_caller(base.READER), rule))
            go_on.set()
            self.assertTrue(first.result())

    def test_a_decision_is_for_those_that_the_rules_cannot_tell_apart(
        self,
    ) -> None:
        rule = 'nova_accel:device_profile:list'
        for roles, service_roles, system_scope, is_allowed in (
            (['reader'], [], None, True),
            (['other'], [], None, False),
            (['other'], ['service'], None, True),
            (['reader'], [], 'all', False),
            (['other', 'reader'], [], None, True),
            (['reader'], [], None, True),
        ):
            context = base.a_caller(roles, service_roles=service_roles)
            context.system_scope = system_scope
            self.assertEqual(is_allowed, policy.allows(context, rule))

    def test_a_decision_is_by_all_that_the_rules_see(self) -> None:
        """Otherwise it would be given to another caller, too."""
        context = base.a_caller()
        seen = policy._caller(context)
        for name in context.to_policy_values():
            value = getattr(context, name)
            other = ['x'] if isinstance(value, list) else 'x'
            setattr(context, name, other)
            self.assertNotEqual(seen, policy._caller(context), name)
            setattr(context, name, value)

    def test_a_decision_is_for_one_host(self) -> None:
        """Otherwise it would be given for another host, too."""
        rules = self.useFixture(OperatorsRules())
        rules.write('"nova_accel:host:report": "user_name:%(hostname)s"')
        context = base.a_caller(HTTP_X_USER_NAME='compute-1')
        rule = 'nova_accel:host:report'
        for _twice in range(2):
            self.assertTrue(policy.allows(context, rule, 'compute-1'))
            self.assertFalse(policy.allows(context, rule, 'compute-2'))
            self.assertFalse(policy.allows(context, rule))

    def test_a_system_token_is_out_of_scope(self) -> None:
        context = base.a_caller()
        context.system_scope = 'all'
        self.assertFalse(
            policy.allows(context, 'nova_accel:device_profile:list')
        )

    def test_all_rules_are_ours(self) -> None:
        names = [rule.name for rule in policies.RULES]
        self.assertEqual(len(names), len(set(names)))
        for rule in policies.RULES:
            self.assertTrue(rule.name.startswith('nova_accel:'))
            # It is a sentence, not a method and a path.
            self.assertTrue(rule.description.endswith('.'))
            self.assertRegex(
                rule.check_str, r'^\w*roles?:\w+( or \w*roles?:\w+)*$'
            )

    def test_each_name_of_a_rule_has_one(self) -> None:
        names = {
            value
            for module in vars(policies).values()
            if inspect.ismodule(module)
            for value in vars(module).values()
            if isinstance(value, str) and value.startswith('nova_accel:')
        }
        self.assertEqual(names, {rule.name for rule in policies.RULES})
