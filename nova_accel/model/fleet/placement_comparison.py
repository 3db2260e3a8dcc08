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
from nova_accel.model import naming
from nova_accel.model.fleet import disagreement
from nova_accel.model.fleet import fleet_sources

#: Provider uuid, consumer uuid and resource class.
Key = tuple[str, str, str]


def compare_counts(
    ours: fleet_sources.Ours,
    nova: fleet_sources.NovaReading,
    placement: fleet_sources.Placement,
    held: Mapping[Key, Sequence[fleet_sources.FleetUnit]],
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
        if name != naming.CARD_SHARE
    }
    of_provider: defaultdict[str, list[fleet_sources.FleetUnit]] = defaultdict(
        list
    )
    for unit in ours.units:
        of_provider[unit.rp_uuid].append(unit)
    hostnames = {device.uuid: device.hostname for device in ours.devices}
    for key in sorted({*held, *counted}):
        rp_uuid, consumer, _name = key
        there = of_provider[rp_uuid]
        server = nova.servers.get(consumer)
        if (
            there
            and rp_uuid in placement.allocations
            and consumer not in told
            and consumer not in nova.consumers
            and (server is None or server.is_settled)
        ):
            hostname = hostnames[there[0].device_uuid]
            yield from _compare_count(
                hostname,
                key,
                held.get(key, ()),
                counted.get(key, 0),
                there,
                server is not None,
            )


def _compare_count(
    hostname: str,
    key: Key,
    units: Sequence[fleet_sources.FleetUnit],
    amount: int,
    of_provider: Sequence[fleet_sources.FleetUnit],
    exists: bool,
) -> Iterator[finding.Finding]:
    """Compare the units of a consumer with their number in Placement.

    :param of_provider: all units of the provider
    :param exists: whether the consumer is a server
    """
    _rp_uuid, consumer, name = key
    bound = f'{len(units)} {name} {disagreement.are(len(units))} bound'
    if amount < len(units):
        yield disagreement.make(
            disagreement.Subject.UNCOUNTED,
            hostname,
            consumer,
            units,
            bound,
            f'Placement counts {amount}',
            'none, if the host reports: it reserves the unit, and has it '
            'allocated again; otherwise migrate or delete the server',
        )
    elif amount > len(units):
        devices = {unit.device_uuid for unit in of_provider}
        yield disagreement.make(
            disagreement.Subject.OVERCOUNTED,
            hostname,
            consumer,
            # No one knows which device of a pool is meant.
            units or (of_provider if len(devices) == 1 else ()),
            f'Placement counts {amount} {name}',
            bound if exists else 'Nova has no such server',
            'rebuild or delete the server'
            if exists
            else 'none, if the host reports: it takes them away; '
            'otherwise nova-manage placement audit --delete',
        )


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
                disagreement.Subject.NOBODYS,
                None,
                provider.uuid,
                (),
                f'Placement has the provider {provider.name}',
                'no host reports it',
                'if it stays: openstack resource provider delete',
            )
