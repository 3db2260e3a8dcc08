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

from nova_accel.api.policies import personas
from nova_accel.api.policies import rule

LIST = 'nova_accel:binding:list'
SHOW = 'nova_accel:binding:show'
ACQUIRE = 'nova_accel:binding:acquire'
RELEASE = 'nova_accel:binding:release'

RULES = (
    rule.rule(LIST, personas.SERVICE, 'List what instances hold on a host.'),
    rule.rule(
        SHOW, personas.SERVICE, 'Show what an instance holds on a host.'
    ),
    rule.rule(
        ACQUIRE,
        personas.SERVICE,
        'Make, match and bind the ARQs of an instance, or those that are to '
        'replace failed ones; or adopt those that Nova has bound.',
    ),
    rule.rule(
        RELEASE,
        personas.SERVICE,
        'Release what an instance holds on a host, or what Nova has '
        'bound for it there.',
    ),
)
