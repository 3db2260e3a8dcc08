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

import testtools

from nova_accel.api import documented_rules
from nova_accel.api import policies
from nova_accel.api import routes
from nova_accel.api.http import policy

_ARQS = '/v2/accelerator_requests'


class TestListRules(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.rules = documented_rules.list_rules()
        self.calls = {
            rule.name: {
                f'{call["method"]} {call["path"]}' for call in rule.operations
            }
            for rule in self.rules
        }

    def test_the_enforcer_has_the_same(self) -> None:
        self.assertEqual(
            [rule.name for rule in policies.RULES],
            [rule.name for rule in self.rules],
        )
        enforced = policy.get_enforcer().registered_rules
        for rule in self.rules:
            self.assertEqual(rule, enforced[rule.name])
            self.assertEqual(enforced[rule.name].scope_types, rule.scope_types)
            self.assertEqual(enforced[rule.name].description, rule.description)

    def test_each_call_is_in_the_description_of_a_rule(self) -> None:
        calls = {
            f'{method} /v2{path}'
            for path, methods in routes.API.items()
            for method in methods
        }
        # The same as a call of another path.
        calls.remove('PATCH /v2/deployables/{uuid}/program/{same_uuid}')
        self.assertEqual(calls, set().union(*self.calls.values()))

    def test_the_rule_of_several_calls(self) -> None:
        self.assertEqual(
            {
                'PATCH /v2/deployables/{uuid}/program',
                'POST /v2/fpga/{deployable_uuid}',
            },
            self.calls['nova_accel:deployable:program'],
        )

    def test_a_rule_that_is_enough_beside_another(self) -> None:
        self.assertEqual(
            self.calls['nova_accel:deployable:program'],
            self.calls['nova_accel:deployable:program_own'],
        )

    def test_rules_that_handlers_ask(self) -> None:
        for name, method in (
            ('accelerator_request:set_project', 'PATCH'),
            ('accelerator_request:delete_bound', 'DELETE'),
            ('host:show', 'GET'),
        ):
            self.assertEqual(
                {f'{method} {path}' for path in (_ARQS, f'{_ARQS}/{{uuid}}')},
                self.calls[f'nova_accel:{name}'],
            )
        self.assertEqual(
            {
                'POST /v2/servers/{uuid}/accelerators/replace',
                'GET /v2/servers/{uuid}/accelerators',
                'PUT /v2/servers/{uuid}/accelerators',
                *self.calls['nova_accel:host:show'],
            },
            self.calls['nova_accel:accelerator_request:all_projects'],
        )
        self.assertEqual(
            self.calls['nova_accel:deployable:program'],
            self.calls['nova_accel:deployable:load_shell'],
        )
