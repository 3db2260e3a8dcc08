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

"""Attributes of deployables: administrators read them, and note some."""

from nova_accel.api.policies import personas
from nova_accel.api.policies import rule

LIST = 'nova_accel:attribute:list'
SHOW = 'nova_accel:attribute:show'
CREATE = 'nova_accel:attribute:create'
DELETE = 'nova_accel:attribute:delete'

RULES = (
    rule.rule(LIST, personas.ADMIN, 'List the attributes of deployables.'),
    rule.rule(SHOW, personas.ADMIN, 'Show an attribute of a deployable.'),
    rule.rule(CREATE, personas.ADMIN, 'Note an attribute of a deployable.'),
    rule.rule(
        DELETE,
        personas.ADMIN,
        'Delete an attribute that was noted of a deployable.',
    ),
)
