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

"""Hosts: only nova-compute speaks of them."""

from oslo_policy import policy

from nova_accel.api.policies import personas

REPORT = 'nova_accel:host:report'


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        policy.DocumentedRuleDefault(
            name=REPORT, check_str=personas.SERVICE, scope_types=['project'],
            description='Report what devices a compute host has, and which '
                        'it makes again.',
            operations=[
                {'method': 'PUT', 'path': '/v2/hosts/{hostname}'},
                {'method': 'PUT',
                 'path': '/v2/hosts/{hostname}/provisioning'}]),
    ]
