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

"""The key by which a flavor names its device profile, ours or Cyborg's."""

from collections.abc import Mapping

from nova_accel import exceptions
from nova_accel.model.profiles import device_profile

_OTHER = {
    device_profile.FLAVOR_KEY: device_profile.CYBORG_FLAVOR_KEY,
    device_profile.CYBORG_FLAVOR_KEY: device_profile.FLAVOR_KEY,
}


def changed(extra_specs: Mapping[str, str], key: str) -> dict[str, str] | None:
    """The extra specs of a flavor with the key instead of the other one.

    :param key: :data:`nova_accel.model.profiles.device_profile.FLAVOR_KEY` or
        :data:`nova_accel.model.profiles.device_profile.CYBORG_FLAVOR_KEY`
    :returns: None if the flavor has the key already
    :raises Conflict: it has both keys, or Cyborg's one would have to name
        several device profiles.
    :raises InvalidRequest: it has neither.
    """
    other = _OTHER[key]
    if key in extra_specs and other in extra_specs:
        raise exceptions.Conflict(
            f'its flavor has both {key} and {other}: which of them counts is '
            'not known'
        )
    if key in extra_specs:
        return None
    if other not in extra_specs:
        raise exceptions.InvalidRequest(
            f'its flavor has neither {key} nor {other}: it asks for no '
            'accelerators'
        )
    if key == device_profile.CYBORG_FLAVOR_KEY and ',' in extra_specs[other]:
        raise exceptions.Conflict(
            f'its flavor names several device profiles, {extra_specs[other]}, '
            f'and {key} can name one: choose that by "openstack accelerator '
            'server set --device-profile"'
        )
    return {
        key if name == other else name: value
        for name, value in extra_specs.items()
    }


def naming(
    extra_specs: Mapping[str, str], name: str | None
) -> dict[str, str] | None:
    """The extra specs of a flavor that names a device profile by our key.

    :param name: None if it is to name none
    :returns: None if the flavor does so already
    """
    others = {
        key: value
        for key, value in extra_specs.items()
        if key != device_profile.FLAVOR_KEY
    }
    if name is not None:
        others[device_profile.FLAVOR_KEY] = name
    return None if others == extra_specs else others


def check_not_cyborgs(extra_specs: Mapping[str, str]) -> None:
    """:raises Conflict: the flavor has Cyborg's key; the text has the cure."""
    if device_profile.CYBORG_FLAVOR_KEY in extra_specs:
        raise exceptions.Conflict.for_all(
            f'its flavor has {device_profile.CYBORG_FLAVOR_KEY}: '
            '"nova-accel-manage server to-native" gives the server '
            f'{device_profile.FLAVOR_KEY} instead'
        )
