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

"""Waiting until Placement has what an administrator has changed."""

import argparse
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
import time
from typing import Any

from keystoneauth1 import adapter as ks_adapter

from nova_accel.osc import accelerator_calls
from nova_accel.osc import arguments

#: For how many seconds commands wait by default. A host answers within 5.
WAIT_S = 30

_MOST_S = 3600
_POLL_S = 1.0


def add_wait(parser: argparse.ArgumentParser) -> None:
    """Add the option of how long to wait."""
    parser.add_argument(
        '--wait',
        metavar='<seconds>',
        type=arguments.number(_MOST_S, least=0),
        default=WAIT_S,
        help=(
            'how long to wait until Placement has the change (default: '
            f'{WAIT_S}); with 0 it is only looked once'
        ),
    )


def devices_of(
    client: ks_adapter.Adapter, hostname: str
) -> Iterator[dict[str, Any]]:
    """The devices of a host, as the API shows them.

    :raises CommandError: the API refuses it.
    """
    for page in accelerator_calls.pages(
        client, '/devices', 'devices', {'hostname': hostname}
    ):
        yield from page


def wait(
    client: ks_adapter.Adapter,
    hostnames: Iterable[str],
    wait_s: int,
    tell: Callable[[str], None],
    uuids: Collection[str] | None = None,
) -> set[str]:
    """Wait until hosts have published the change, and tell of each.

    :param wait_s: after so many seconds it ends
    :param tell: is told lines for the administrator
    :param uuids: of the devices that count, None for all
    :returns: the uuids of the devices that Placement does not have yet
    :raises CommandError: the API refuses it.
    """
    until = time.monotonic() + wait_s
    behind: set[str] = set()
    for hostname in hostnames:
        while True:
            here = {
                device['uuid']
                for device in devices_of(client, hostname)
                if not device['is_published']
                and (uuids is None or device['uuid'] in uuids)
            }
            if not here:
                tell(f'Host {hostname} has published it: Placement has it.')
                break
            if time.monotonic() >= until:
                tell(
                    f'Host {hostname} has not reported yet. Placement changes '
                    'when it does: within about 90 s by default, if its '
                    'nova-compute runs.'
                )
                behind |= here
                break
            time.sleep(_POLL_S)
    return behind
