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

"""Deployables: administrators look at them, some may have them programmed."""

from nova_accel.api.policies import personas
from nova_accel.api.policies import rule

LIST = 'nova_accel:deployable:list'
SHOW = 'nova_accel:deployable:show'
PROGRAM = 'nova_accel:deployable:program'
LOAD_SHELL = 'nova_accel:deployable:load_shell'
PROGRAM_OWN = 'nova_accel:deployable:program_own'

RULES = (
    rule.rule(LIST, personas.ADMIN, 'List deployables.'),
    rule.rule(SHOW, personas.ADMIN, 'Show a deployable.'),
    rule.rule(
        PROGRAM,
        personas.ADMIN,
        'Program any FPGA region that no server of another project has.',
    ),
    rule.rule(
        LOAD_SHELL,
        personas.ADMIN,
        'Load a shell into an FPGA that no server has a part of. The '
        'caller needs a right to program, too.',
    ),
    rule.rule(
        PROGRAM_OWN,
        personas.MEMBER,
        "Program an FPGA region that a server of the caller's project "
        'has. The server must be stopped, unless the driver can '
        'program under a guest.',
    ),
)
