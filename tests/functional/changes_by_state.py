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

"""In which states the accelerators of a server change: the manual's table.

``test_changes_by_state`` tries each cell. ``tools/operations_to_rst.py``
writes the table of the same cells.
"""

from collections.abc import Mapping
import enum
from typing import NamedTuple

from nova.compute import vm_states


class Operation(enum.StrEnum):
    ATTACH = 'Attach'
    DETACH = 'Detach'
    REPLACE = 'Replace'


class Outcome(enum.StrEnum):
    AT_ONCE = 'at once'
    AT_START = 'at its next start'
    HELD = 'once it is stopped or rebooted'
    REFUSED = '409'
    NOTHING = '404: it has none'


class State(NamedTuple):
    """A state of a server, and Nova's actions that lead there and back."""

    text: str
    vm_state: str
    there: tuple[str, ...] = ()
    back: tuple[str, ...] = ()


ACTIVE = State('runs', vm_states.ACTIVE)
HOLDS_ON = State('runs, and does not let go', vm_states.ACTIVE)

_AT_START = [Outcome.AT_START] * 3
_REFUSED = [Outcome.REFUSED] * 3

#: State -> the outcome of each operation, in their order.
TABLE: Mapping[State, Mapping[Operation, Outcome]] = {
    State(*state): dict(zip(Operation, outcomes, strict=True))
    for state, outcomes in (
        (ACTIVE, [Outcome.AT_ONCE] * 3),
        (HOLDS_ON, [Outcome.AT_ONCE, Outcome.HELD, Outcome.REFUSED]),
        (
            ('is stopped', vm_states.STOPPED, ('os-stop',), ('os-start',)),
            _AT_START,
        ),
        (('is paused', vm_states.PAUSED, ('pause',), ('unpause',)), _REFUSED),
        (
            ('is suspended', vm_states.SUSPENDED, ('suspend',), ('resume',)),
            _REFUSED,
        ),
        (
            ('is rescued', vm_states.RESCUED, ('rescue',), ('unrescue',)),
            _REFUSED,
        ),
        (
            (
                'has moved, which is not confirmed',
                vm_states.RESIZED,
                ('migrate',),
                ('revertResize',),
            ),
            _REFUSED,
        ),
        (
            ('is shelved', vm_states.SHELVED, ('shelve',), ('unshelve',)),
            _REFUSED,
        ),
        (
            (
                'is shelved, and on no host',
                vm_states.SHELVED_OFFLOADED,
                ('shelve', 'shelveOffload'),
                ('unshelve',),
            ),
            [Outcome.REFUSED, Outcome.REFUSED, Outcome.NOTHING],
        ),
        (
            (
                'is deleted, and can be restored',
                vm_states.SOFT_DELETED,
                ('delete',),
                ('restore',),
            ),
            _REFUSED,
        ),
        (('is in error', vm_states.ERROR, ('error',), ('active',)), _REFUSED),
    )
}

#: What Nova refuses while a change goes on -> the name of its action.
REFUSED_MEANWHILE = {
    'stop': 'os-stop',
    'reboot': 'reboot',
    'pause': 'pause',
    'suspend': 'suspend',
    'rescue': 'rescue',
    'cold migration': 'migrate',
    'live migration': 'os-migrateLive',
    'shelve': 'shelve',
    'rebuild': 'rebuild',
    'resize': 'resize',
}
