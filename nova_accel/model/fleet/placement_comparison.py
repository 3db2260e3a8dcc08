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

"""Where Placement and the database of accelerators disagree."""

from collections import defaultdict
from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from nova_accel.model import finding
from nova_accel.model.fleet import disagreement
from nova_accel.model.fleet import fleet_sources

#: Provider uuid, consumer uuid and resource class.
Key = tuple[str, str, str]


def compare_counts(
    ours: fleet_sources.Ours,
    nova: fleet_sources.Nova,
    placement: fleet_sources.Placement,
    held: Mapping[Key, Sequence[fleet_sources.Unit]],
    told: Collection[str],
) -> Iterator[finding.Finding]:
    """Find consumers whose units Placement counts differently.

    :param held: the units that are bound to servers
    :param told: the servers of which something else is wrong
    """
    counted = {
        (rp_uuid, consumer, name): amount
        for rp_uuid, consumers in placement.allocations.items()
        for consumer, resources in consumers.items()
        for name, amount in resources.items()
    }
    hostnames = {device.uuid: device.hostname for device in ours.devices}
    of_provider: defaultdict[str, list[fleet_sources.Unit]] = defaultdict(list)
    for unit in ours.units:
        of_provider[unit.rp_uuid].append(unit)
    for key in sorted({*held, *counted}):
        rp_uuid, consumer, _name = key
        units, amount = held.get(key, ()), counted.get(key, 0)
        if (
            len(units) == amount
            or rp_uuid not in placement.allocations
            or rp_uuid not in of_provider
            or consumer in told
            or _is_unsettled(nova, consumer)
        ):
            continue
        there = of_provider[rp_uuid]
        hostname = hostnames[there[0].device_uuid]
        if amount < len(units):
            yield _uncounted(hostname, key, units, amount)
        else:
            yield _overcounted(
                hostname, key, units, amount, there, consumer in nova.servers
            )


def _is_unsettled(nova: fleet_sources.Nova, consumer: str) -> bool:
    """Whether an unfinished operation of Nova may explain everything."""
    server = nova.servers.get(consumer)
    return consumer in nova.consumers or (
        server is not None and not server.is_settled
    )


def _uncounted(
    hostname: str,
    key: Key,
    units: Sequence[fleet_sources.Unit],
    amount: int,
) -> finding.Finding:
    _rp_uuid, consumer, name = key
    return disagreement.make(
        disagreement.Kind.UNCOUNTED,
        hostname,
        consumer,
        units,
        _bound(units, name),
        f'Placement counts {amount}',
        'none, if the host reports: it reserves the unit, and has it '
        'allocated again; otherwise migrate or delete the server',
    )


def _overcounted(
    hostname: str,
    key: Key,
    units: Sequence[fleet_sources.Unit],
    amount: int,
    of_provider: Sequence[fleet_sources.Unit],
    exists: bool,
) -> finding.Finding:
    """:param exists: whether the consumer is a server"""
    _rp_uuid, consumer, name = key
    is_one_device = len({unit.device_uuid for unit in of_provider}) == 1
    return disagreement.make(
        disagreement.Kind.OVERCOUNTED,
        hostname,
        consumer,
        # Nobody knows which device of a pool is meant.
        units or (of_provider if is_one_device else ()),
        f'Placement counts {amount} {name}',
        _bound(units, name) if exists else 'Nova has no such server',
        (
            'rebuild or delete the server'
            if exists
            else 'none, if the host reports: it takes them away; '
            'otherwise nova-manage placement audit --delete'
        ),
    )


def _bound(units: Sequence[fleet_sources.Unit], name: str) -> str:
    return f'{len(units)} {name} {disagreement.are(len(units))} bound'


def find_nobodys(
    ours: fleet_sources.Ours, placement: fleet_sources.Placement
) -> Iterator[finding.Finding]:
    """Find our providers that no host reports."""
    known = {unit.rp_uuid for unit in ours.units}
    parents = {
        provider.uuid: provider.parent_uuid for provider in placement.providers
    }
    for uuid in tuple(known):
        # A provider may be there only for those below it.
        parent = parents.get(uuid)
        while parent is not None and parent not in known:
            known.add(parent)
            parent = parents.get(parent)
    for provider in placement.providers:
        if provider.uuid not in known:
            yield disagreement.make(
                disagreement.Kind.NOBODYS,
                None,
                provider.uuid,
                (),
                f'Placement has the provider {provider.name}',
                'no host reports it',
                'if it stays: openstack resource provider delete',
            )
