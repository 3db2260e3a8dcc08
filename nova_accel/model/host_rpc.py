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

"""The RPC of compute hosts, for orders that cannot wait for a report.

RPC passes only Nova's own exceptions on unchanged. So a host's refusal travels
as the text of one exception, with the name of the fault and both of its texts.
"""

from collections.abc import Mapping
import json
from typing import NamedTuple

from nova_accel import exceptions
from nova_accel.model import host_contract

TOPIC = 'nova_accel'

#: The version of the methods that all hosts have.
FIRST = '1.0'

#: The version of the methods. A host serves callers of the same and of older
#: minor versions.
VERSION = FIRST

#: Contract -> the version of the methods that hosts serve since then.
_SERVED_SINCE: Mapping[int, str] = {host_contract.FIRST: FIRST}

#: The faults with which a host may refuse, by their names.
FAULTS = {
    fault.__name__: fault
    for fault in (
        exceptions.InvalidRequest,
        exceptions.NotAllowed,
        exceptions.NotFound,
        exceptions.BitstreamNotFound,
        exceptions.Conflict,
        exceptions.BitstreamRefused,
        exceptions.DeviceError,
        exceptions.ServiceUnavailable,
    )
}


class Callee(NamedTuple):
    """A host, by its name in RPC, and the contract that it has reported by."""

    service_host: str
    contract: int

    @property
    def version(self) -> str:
        """The newest version of the methods that it is known to serve."""
        since = max(each for each in _SERVED_SINCE if each <= self.contract)
        return _SERVED_SINCE[since]


def refusal(fault: exceptions.AcceleratorError) -> str:
    """The text of :class:`RefusedByHost` for sending a fault through RPC."""
    name = next(
        (
            each.__name__
            for each in type(fault).__mro__
            if each.__name__ in FAULTS
        ),
        exceptions.DeviceError.__name__,
    )
    return json.dumps(
        {'fault': name, 'text': str(fault), 'public': fault.public}
    )


def refused(text: str) -> exceptions.AcceleratorError:
    """The fault that was sent through RPC as this text."""
    try:
        told = json.loads(text)
        return FAULTS[told['fault']](
            str(told['text']), public=str(told['public'])
        )
    except (ValueError, KeyError, TypeError):
        return exceptions.DeviceError(f'the host refused it: {text}')
