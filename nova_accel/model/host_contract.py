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
know, and names it.

A host learns from the API's answers what the API knows. So it costs no
request, unless the API is older: then the first report is sent again.
"""

from collections.abc import Mapping
import re
from typing import Any

#: The contract of the first release.
FIRST = 1

#: A host sends its report, and a request for accelerators.
REPORT = 'report'
REQUEST = 'request'

#: The lists that a message has of smaller parts.
_PARTS = frozenset({'devices', 'deployables', 'attach_handles', 'findings'})

Since = Mapping[str, Mapping[str, int]]

#: Name of a message, or of a list of parts -> key -> the contract since which
#: it has the key. Keys of the first contract are not in it.
SINCE: Since = {}

#: The contract of this release.
NEWEST = max(
    (contract for keys in SINCE.values() for contract in keys.values()),
    default=FIRST,
)

#: The header by which all answers to hosts name the API's newest contract.
HEADER = 'OpenStack-Accelerator-Contract'

#: The key of a report that names its contract.
KEY = 'contract'

_NUMBER = re.compile('[0-9]{1,4}', re.ASCII)


def stated(header: str | None) -> int:
    """The contract that an answer's header names, the first if it does not."""
    if header is None or not _NUMBER.fullmatch(header):
        return FIRST
    return int(header)


def spoken(
    message: Mapping[str, Any], name: str, contract: int, since: Since
) -> tuple[Mapping[str, Any], frozenset[str]]:
    """A message in the words of a contract.

    :param message: in the words of this release
    :param name: :data:`REPORT` or :data:`REQUEST`
    :param since: as :data:`SINCE`
    :returns: the message, and the names of the keys that were left out
    """
    if not any(
        number > contract
        for keys in since.values()
        for number in keys.values()
    ):
        return message, frozenset()
    left_out: set[str] = set()
    told = _kept(message, name, contract, since, left_out)
    return told, frozenset(left_out)


def _kept(
    part: Mapping[str, Any],
    name: str,
    contract: int,
    since: Since,
    left_out: set[str],
) -> dict[str, Any]:
    """A part without the keys of newer contracts, which are noted."""
    kept = {}
    for key, value in part.items():
        if since.get(name, {}).get(key, FIRST) > contract:
            left_out.add(key)
        elif key in _PARTS:
            kept[key] = [
                _kept(each, key, contract, since, left_out) for each in value
            ]
        else:
            kept[key] = value
    return kept
