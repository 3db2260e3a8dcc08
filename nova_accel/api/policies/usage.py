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

"""The history of who has held which units."""

from nova_accel.api.policies import personas
from nova_accel.api.policies import rule

SHOW = 'nova_accel:usage:show'
ALL_PROJECTS = 'nova_accel:usage:all_projects'

RULES = (
    rule.rule(
        SHOW,
        personas.READER,
        "Show how long the caller's project has held accelerators.",
    ),
    rule.rule(
        ALL_PROJECTS,
        personas.ADMIN,
        'Show how long all projects have held accelerators, where '
        f'{SHOW} allows it.',
    ),
)
