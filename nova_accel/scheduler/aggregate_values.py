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

"""Options that the metadata of a host's aggregates may override.

Nova's own function for it looks at each host. Hosts share the objects of their
aggregates, so one look at each set of aggregates is enough.
"""

from collections.abc import Callable
from typing import Generic
from typing import TypeVar

from nova.scheduler import host_manager

_T = TypeVar('_T')


class OfHosts(Generic[_T]):
    """The value of an option for each host, while a request is scheduled.

    :param default: the value for hosts in no aggregate
    :param read: reads the value for a host from its aggregates
    """

    def __init__(
        self,
        default: _T,
        read: Callable[[host_manager.HostState], _T],
    ) -> None:
        self._default = default
        self._read = read
        self._known: dict[tuple[int, ...], _T] = {}

    def of(self, host: host_manager.HostState) -> _T:
        if not host.aggregates:
            return self._default
        key = tuple(map(id, host.aggregates))
        if key not in self._known:
            self._known[key] = self._read(host)
        return self._known[key]
