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

"""The answers of the accelerator API: their JSON, or the fault they name."""

import json
from typing import Any
from typing import TypeVar

from nova_accel import exceptions
from nova_accel.client import refusal
from nova_accel.model import decoding

_T = TypeVar('_T')

#: The exceptions that the API names in ``error_code``.
_FAULTS = {
    fault.__name__: fault
    for fault in (
        exceptions.InvalidRequest,
        exceptions.InvalidDeviceProfile,
        exceptions.InvalidName,
        exceptions.NotFound,
        exceptions.OverQuota,
        exceptions.Conflict,
        exceptions.StaleAttempt,
        exceptions.FarAttempt,
        exceptions.NoAssignment,
        exceptions.AcceleratorsBusy,
        exceptions.InvalidTransition,
    )
}

#: The exceptions with the newest number, from which to go on counting.
_COUNTED = (exceptions.StaleAttempt, exceptions.FarAttempt)


def content(response: Any) -> Any:
    """The JSON of an answer, None if it has none.

    :raises AcceleratorError: it is a fault, or no JSON
    """
    if response.status_code >= 400:
        raise _fault(response)
    try:
        return response.json() if response.content else None
    except (ValueError, RecursionError) as error:
        raise exceptions.ServiceUnavailable(
            refusal.answered(response)
        ) from error


def read(parse: decoding.Parser[_T], answer: Any) -> _T:
    """:raises ServiceUnavailable: the answer is malformed."""
    try:
        return parse(answer)
    except decoding.Malformed as error:
        raise exceptions.ServiceUnavailable(
            f'the accelerator API gave an answer that is malformed: {error}'
        ) from error


def _fault(response: Any) -> exceptions.AcceleratorError:
    """The exception for an answer with a status of 400 or above."""
    try:
        body = response.json()
        # Cyborg's clients expect the message as JSON inside JSON.
        text = json.loads(body['error_message'])['faultstring']
        kind = _FAULTS[body['error_code']]
        if kind is exceptions.OverQuota:
            # It has the amounts of the project alone.
            return kind.for_all(text)
        # The text is for the host, so it must not become the public one.
        fault = kind(
            text, public=kind.PUBLIC or exceptions.AcceleratorError.PUBLIC
        )
        if isinstance(fault, _COUNTED):
            fault.newest = body.get('newest_attempt')
        return fault
    except (ValueError, KeyError, TypeError):
        return exceptions.ServiceUnavailable(refusal.answered(response))
