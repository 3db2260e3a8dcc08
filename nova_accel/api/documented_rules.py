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

"""The policy rules with their calls, for the sample policy file."""

from oslo_policy import policy

from nova_accel.api import policies
from nova_accel.api import routes


def list_rules() -> list[policy.DocumentedRuleDefault]:
    """All rules, each with the calls that ask it."""
    calls: dict[str, list[policy.Operation]] = {}
    for path, methods in routes.API.items():
        for method, route in methods.items():
            for name in () if route.is_again else route.rules:
                calls.setdefault(name, []).append(
                    {'method': method, 'path': f'/v2{path}'}
                )
    return [
        policy.DocumentedRuleDefault(
            rule.name,
            rule.check_str,
            rule.description or '',
            calls[rule.name],
            scope_types=rule.scope_types,
        )
        for rule in policies.RULES
    ]
