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

"""Bindings of an instance on a host: only nova-compute makes them."""

from oslo_policy import policy

from nova_accel.api.policies import personas

LIST = 'nova_accel:binding:list'
SHOW = 'nova_accel:binding:show'
ACQUIRE = 'nova_accel:binding:acquire'
RELEASE = 'nova_accel:binding:release'

_LIST_PATH = '/v2/hosts/{hostname}/instances'
_PATH = _LIST_PATH + '/{instance_uuid}/{role}'


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        policy.DocumentedRuleDefault(
            name=LIST, check_str=personas.SERVICE, scope_types=['project'],
            description='List what instances hold on a host.',
            operations=[{'method': 'GET', 'path': _LIST_PATH}]),
        policy.DocumentedRuleDefault(
            name=SHOW, check_str=personas.SERVICE, scope_types=['project'],
            description='Show what an instance holds on a host.',
            operations=[{'method': 'GET', 'path': _PATH}]),
        policy.DocumentedRuleDefault(
            name=ACQUIRE, check_str=personas.SERVICE,
            scope_types=['project'],
            description='Make, match and bind the ARQs of an instance, or '
                        'adopt those that Nova has bound.',
            operations=[{'method': 'PUT', 'path': _PATH},
                        {'method': 'PUT', 'path': f'{_PATH}/arqs'}]),
        policy.DocumentedRuleDefault(
            name=RELEASE, check_str=personas.SERVICE,
            scope_types=['project'],
            description='Release what an instance holds on a host, or what '
                        'Nova has bound for it there.',
            operations=[{'method': 'DELETE', 'path': _PATH},
                        {'method': 'DELETE',
                         'path': _LIST_PATH + '/{instance_uuid}'}]),
    ]
