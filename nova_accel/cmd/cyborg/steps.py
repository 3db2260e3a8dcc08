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

"""The steps from Cyborg to nova_accel, and back.

Each step reads what Cyborg's database has, and compares it with ours and with
Placement. It changes what is not yet as it is to be. So a step that was killed
is repeated, and ends in the same way.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from typing import NamedTuple

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.cmd import cells
from nova_accel.cmd import own_providers
from nova_accel.cmd.cyborg import cyborg_database
from nova_accel.cmd.cyborg import placement
from nova_accel.db import device_profile
from nova_accel.db import host as host_db
from nova_accel.db import imports
from nova_accel.model.cyborg import allocation_moves
from nova_accel.model.cyborg import hosts
from nova_accel.model.cyborg import mapping
from nova_accel.model.cyborg import snapshot
from nova_accel.overview import parallel

CONF = conf.CONF


class StepResult(NamedTuple):
    """The outcome for one thing; ``is_done`` unless it is left as it was."""

    what: str
    result: str
    is_done: bool = True


def import_all(
    found: mapping.Import, is_dry: bool = False
) -> Iterator[StepResult]:
    """Import what is not here yet.

    :param is_dry: whether it is only told
    """
    known = imports.get_hosts()
    yield from _import_profiles(found.profiles, is_dry)
    for nodename in sorted(known.keys() & _nodenames(found)):
        yield StepResult(
            f'host {nodename}',
            'has reported already'
            if known[nodename]
            else 'is imported already',
        )
    yield from _import_hosts(
        [host for host in found.hosts if host.node.nodename not in known],
        is_dry,
    )
    for refusal in found.refusals:
        if refusal.nodename not in known:
            yield StepResult(
                refusal.what, f'not imported: {refusal.why}', False
            )
    for left in found.left:
        yield StepResult(left.what, f'not imported: {left.why}')


def _nodenames(found: mapping.Import) -> set[str]:
    """The nodes that Cyborg has, also those that would be refused now."""
    return {host.node.nodename for host in found.hosts} | {
        refusal.nodename
        for refusal in found.refusals
        if refusal.nodename is not None
    }


def _import_profiles(
    profiles: Sequence[mapping.Row], is_dry: bool
) -> Iterator[StepResult]:
    known = device_profile.get_all()
    groups = {row['name']: row['groups'] for row in known}
    uuids = {row['uuid']: row['name'] for row in known}
    new = [
        row
        for row in profiles
        if row['name'] not in groups and row['uuid'] not in uuids
    ]
    if not is_dry:
        imports.add_profiles(new)
    for row in profiles:
        what = f'device profile {row["name"]}'
        if row in new:
            yield StepResult(what, 'imported')
        elif groups.get(row['name']) == row['groups']:
            yield StepResult(what, 'is here already')
        else:
            other = (
                'a profile of that name is here, with other groups'
                if row['name'] in groups
                else f'its uuid is that of profile {uuids[row["uuid"]]}'
            )
            yield StepResult(what, f'not imported: {other}', False)


def _import_hosts(
    found: Sequence[mapping.MappedHost], is_dry: bool
) -> Iterator[StepResult]:
    for each in parallel.one_by_one('Importing hosts', found):
        if not is_dry:
            imports.add_host(each)
        yield StepResult(
            f'host {each.node.nodename}',
            f'imported; devices: {len(each.devices)}, attach handles: '
            f'{len(each.handles)}, ARQs: {len(each.arqs)}',
        )


def switch(origin: hosts.Origin) -> Iterator[StepResult]:
    """Move the allocations of a host that has reported to its providers.

    :raises NotFound: it is not imported
    :raises Conflict: it has not reported
    :raises ServiceUnavailable: Placement gave no usable answer
    """
    nodename = origin.node.nodename
    _check_reported(nodename)
    held = {row['uuid']: row for row in imports.get_held(nodename)}
    moves: dict[str, list[allocation_moves.AllocationMove]] = {}
    told = set()
    for uuid, claim in origin.claims.items():
        unit = held.get(uuid)
        if unit is None:
            continue
        if not unit['is_reported']:
            told.add(claim.instance_uuid)
            yield StepResult(
                f'server {claim.instance_uuid}',
                f'host {nodename} does not report the device of its ARQ '
                f'{uuid}: add a line to [nova_accel] device_spec, and restart '
                'nova-compute',
                False,
            )
            continue
        moves.setdefault(claim.instance_uuid, []).append(
            allocation_moves.AllocationMove(_claimed(claim), _unit(unit))
        )
    yield from _move(moves)
    left = placement.consumers(origin.providers)
    if not left:
        emptied = placement.empty(origin.providers)
        yield StepResult(
            f'host {nodename}',
            f'has no allocation of Cyborg\'s any more; {emptied} of Cyborg\'s '
            'providers emptied',
        )
    for consumer in sorted(left.keys() - moves.keys() - told):
        yield StepResult(
            f'consumer {consumer}',
            f'has something of Cyborg\'s providers on host {nodename}, and no '
            'ARQ there: if it is a migration, repeat this when that has '
            'ended. If it is no server, delete its allocation',
            False,
        )


def undo(
    origin: hosts.Origin, cyborg: cyborg_database.CyborgDatabase
) -> Iterator[StepResult]:
    """Give a host back to Cyborg, as if it had never been imported.

    Our rows go last: they say which servers are still there.

    :raises Conflict: it reports; a server is in the way; or Cyborg's providers
        are gone
    :raises ServiceUnavailable: Placement or a database gave no usable answer
    """
    nodename = origin.node.nodename
    known = imports.get_hosts()
    if nodename not in known:
        yield StepResult(f'host {nodename}', 'is not imported')
        return
    silence_s = CONF.nova_accel.host_silence_s
    node_uuid = host_db.get_silent_node(nodename, silence_s)
    held = imports.get_held(nodename)
    _check_returnable(origin, held)
    if known[nodename]:
        _check_providers(origin)
    moves: dict[str, list[allocation_moves.AllocationMove]] = {}
    for unit in held:
        claim = origin.claims.get(unit['uuid'])
        if claim is not None and unit['is_reported']:
            moves.setdefault(claim.instance_uuid, []).append(
                allocation_moves.AllocationMove(_unit(unit), _claimed(claim))
            )
    if known[nodename]:
        placement.fill(origin.providers, is_disabled_kept=False)
        stays = list(_move(moves))
        yield from stays
        if stays:
            return
        placement.fill(origin.providers, is_disabled_kept=True)
        own_providers.remove(node_uuid)
    uuids = {unit['uuid'] for unit in held}
    deleted = cyborg.delete_arqs(origin.arqs - uuids)
    imports.remove_host(nodename, uuids, silence_s)
    yield StepResult(
        f'host {nodename}',
        f'is Cyborg\'s again, with {len(held)} ARQs; {deleted} of servers '
        'that were deleted since are deleted there, too. On the host, delete '
        'the directory nova_accel below state_path of nova-compute',
    )


def finish(origins: Mapping[str, hosts.Origin]) -> Iterator[StepResult]:
    """Delete Cyborg's providers, if no one has anything of them.

    :raises Conflict: somebody has; nothing is deleted
    :raises ServiceUnavailable: Placement gave no usable answer
    """
    providers = [
        provider
        for origin in origins.values()
        for provider in origin.providers
    ]
    present = placement.existing(providers)
    left = placement.consumers(
        provider for provider in providers if provider.uuid in present
    )
    if left:
        used = set[str]().union(*left.values())
        names = sorted(
            nodename
            for nodename, origin in origins.items()
            if used.intersection(each.uuid for each in origin.providers)
        )
        raise exceptions.Conflict(
            f'{len(left)} servers or migrations have something of Cyborg\'s '
            f'providers on hosts {", ".join(names)}: switch these hosts first'
        )
    placement.delete(present)
    yield StepResult(
        'Placement', f'{len(present)} of Cyborg\'s providers deleted'
    )
    for origin in origins.values():
        if present.intersection(each.uuid for each in origin.providers):
            yield StepResult(
                f'host {origin.node.nodename}',
                'let its nova-compute forget Cyborg\'s providers: send '
                f'SIGHUP to it on {origin.node.service_host}, or restart it',
            )


def remove_profiles(profiles: Sequence[mapping.Row]) -> Iterator[StepResult]:
    """Delete the imported profiles if no host is left."""
    removed = imports.remove_profiles(profiles)
    if removed:
        yield StepResult(
            'device profiles', f'{removed} deleted, because no host is left'
        )


def _check_reported(nodename: str) -> None:
    known = imports.get_hosts()
    if nodename not in known:
        raise exceptions.NotFound(
            f'host {nodename} is not imported: import first'
        )
    if not known[nodename]:
        raise exceptions.Conflict(
            f'host {nodename} has not reported its devices: let its '
            'nova-compute have compute_driver = nova_accel.LibvirtDriver and '
            'the lines of device_spec, and start it'
        )


def _check_returnable(
    origin: hosts.Origin, held: Collection[imports.HeldArq]
) -> None:
    """:raises Conflict: names the servers or providers in the way"""
    nodename = origin.node.nodename
    new = {
        unit['instance_uuid'] or ''
        for unit in held
        if unit['uuid'] not in origin.arqs
    }
    if new:
        raise exceptions.Conflict(
            f'host {nodename} has servers that Cyborg does not know: '
            f'{", ".join(sorted(new))}. Delete or migrate them first'
        )
    busy = sorted(
        uuid
        for uuid, server in cells.servers(
            {unit['instance_uuid'] or '' for unit in held}
        ).items()
        if server.is_busy or server.is_migrating
    )
    if busy:
        raise exceptions.Conflict(
            f'Nova is at work on servers {", ".join(busy)} of host '
            f'{nodename}: repeat this when that has ended'
        )


def _check_providers(origin: hosts.Origin) -> None:
    """:raises Conflict: Cyborg's providers are gone"""
    gone = {
        provider.uuid for provider in origin.providers
    } - placement.existing(origin.providers)
    if gone:
        raise exceptions.Conflict(
            "Placement has lost providers of Cyborg's on host "
            f'{origin.node.nodename}, such as {min(gone)}. After --finish '
            'there is no way back'
        )


