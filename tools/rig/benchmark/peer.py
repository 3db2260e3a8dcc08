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

"""The benchmark of Cyborg, with the same cycles as that of our API."""

from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import functools
from typing import Any

import requests

from rig.benchmark import api
from rig.benchmark import counted_database
from rig.benchmark import cycle
from rig.cyborg import arqs as cyborg_arqs
from rig.cyborg import services as cyborg

#: The most other ARQs: beside more of them, a cycle takes minutes.
MOST_OTHERS = 1000

_PROFILE = 'fpga'

#: The differences between the two measurements.
_DIFFERENCES = (
    'Cyborg has a conductor and RabbitMQ beside the two processes of its API.',
    'Cyborg logs in to Keystone and tells Nova of each binding: both are '
    'stubs, which answer at once. nova_accel binds before it answers, and so '
    'has nothing to tell.',
    'The agent of Cyborg is stopped when the devices are reported.',
)


def compared(scale: cycle.Scale) -> dict[str, Any]:
    """Measure both APIs, in turns.

    The callers are a member of a project and an administrator. For an
    administrator Cyborg's API reads all ARQs. Cyborg is not measured beside
    more than ``MOST_OTHERS``.

    :returns: the answer of ``api.figures``, with Cyborg's figures and
        :func:`ratio`
    """
    scale = dataclasses.replace(scale, callers=tuple(cycle.ROLES))
    with api.served(cyborg.HANDLES) as ours, _served() as peer:
        cycle.measure(scale, ours, peer)
        return {
            **api.of(ours),
            'peer': peer.found,
            **{
                f'peer_{name}': found
                for name, found in peer.usage().memory().items()
            },
            'ratio': ratio(ours.found, peer.found),
            'attach_handles': cyborg.HANDLES,
            'differences': _DIFFERENCES,
        }


def ratio(
    ours: Mapping[str, Any], peer: Mapping[str, Any]
) -> dict[str, dict[str, float]]:
    """The ratio of our cycles in a second to those of the peer.

    :param ours: our figures, by the same keys as the figures of the peer
    :returns: key of the figures -> number of clients -> ratio
    """
    return {
        others: {
            clients: round(ours[others]['cycles_per_s'][clients] / rate, 1)
            for clients, rate in found['cycles_per_s'].items()
        }
        for others, found in peer.items()
    }


@contextlib.contextmanager
def _served() -> Iterator[cycle.Subject]:
    with (
        counted_database.CountedDatabase(is_ours=False) as database,
        cyborg.Cyborg(database.url, api.PROCESSES) as peer,
    ):
        _make_profile(peer.port)
        yield cycle.Subject(
            cycle.Target(peer.port, _PROFILE, cyborg.HOSTNAME, peer.rp_uuid),
            database,
            functools.partial(cyborg_arqs.fill, database.engine),
            functools.partial(cyborg_arqs.unbind, database.engine),
            peer.usage,
            most_others=MOST_OTHERS,
        )


def _make_profile(port: int) -> None:
    requests.post(
        f'http://127.0.0.1:{port}/v2/device_profiles',
        timeout=60,
        headers=cycle.headers('admin'),
        json=[{'name': _PROFILE, 'groups': [cyborg.GROUP]}],
    ).raise_for_status()
