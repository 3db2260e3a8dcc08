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

"""How much work a call is: a measure that is the same on each machine."""

from collections.abc import Callable
import sys
from typing import Any


def calls_of(function: Callable[[], Any]) -> int:
    """How many functions are called while one runs, whatever its end."""
    calls = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in ('call', 'c_call')

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls
