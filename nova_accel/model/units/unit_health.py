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

"""Whether a unit that a server has works, in words for its owner."""

from collections.abc import Mapping
import enum
from typing import NamedTuple

from nova_accel.model.units import unit_state

_State = unit_state.UnitState


class Health(enum.StrEnum):
    """Whether the guest can use the unit, as far as is known."""

    HEALTHY = 'healthy'
    FAILED = 'failed'
    BEING_REPLACED = 'being replaced'
    UNKNOWN = 'unknown'


class Verdict(NamedTuple):
    """A health with its reason.

    Tenants and guests read the reason. So it is always the same text, and has
    nothing that a host says.
    """

    health: Health
    reason: str | None = None


#: The states that say it of a unit that is in use.
VERDICTS: Mapping[_State, Verdict] = {
    _State.HOST_SILENT: Verdict(
        Health.UNKNOWN, 'the host of the server does not report'
    ),
    _State.FAULTY: Verdict(Health.FAILED, 'the device does not work'),
    _State.GONE: Verdict(Health.FAILED, 'the device is no longer there'),
    _State.FREE: Verdict(Health.HEALTHY),
}


def verdict(state: _State, is_changed: bool = False) -> Verdict:
    """The health of a unit that is in use.

    :param is_changed: whether the devices of its server are being changed
    """
    found = VERDICTS[state]
    if is_changed and found.health is Health.FAILED:
        return Verdict(Health.BEING_REPLACED, found.reason)
    return found
