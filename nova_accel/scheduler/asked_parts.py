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

"""The groups of a device profile as Placement is asked for them.

A group that is larger than every pool of devices becomes several groups.
"""

from collections.abc import Iterable
from collections.abc import Iterator

from nova_accel.model import device_profile
from nova_accel.model import group_division
from nova_accel.scheduler import known_stock

#: The id of a group in Nova, and the group.
Asked = tuple[str, device_profile.Group]


def whole(
    groups: Iterable[device_profile.Group], port_uuid: str = ''
) -> Iterator[Asked]:
    """The groups as they are.

    :param port_uuid: the port that has the profile, empty for the flavor's
    """
    for index, group in enumerate(groups):
        yield device_profile.requester_id(index, port_uuid), group


def placeable(groups: Iterable[device_profile.Group]) -> Iterator[Asked]:
    """The groups, or their parts.

    A group stays whole if no size of a pool is known for it: the database
    gives no answer, or an operator has given the required traits to providers
    in Placement.

    :raises NotFound: a group is too large; the text names it
    """
    for index, group in enumerate(groups):
        parts = group_division.placeable(index, group, _largest(group))
        for number, part in enumerate(parts):
            yield (
                device_profile.requester_id(
                    index, part=number if len(parts) > 1 else None
                ),
                part,
            )


def _largest(group: device_profile.Group) -> int:
    """The most units that a pool has for the group; 0 if that is unknown.

    The database is asked only if the group is too large by what is known.
    """
    wanted = sum(group.resources.values())
    if wanted == 1:
        return 1
    largest = 0
    for max_age_s in (known_stock.DECIDING_S, known_stock.FRESH_S):
        known = known_stock.current(max_age_s)
        largest = 0 if known is None else known.largest(group)
        if largest >= wanted:
            break
    return largest
