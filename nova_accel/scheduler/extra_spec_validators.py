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

"""Validators of the flavor extra specs in the namespace ``nova_accel``.

Nova refuses any other key in a namespace that has a validator.
"""

from nova.api.validation.extra_specs import base

from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import extra_specs


def register() -> list[base.ExtraSpecValidator]:
    """Entry point of ``nova.api.extra_spec_validators``."""
    return [
        base.ExtraSpecValidator(
            name=device_profile.FLAVOR_KEY,
            description=(
                'The name of the device profile whose accelerators each '
                'server gets; or several names with commas between them, of '
                'which the first one counts that can be served. Cannot be '
                'used together with ``accel:device_profile``.'
            ),
            value={
                'type': str,
                'description': 'The names of device profiles.',
                'pattern': extra_specs.PROFILES_PATTERN,
            },
        ),
        base.ExtraSpecValidator(
            name=extra_specs.PCI_TOPOLOGY,
            description=(
                'The PCI Express tree that the guest sees of its '
                'accelerators: ``host`` for root complexes, switches and '
                'NUMA nodes as on the host, ``flat`` for one root complex.'
            ),
            value={
                'type': str,
                'description': 'The PCI Express tree.',
                'enum': [str(value) for value in extra_specs.PciTopology],
            },
        ),
    ]
