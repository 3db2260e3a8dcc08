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

"""How many units of a resource class a project may have.

nova-scheduler, and nova-api for Cyborg's device profiles, count what Placement
has allocated before they claim. Two servers may be counted at once, before
either is claimed. So each server that gets accelerators is counted again when
it gets them, and these counts come one after the other.
"""

import collections
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses

from nova_accel import exceptions
from nova_accel.model.profiles import device_profile


@dataclasses.dataclass(frozen=True)
class Usage:
    """The units of a resource class that a project holds.

    :ivar total: of all its servers
    :ivar by_server: those of them that the server holds in other bindings: on
        the source of a move, or on a host that has failed
    """

    total: int = 0
    by_server: int = 0


def check(
    limits: Mapping[str, int],
    held: Mapping[str, Usage],
    wanted: Mapping[str, int],
) -> None:
    """Check that a server may have what it is about to get.

    As for nova-scheduler, what a server has on the source of a move counts
    beside what it gets. A server that gets no more than it has there is moved,
    and never refused.

    :param limits: resource class -> how many units the project may have
    :param held: resource class -> what is held before
    :param wanted: resource class -> how many units the server is to get
    :raises OverQuota: names each class, its limit, and both amounts; tenants
        may read it
    """
    over = {}
    for name, amount in sorted(wanted.items()):
        before = held.get(name, Usage())
        if (
            name in limits
            and amount > before.by_server
            and before.total + amount > limits[name]
        ):
            over[name] = (
                f'class:{name}: limit {limits[name]}, in use {before.total}, '
                f'wanted {amount}'
            )
    if over:
        raise exceptions.OverQuota(
            f'quota exceeded: {"; ".join(over.values())}',
            {name: limits[name] for name in over},
        )


def take(
    left: dict[str, int],
    groups: Iterable[device_profile.Group],
    servers: int,
) -> int:
    """Have a project take as many servers with the groups as it may.

    :param left: resource class -> how many more units it may have; other
        classes are not limited. It is lessened by what the servers take
    :returns: how many of the servers it may have
    """
    wanted: collections.Counter[str] = collections.Counter()
    for group in groups:
        wanted.update(group.resources)
    limited = wanted.keys() & left.keys()
    taken = min(
        [servers, *(max(0, left[name]) // wanted[name] for name in limited)]
    )
    for name in limited:
        left[name] -= wanted[name] * taken
    return taken
