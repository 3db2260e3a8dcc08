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

"""Where the providers of devices are, below those of their link sets.

A set with several parts is a provider without an inventory. Its parts are
smaller sets, pools, and devices with providers of their own. A set with one
part is the same as that part, and has no provider: so the devices of the
smallest sets share pools.
"""

from collections.abc import Hashable
from collections.abc import Mapping
import hashlib
import itertools
from typing import NamedTuple

from nova_accel.model import link_sets


class Home(NamedTuple):
    """Where the provider of a device is.

    ``parents`` are the sets that are providers above it, the largest first.
    ``name`` is the name of the smallest set that it is in, '' if it is in
    none.
    """

    parents: tuple[link_sets.SetNode, ...] = ()
    name: str = ''

    @property
    def prefix(self) -> tuple[str, ...]:
        """The first parts of the names of the providers here."""
        return (self.name,) if self.name else ()

    @property
    def suffix(self) -> tuple[str, ...]:
        """The last parts of the names of the providers here."""
        return suffix(self.parents)


#: A device that is in no set.
NOWHERE = Home()


def suffix(parents: tuple[link_sets.SetNode, ...]) -> tuple[str, ...]:
    """The last part of the name of a provider below these sets.

    Nova cannot give a provider another parent. So a provider whose parents
    change has to be another one.
    """
    if not parents:
        return ()
    names = '/'.join(node.name for node in parents)
    return (hashlib.sha256(names.encode()).hexdigest()[:8],)


def homes(
    owners: Mapping[str, Hashable], tree: link_sets.SetTree
) -> dict[str, Home]:
    """The home of each device.

    :param owners: device -> its provider: the same for devices that share a
        pool wherever they may
    """
    parts: dict[str, set[Hashable]] = {}
    for device, owner in owners.items():
        path = tree.path(device)
        for node, below in itertools.pairwise((*path, None)):
            if node is not None:
                parts.setdefault(node.name, set()).add(
                    ('pool', owner) if below is None else ('set', below.name)
                )
    return {
        device: Home(
            tuple(
                node for node in tree.path(device) if len(parts[node.name]) > 1
            ),
            tree.path(device)[-1].name if tree.path(device) else '',
        )
        for device in owners
    }


def pools(
    owners: Mapping[str, Hashable], tree: link_sets.SetTree
) -> dict[str, frozenset[str]]:
    """Device -> all devices of its pool."""
    found: dict[Hashable, set[str]] = {}
    keys = {}
    for device, owner in owners.items():
        path = tree.path(device)
        keys[device] = (path[-1].name if path else '', owner)
        found.setdefault(keys[device], set()).add(device)
    return {device: frozenset(found[key]) for device, key in keys.items()}
