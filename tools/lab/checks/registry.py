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

"""What a check is, and how one is added.

A check is a function with a decorator, in any module of this package that
``runner`` names::

    @registry.check('e2e')
    def a_plain_server_boots(evidence: registry.Evidence) -> None:
        \"\"\"A server without accelerators boots.\"\"\"
        with cloud.server('plain') as server:
            evidence(f'{server.id} is {server.status} on {server.host}')

The first line of the docstring is its name. It fails by an exception, most
simply by :func:`expect`. What it makes it deletes again; after each check the
whole lab is searched for what was left behind.
"""

from collections.abc import Callable
import dataclasses
import time

#: Takes lines that show that a check is true.
Evidence = Callable[[str], None]

#: What a check does.
Function = Callable[[Evidence], None]

CHECKS: list['Check'] = []


class Failed(Exception):
    """What a check found is not what it should be."""


@dataclasses.dataclass(frozen=True)
class Check:
    """:param quick: whether it is in the subset for each change"""

    suite: str
    name: str
    function: Function
    quick: bool


def check(suite: str, quick: bool = True) -> Callable[[Function], Function]:
    """Make a function a check of a suite, in the order of definition."""

    def register(function: Function) -> Function:
        name = (function.__doc__ or function.__name__).splitlines()[0]
        CHECKS.append(Check(suite, name.rstrip('.'), function, quick))
        return function

    return register


def expect(true: object, otherwise: str) -> None:
    """:raises Failed: it is not true."""
    if not true:
        raise Failed(otherwise)


def expect_soon(
    what: str, look: Callable[[], object], wanted: object, seconds: float = 5
) -> None:
    """Look again and again, until what is found is what is wanted.

    :raises Failed: it is not after so many seconds.
    """
    deadline = time.monotonic() + seconds
    while (found := look()) != wanted and time.monotonic() < deadline:
        time.sleep(0.2)
    expect(found == wanted, f'{what}: {found}, not {wanted}')
