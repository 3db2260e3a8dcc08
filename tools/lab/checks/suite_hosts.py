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
"""The hosts of a suite: the servers of its checks go to no others.

Made-up and real devices of one kind are alike to nova-scheduler.
"""

from collections.abc import Iterator
import contextlib

from lab import compute_host
from lab.checks import cloud
from lab.device_vm import machine

#: Suite -> its hosts, where these are not the first machine alone.
_HOSTS = {
    'e2e': frozenset(host.name for host in compute_host.HOSTS),
    'moves': frozenset({machine.A.name, machine.B.name}),
}
_FIRST = frozenset({machine.A.name})


@contextlib.contextmanager
def only_of(suite: str) -> Iterator[None]:
    """Disable the other hosts that there are, as long as the body runs."""
    others = [
        service['Host']
        for service in cloud.show(
            'compute', 'service', 'list', '--service', 'nova-compute'
        )
        if service['Host'] not in _HOSTS.get(suite, _FIRST)
    ]
    for name in others:
        _set('--disable', name)
    try:
        yield
    finally:
        for name in others:
            _set('--enable', name)


def _set(state: str, name: str) -> None:
    cloud.openstack('compute', 'service', 'set', state, name, 'nova-compute')
