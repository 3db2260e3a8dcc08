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

"""Drained hosts: administrators drain them, and look at them."""

from nova_accel.api.policies import personas
from nova_accel.api.policies import rule

LIST = 'nova_accel:drain:list'
BEGIN = 'nova_accel:drain:begin'
END = 'nova_accel:drain:end'

RULES = (
    rule.rule(
        LIST,
        personas.ADMIN,
        'List drained hosts, and show why one is drained.',
    ),
    rule.rule(
        BEGIN,
        personas.ADMIN,
        'Keep further servers from all devices of a host.',
    ),
    rule.rule(
        END, personas.ADMIN, 'Let servers have the devices of a host again.'
    ),
)
