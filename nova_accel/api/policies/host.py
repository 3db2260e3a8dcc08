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

"""Hosts: only nova-compute speaks of them, and tenants never see them."""

from oslo_policy import policy

from nova_accel.api.policies import personas
from nova_accel.api.policies import rule

REPORT = 'nova_accel:host:report'
SHOW = 'nova_accel:host:show'

_PATH = '/v2/hosts/{hostname}'


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        rule.rule(*row)
        for row in (
            (
                REPORT,
                personas.SERVICE,
                'Report the devices of a compute host: which it has, makes '
                'again, has cleaned, and programs.',
                f'PUT {_PATH}',
                f'PUT {_PATH}/cleaning',
                f'PUT {_PATH}/provisioning',
                f'PUT {_PATH}/programmings/{{uuid}}',
            ),
            (
                SHOW,
                f'{personas.VOUCHED} or {personas.ADMIN}',
                'See the host, the resource provider and the device of '
                'accelerator requests, filter these by their host, and read '
                'errors that name such things.',
                'GET /v2/accelerator_requests',
                'GET /v2/accelerator_requests/{uuid}',
            ),
        )
    ]
