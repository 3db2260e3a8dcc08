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

"""The groups of device profiles behind the request groups made of them.

Nova's request groups have no place for a bitstream. Nobody but this process
needs it, and only as long as the request lives.
"""

from typing import TypeAlias
import weakref

from nova import objects

from nova_accel.model import device_profile
from nova_accel.model import naming

_Behind: TypeAlias = (
    'weakref.WeakKeyDictionary[objects.RequestGroup, device_profile.Group]'
)

_BEHIND: _Behind = weakref.WeakKeyDictionary()


def remember(
    request_group: 'objects.RequestGroup', group: device_profile.Group
) -> None:
    """Note from which group of a profile a request group is made."""
    _BEHIND[request_group] = group


def of(request_group: 'objects.RequestGroup') -> device_profile.Group:
    """The group of the profile; without properties if it is not known."""
    return _BEHIND.get(request_group) or device_profile.Group(
        dict(request_group.resources),
        frozenset(request_group.required_traits) - {naming.OWNERSHIP_TRAIT},
        frozenset(request_group.forbidden_traits),
    )
