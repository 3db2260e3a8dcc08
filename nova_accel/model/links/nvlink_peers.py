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

"""The devices that the NVLinks of a GPU end at, as they were and as they are.

NVIDIA's driver tells the other end of a link only while the link is up. So a
link that has failed is known by what was told before.
"""

from collections.abc import Mapping
from collections.abc import Set
from typing import NamedTuple


class Peers(NamedTuple):
    """Addresses of the peers of a GPU.

    Links to those that are ``up`` work, as far as is known. Links to those
    that are ``lost`` did.
    """

    up: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()


class Pairs(NamedTuple):
    """The pairs of GPUs with links between them, and those that have failed.

    ``down`` are some of ``all``.
    """

    all: frozenset[frozenset[str]] = frozenset()
    down: frozenset[frozenset[str]] = frozenset()


def now(up: Set[str], told: Set[str], before: Peers) -> Peers:
    """The peers of a GPU after a look at it.

    A GPU that a guest has tells nothing, and its links may be down for that
    reason. So a peer is lost only if it was looked at, too. Links that end at
    something new were made by hand, and nothing before counts any more.

    :param up: the other ends of the links that are up
    :param told: the GPUs that were looked at together
    """
    silent = before.up - told
    known = before.up | before.lost
    lost = frozenset() if up - known else known - up - silent
    return Peers(frozenset(up) | silent, frozenset(lost))


def pairs(of_gpus: Mapping[str, Peers]) -> Pairs:
    """The pairs of which both GPUs name each other."""
    found = _mutual(
        {gpu: each.up | each.lost for gpu, each in of_gpus.items()}
    )
    up = _mutual({gpu: each.up for gpu, each in of_gpus.items()})
    return Pairs(found, found - up)


def _mutual(of_gpus: Mapping[str, Set[str]]) -> frozenset[frozenset[str]]:
    return frozenset(
        frozenset({one, other})
        for one, theirs in of_gpus.items()
        for other in theirs
        if one != other and one in of_gpus.get(other, ())
    )
