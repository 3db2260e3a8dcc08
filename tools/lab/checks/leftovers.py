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

"""What servers that are gone may have left behind, anywhere."""

from collections.abc import Callable

from lab import compute_host
from lab import mariadb
from lab import processes
from lab.checks import registry

_SECONDS = 120

_QUERIES = {
    'server': ('nova_cell1', 'SELECT uuid FROM instances WHERE deleted = 0'),
    'allocation': ('placement', 'SELECT consumer_id FROM allocations'),
    'ARQ': ('nova_accel', 'SELECT uuid FROM arqs'),
    'binding': (
        'nova_accel',
        'SELECT instance_uuid FROM bindings WHERE released_at IS NULL',
    ),
    'taken attach handle': (
        'nova_accel',
        'SELECT uuid FROM attach_handles WHERE arq_uuid IS NOT NULL',
    ),
}

#: More to look at: functions that name what is left.
SEARCHES: list[Callable[[], list[str]]] = []


def check() -> None:
    """:raises Failed: something was left behind."""
    left: list[str] = []

    def clean() -> bool:
        left[:] = find()
        return not left

    try:
        processes.wait_for('an empty lab', _SECONDS, clean, interval=0.5)
    except processes.LabError:
        raise registry.Failed('left behind: ' + ', '.join(left)) from None


def find() -> list[str]:
    """The names of all that is left."""
    left = [
        f'{what} {row}'
        for what, (database, statement) in _QUERIES.items()
        for row in mariadb.query(statement, database).split()
    ]
    for search in SEARCHES:
        left += search()
    return left


def _of_hosts() -> list[str]:
    left = []
    for host in compute_host.HOSTS:
        left += [
            f'domain {name} on {host.name}'
            for name in host.libvirt.virsh('list', '--all', '--name').split()
        ]
        left += [f'mdev {uuid} on {host.name}' for uuid in host.mdevs()]
        left += [f'journal {name} on {host.name}' for name in host.journal()]
    return left


SEARCHES.append(_of_hosts)