def _move(
    moves: Mapping[str, Sequence[allocation_moves.AllocationMove]],
) -> Iterator[StepResult]:
    """The consumers that could not be moved."""
    for consumer, why in placement.move(moves).items():
        yield StepResult(
            f'server {consumer}', f'its allocation is not moved: {why}', False
        )


def _claimed(claim: hosts.Claim) -> allocation_moves.MovedUnit:
    return allocation_moves.MovedUnit(claim.rp_uuid, claim.resource_class)


def _unit(held: imports.HeldArq) -> allocation_moves.MovedUnit:
    return allocation_moves.MovedUnit(
        held['rp_uuid'] or '', held['resource_class'] or ''
    )


def read_origins(
    cyborg: snapshot.Snapshot, names: Iterable[str] = ()
) -> dict[str, hosts.Origin]:
    """The possessions of hosts in Cyborg, by Nova's names of the hosts.

    :param names: only these, if there are any
    :raises NotFound: names one that Cyborg does not have.
    """
    found = hosts.origins(cyborg, cells.compute_nodes())
    wanted = list(names)
    for name in wanted:
        if name not in found:
            raise exceptions.NotFound(
                f'Cyborg has no host that is node {name} of Nova'
            )
    return {name: found[name] for name in wanted} if wanted else found
