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

"""Servers, as their owners and guests ask for their accelerators."""

from nova_accel.api.policies import personas
from nova_accel.api.policies import rule

SHOW = 'nova_accel:server:show'
REPLACE = 'nova_accel:server:replace'
SET = 'nova_accel:server:set'
VENDORDATA = 'nova_accel:server:vendordata'

RULES = (
    rule.rule(
        SHOW,
        personas.READER,
        "Show whether the accelerators of a server of the caller's project "
        'work.',
    ),
    rule.rule(
        REPLACE,
        personas.MEMBER,
        "Replace failed devices of a server of the caller's project.",
    ),
    rule.rule(
        SET,
        personas.ADMIN,
        'Give a server another device profile, or none, where it is.',
    ),
    rule.rule(
        VENDORDATA,
        personas.SERVICE,
        "Tell Nova's metadata API the same, for the guest.",
    ),
)
