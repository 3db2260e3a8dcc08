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

"""Accelerator requests (ARQs): a project's own; bound ones are Nova's."""

from nova_accel.api.policies import personas
from nova_accel.api.policies import rule

LIST = 'nova_accel:accelerator_request:list'
SHOW = 'nova_accel:accelerator_request:show'
CREATE = 'nova_accel:accelerator_request:create'
DELETE = 'nova_accel:accelerator_request:delete'
BIND = 'nova_accel:accelerator_request:bind'
SET_PROJECT = 'nova_accel:accelerator_request:set_project'
DELETE_BOUND = 'nova_accel:accelerator_request:delete_bound'
ALL_PROJECTS = 'nova_accel:accelerator_request:all_projects'

RULES = (
    rule.rule(LIST, personas.READER, "List the ARQs of the caller's project."),
    rule.rule(SHOW, personas.READER, "Show an ARQ of the caller's project."),
    rule.rule(CREATE, personas.MEMBER, 'Create the ARQs of a device profile.'),
    rule.rule(
        DELETE,
        personas.MEMBER,
        "Delete ARQs of the caller's project that are not bound.",
    ),
    rule.rule(
        BIND,
        personas.VOUCHED,
        'Bind ARQs to an instance on a host, or unbind them.',
    ),
    rule.rule(
        SET_PROJECT,
        f'{personas.ADMIN} or {personas.SERVICE}',
        'Give ARQs to another project while they are bound.',
    ),
    rule.rule(
        DELETE_BOUND,
        personas.VOUCHED,
        'Delete ARQs that are bound, and all those of an instance.',
    ),
    rule.rule(
        ALL_PROJECTS,
        f'{personas.VOUCHED} or {personas.ADMIN}',
        'Reach the ARQs of all projects where other rules allow it.',
    ),
)
