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

"""The device profile that a server's flavor asks us for."""

from nova import objects

from nova_accel.model import device_profile
from nova_accel.virt import accel_info


def profile(
    flavor: objects.Flavor, found: accel_info.Split = accel_info.NOTHING
) -> str | None:
    """The profile's name, None if the flavor asks us for none.

    :param found: the ARQs that Nova has got for the server. If some are of
        our devices, Cyborg's key names the profile
    """
    name: str | None = flavor.extra_specs.get(
        device_profile.CYBORG_FLAVOR_KEY
        if found.ours
        else device_profile.FLAVOR_KEY
    )
    return name


def may_ask_us(flavor: objects.Flavor, found: accel_info.Split) -> bool:
    """Whether a server of the flavor may have accelerators of ours.

    A flavor with Cyborg's key may mean a real Cyborg. The ARQs tell which,
    but Nova has not got them when it starts guests after a boot of the host.

    :param found: as for :func:`profile`
    """
    return profile(flavor, found) is not None or (
        found == accel_info.NOTHING
        and device_profile.CYBORG_FLAVOR_KEY in flavor.extra_specs
    )
