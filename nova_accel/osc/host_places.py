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


"""The names, availability zones and aggregates of hosts, as Nova has them."""

from collections.abc import Iterable
from collections.abc import Iterator
import enum

from keystoneauth1 import adapter as ks_adapter

from nova_accel.osc import nova_calls


class Places(enum.StrEnum):
    """The parts of a cloud that have hosts."""

    HOST = 'host'
    ZONE = 'zone'
    AGGREGATE = 'aggregate'


def of_hypervisors(
    nova: ks_adapter.Adapter, places: Places
) -> dict[str, list[str]]:
    """Hypervisor's name -> the places that it is in.

    :param nova: of the service type ``compute``
    :raises CommandError: Nova refuses it, or is in trouble.
    """
    found: dict[str, list[str]] = {}
    for place, hosts in _hosts(nova, places):
        for service_host in hosts:
            found.setdefault(service_host, []).append(place)
    return {
        hostname: found.get(service_host, [])
        for hostname, service_host in service_hosts(nova).items()
    }


def service_hosts(nova: ks_adapter.Adapter) -> dict[str, str]:
    """Hypervisor's name -> the name of its host in Nova's RPC.

    :raises CommandError: as :func:`of_hypervisors`.
    """
    return {
        hypervisor['hypervisor_hostname']: hypervisor['service']['host']
        for hypervisor in nova_calls.listed(
            nova, '/os-hypervisors/detail', 'hypervisors'
        )
    }


def _hosts(
    nova: ks_adapter.Adapter, places: Places
) -> Iterator[tuple[str, Iterable[str]]]:
    """Each place, with its service hosts."""
    if places is Places.ZONE:
        for zone in nova_calls.call(
            nova, 'GET', '/os-availability-zone/detail'
        )['availabilityZoneInfo']:
            yield zone['zoneName'], zone['hosts'] or ()
    else:
        for aggregate in nova_calls.call(nova, 'GET', '/os-aggregates')[
            'aggregates'
        ]:
            yield aggregate['name'], aggregate['hosts']
