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

"""Devices: administrators look at them, and disable them."""

from nova_accel.api.policies import personas
from nova_accel.api.policies import rule

LIST = 'nova_accel:device:list'
SHOW = 'nova_accel:device:show'
DISABLE = 'nova_accel:device:disable'
ENABLE = 'nova_accel:device:enable'

RULES = (
    rule.rule(LIST, personas.ADMIN, 'List devices.'),
    rule.rule(SHOW, personas.ADMIN, 'Show a device.'),
    rule.rule(DISABLE, personas.ADMIN, 'Keep further servers from a device.'),
    rule.rule(ENABLE, personas.ADMIN, 'Let servers have a device again.'),
)
