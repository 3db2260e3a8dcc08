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

"""Contracts by which hosts and the API tell each other of devices.

A host is upgraded before or after the API. Both know the contracts up to that
of their own release. A host's report keeps to the newest contract that both
know. It names the number, except for contract 0, which has no word for it.

A host learns from the API's answers what the API knows. So it costs no
request, unless the API is older: then the first report is sent again.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import re
from typing import Any

#: The contract of this release.
NEWEST = 3

#: The contract of the release that says no number.
FIRST = 0

#: The header by which all answers to hosts name the API's newest contract.
HEADER = 'OpenStack-Accelerator-Contract'

#: The key of a report that names its contract.
KEY = 'contract'

#: The key of a report that has what its host has found amiss.
FINDINGS = 'findings'

#: Key -> the contract since which a report has it, or a device, deployable,
#: attach handle or finding of a report. Keys of contract 0 are in none.
REPORT_SINCE: Mapping[str, int] = {KEY: 1, FINDINGS: 2}
DEVICE_SINCE: Mapping[str, int] = {'link_sets': 1}
DEPLOYABLE_SINCE: Mapping[str, int] = {}
HANDLE_SINCE: Mapping[str, int] = {}
FINDING_SINCE: Mapping[str, int] = {}

#: The key of a request for a server that has not had the accelerators before.
IS_NEW = 'is_new'

#: The same of a request for accelerators.
ACQUIRE_SINCE: Mapping[str, int] = {'numa_nodes': 1, IS_NEW: 3}

#: The list that a part has of smaller parts -> the keys of these.
_PARTS = {
    'devices': DEVICE_SINCE,
    'deployables': DEPLOYABLE_SINCE,
    'attach_handles': HANDLE_SINCE,
    FINDINGS: FINDING_SINCE,
}

_NUMBER = re.compile('[0-9]{1,4}', re.ASCII)


def stated(header: str | None) -> int:
    """The contract that an answer's header names, 0 if it names none."""
    if header is None or not _NUMBER.fullmatch(header):
        return FIRST
    return int(header)


def spoken(
    report: Mapping[str, Any], contract: int
) -> tuple[Mapping[str, Any], frozenset[str]]:
    """A report in the words of a contract.

    :param report: in the words of this release
    :returns: the report, and the names of the keys that were left out
    """
    told = {**report, KEY: contract}
    if contract >= NEWEST:
        return told, frozenset()
    left_out: set[str] = set()
    kept = _kept(told, REPORT_SINCE, contract, left_out)
    # This key is no news of a host.
    return kept, frozenset(left_out - {KEY})


def acquired(request: Mapping[str, Any], contract: int) -> Mapping[str, Any]:
    """A request for accelerators in the words of a contract.

    :param request: in the words of this release
    """
    return _kept(request, ACQUIRE_SINCE, contract, set())


def _kept(
    part: Mapping[str, Any],
    since: Mapping[str, int],
    contract: int,
    left_out: set[str],
) -> dict[str, Any]:
    """A part without the keys of newer contracts, which are noted."""
    kept = {}
    for key, value in part.items():
        if since.get(key, FIRST) > contract:
            left_out.add(key)
        elif key in _PARTS:
            kept[key] = _all_kept(value, _PARTS[key], contract, left_out)
        else:
            kept[key] = value
    return kept


def _all_kept(
    parts: Iterable[Mapping[str, Any]],
    since: Mapping[str, int],
    contract: int,
    left_out: set[str],
) -> Sequence[Mapping[str, Any]]:
    return [_kept(part, since, contract, left_out) for part in parts]
