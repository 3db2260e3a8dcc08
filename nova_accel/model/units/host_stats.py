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

"""The accelerators of a host in the statistics that Nova keeps of it.

nova-compute sends them with its other resources, and nova-scheduler has them
without asking anybody. They say how many units are there, not how many are
free.
"""

from collections.abc import Mapping
from typing import Any

#: The statistic with the units of all resource classes. With a colon and a
#: resource class after it, it has the units of that class.
KEY = 'nova_accel_units'

#: A host has no more units, and no more classes, for all that is told of it.
MAX_UNITS = 1_000_000
MAX_CLASSES = 64


def to_stats(units: Mapping[str, int]) -> dict[str, str]:
    """The statistics of a host; there are none without accelerators.

    :param units: resource class -> number of units
    """
    if not any(units.values()):
        return {}
    named = sorted(units.items())[:MAX_CLASSES]
    return {
        KEY: _text(sum(units.values())),
        **{f'{KEY}:{name}': _text(number) for name, number in named if number},
    }


def units(stats: Mapping[str, Any]) -> int:
    """All accelerators of a host, 0 for anything that is no number."""
    told = stats.get(KEY)
    if told is None:
        return 0
    try:
        return max(0, min(int(told), MAX_UNITS))
    except (TypeError, ValueError, OverflowError):
        return 0


def _text(number: int) -> str:
    return str(min(number, MAX_UNITS))
