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

"""The finding that two sources of the fleet disagree."""

from collections.abc import Iterable
import enum

from nova_accel.model import finding
from nova_accel.model.fleet import fleet_sources


class Subject(enum.StrEnum):
    """The ways in which two sources disagree."""

    #: An ARQ is held for no one.
    LEAK = 'leak'
    #: An ARQ is held on a host that is not its server's.
    ELSEWHERE = 'elsewhere'
    #: A server's ARQ has no unit.
    MISSING = 'missing'
    #: An ARQ has a unit that its host does not find.
    GONE = 'gone'
    #: Placement counts fewer units of a server than are bound.
    UNCOUNTED = 'uncounted'
    #: Placement counts more units of a consumer than are bound.
    OVERCOUNTED = 'overcounted'
    #: Placement has a provider of ours that no host reports.
    NOBODYS = "no one's"
    #: Nova's own PCI tracker has given a unit away, too.
    DOUBLE = 'double'


def make(
    kind: Subject,
    hostname: str | None,
    about: str,
    units: Iterable[fleet_sources.FleetUnit],
    words: str,
    but: str,
    cure: str,
) -> finding.Finding:
    """The finding, about units and their devices."""
    units = tuple(units)
    return finding.Finding(
        kind,
        words,
        hostname=hostname,
        devices=tuple(dict.fromkeys(unit.device_uuid for unit in units)),
        units=tuple(unit.uuid for unit in units),
        about=about,
        but=but,
        cure=cure,
    )


def are(amount: int) -> str:
    """The verb of so many."""
    return 'is' if amount == 1 else 'are'
