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

"""Device profiles: anyone may read them, admins write them."""

from oslo_policy import policy

from nova_accel.api.policies import personas

LIST = 'nova_accel:device_profile:list'
SHOW = 'nova_accel:device_profile:show'
CREATE = 'nova_accel:device_profile:create'
DELETE = 'nova_accel:device_profile:delete'


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        policy.DocumentedRuleDefault(
            name=LIST, check_str=personas.READER, scope_types=['project'],
            description='List device profiles.',
            operations=[{'method': 'GET', 'path': '/v2/device_profiles'}]),
        policy.DocumentedRuleDefault(
            name=SHOW, check_str=personas.READER, scope_types=['project'],
            description='Show a device profile.',
            operations=[{'method': 'GET',
                         'path': '/v2/device_profiles/{uuid}'}]),
        policy.DocumentedRuleDefault(
            name=CREATE, check_str=personas.ADMIN, scope_types=['project'],
            description='Create a device profile.',
            operations=[{'method': 'POST', 'path': '/v2/device_profiles'}]),
        policy.DocumentedRuleDefault(
            name=DELETE, check_str=personas.ADMIN, scope_types=['project'],
            description='Delete device profiles.',
            operations=[
                {'method': 'DELETE', 'path': '/v2/device_profiles/{uuid}'},
                {'method': 'DELETE', 'path': '/v2/device_profiles'}]),
    ]
