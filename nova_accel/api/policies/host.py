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

from nova_accel.api.policies import personas
from nova_accel.api.policies import rule

REPORT = 'nova_accel:host:report'
SHOW = 'nova_accel:host:show'

RULES = (
    rule.rule(
        REPORT,
        personas.SERVICE,
        'Report the devices of a compute host: which it has, makes '
        'again, has cleaned, and programs.',
    ),
    rule.rule(
        SHOW,
        f'{personas.VOUCHED} or {personas.ADMIN}',
        'See the host, the resource provider and the device of '
        'accelerator requests, filter these by their host, and read '
        'errors that name such things.',
    ),
)
