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

"""What the extra specs of a flavor ask for themselves, beside a profile.

They have the keys of a device profile's group, see
:mod:`nova_accel.model.device_profile`. A flavor asks with them for more than
accelerators: what the compute node itself is to have is left to Placement.
"""

from collections.abc import Collection
from collections.abc import Mapping

from nova_accel.model import device_profile


def profile(extra_specs: Mapping[str, str]) -> str | None:
    """The name of the device profile, by our key or by Cyborg's."""
    return (extra_specs.get(device_profile.FLAVOR_KEY)
            or extra_specs.get(device_profile.CYBORG_FLAVOR_KEY))


def programming(extra_specs: Mapping[str, str]) -> dict[str, str]:
    """The keys that say what a device is to be programmed with.

    As with images, a key with nothing behind it says nothing.
    """
    keys = (f'accel:{name}' for name in sorted(device_profile.PROPERTIES))
    return {key: extra_specs[key] for key in keys
            if extra_specs.get(key, '').strip()}


def group(extra_specs: Mapping[str, str],
          allocated: Collection[str]) -> dict[str, str]:
    """The group that one provider is to serve, not checked.

    :param allocated: the resource classes that are allocated of it
    :returns: empty if none of them is asked for
    """
    keys = (f'resources:{name}' for name in sorted(allocated))
    resources = {key: extra_specs[key] for key in keys if key in extra_specs}
    if not resources:
        return {}
    return {
        **resources,
        # A group has no others: they are the node's, or Placement's matter.
        **{key: value for key, value in extra_specs.items()
           if key.startswith('trait:CUSTOM_')},
        **programming(extra_specs)}
