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

"""The rules of what is imported from Cyborg's database, and refused.

A host is imported as a whole or not at all. Its devices, their parts and
attach handles keep Cyborg's uuids and providers until the host reports its own
(:mod:`nova_accel.db.rows.renamed_handles`). Its accelerator requests (ARQs)
come in without a role: until the host adopts them, Nova's own Cyborg client
deletes them.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any
from typing import NamedTuple

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import nova_server
from nova_accel.model.cyborg import cyborg_texts
from nova_accel.model.cyborg import device_lines
from nova_accel.model.cyborg import hosts
from nova_accel.model.cyborg import snapshot
from nova_accel.model.profiles import device_profile

Row = dict[str, Any]


class NovaState(NamedTuple):
    """Facts that Nova knows, and Cyborg does not.

    ``servers`` are the existing ones of the ARQs' instances. ``flavors`` are
    the names of those that name a device profile, by its name.
    """

    nodes: Sequence[hosts.CyborgNode] = ()
    servers: Mapping[str, nova_server.Server] = {}
    flavors: Mapping[str, Sequence[str]] = {}


class Refusal(NamedTuple):
    """Something that is not imported: what it is, and why, with the cure.

    ``nodename`` is Nova's name of a host that is refused, if it is known.
    """

    what: str
    why: str
    nodename: str | None = None


@dataclasses.dataclass(frozen=True)
class MappedHost:
    """The rows that are imported of one host.

    ``devices``, ``deployables``, ``handles`` and ``arqs`` are rows of our
    tables, without what only the database knows. ``device_specs`` are lines
    for the host's ``[nova_accel] device_spec``.
    """

    node: hosts.CyborgNode
    devices: tuple[Row, ...]
    deployables: tuple[Row, ...]
    handles: tuple[Row, ...]
    arqs: tuple[Row, ...]
    device_specs: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Import:
    """``profiles`` are rows, too. ``left`` are ARQs that no one needs."""

    profiles: tuple[Row, ...]
    hosts: tuple[MappedHost, ...]
    refusals: tuple[Refusal, ...]
    left: tuple[Refusal, ...]


def read(cyborg: snapshot.Snapshot, nova: NovaState) -> Import:
    """The outcome of an import of Cyborg's rows."""
    profiles = {row.id: row for row in cyborg.profiles}
    usable, refusals = _profiles(cyborg.profiles, nova.flavors)
    found: dict[str, MappedHost] = {}
    for name, rows in sorted(hosts.by_name(cyborg).items()):
        nodename = None
        try:
            node = hosts.node_of(name, nova.nodes)
            if node.nodename in found:
                raise exceptions.Conflict(
                    f'it is node {node.nodename} of Nova, and so is another '
                    'host of Cyborg: correct "hostname" in the table '
                    '"devices" of Cyborg'
                )
            nodename = node.nodename
            found[nodename] = _host(node, rows, profiles, nova)
        except exceptions.Conflict as fault:
            refusals.append(Refusal(f'host {name}', str(fault), nodename))
    return Import(
        tuple(usable),
        tuple(found.values()),
        tuple(refusals),
        tuple(_left(cyborg.arqs, nova.servers)),
    )


def instances(cyborg: snapshot.Snapshot) -> Collection[str]:
    """The uuids of all instances that have ARQs."""
    return {
        arq.instance_uuid
        for arq in cyborg.arqs
        if arq.instance_uuid is not None
    }


def _profiles(
    rows: Iterable[snapshot.Profile], flavors: Mapping[str, Sequence[str]]
) -> tuple[list[Row], list[Refusal]]:
    usable = []
    refusals = []
    for row in rows:
        try:
            device_profile.check_name(row.name)
            groups = device_profile.checked_groups(
                cyborg_texts.groups(row.profile_json)
            )
        except exceptions.InvalidDeviceProfile as fault:
            refusals.append(
                Refusal(
                    f'device profile {row.name}',
                    _words_of_profile(str(fault), flavors.get(row.name, ())),
                )
            )
        else:
            usable.append(
                {
                    'uuid': row.uuid,
                    'name': row.name,
                    'description': row.description,
                    'groups': groups,
                    'created_at': row.created_at,
                    'updated_at': row.updated_at,
                }
            )
    return usable, refusals


def _words_of_profile(fault: str, flavors: Sequence[str]) -> str:
    cure = (
        'Give the bitstreams in Glance the property accel:function_name '
        'instead, and make a profile with accel:function_name.'
        if 'accel:function_id' in fault
        else 'Make a profile that nova_accel can serve.'
    )
    named = (
        f'Flavors that name it: {", ".join(sorted(flavors))}.'
        if flavors
        else 'No flavor names it.'
    )
    return f'{fault}. {cure} {named} Servers that exist keep their devices.'


def _left(
    arqs: Iterable[snapshot.CyborgArq],
    servers: Mapping[str, nova_server.Server],
) -> Iterator[Refusal]:
    for arq in arqs:
        if arq.instance_uuid is None:
            why = f'it is {arq.state}, and bound to nothing'
        elif arq.instance_uuid not in servers:
            why = f'its server {arq.instance_uuid} does not exist'
        else:
            continue
        yield Refusal(f'ARQ {arq.uuid}', why)


def _host(
    node: hosts.CyborgNode,
    rows: hosts.Rows,
    profiles: Mapping[int, snapshot.Profile],
    nova: NovaState,
) -> MappedHost:
    """:raises Conflict: why the host cannot be imported, with the cure"""
    arqs = [arq for arq in rows.arqs if arq.instance_uuid in nova.servers]
    _check_not_busy(arqs, nova.servers)
    held = _arqs_by_handle(arqs)
    units = [
        (handle, rows.parts[handle.deployable_id]) for handle in rows.handles
    ]
    parts = {handle.id: part for handle, part in units}
    return MappedHost(
        node,
        tuple(_device_rows(node, rows.parts.values())),
        tuple(_deployable_rows(rows.parts.values())),
        tuple(_handle_rows(units, held)),
        tuple(
            _arq_row(
                arq,
                node,
                profiles[arq.device_profile_id],
                parts.get(arq.attach_handle_id or 0),
            )
            for arq in arqs
        ),
        device_lines.write(
            device_lines.LineUnit(
                part.traits,
                part.resource_class,
                part.device.vendor,
                handle.attach_type,
                handle.attach_info,
            )
            for handle, part in units
        ),
    )


def _check_not_busy(
    arqs: Iterable[snapshot.CyborgArq],
    servers: Mapping[str, nova_server.Server],
) -> None:
    busy = sorted(
        {
            arq.instance_uuid
            for arq in arqs
            if arq.instance_uuid is not None
            and (
                servers[arq.instance_uuid].is_busy
                or servers[arq.instance_uuid].is_migrating
            )
        }
    )
    if busy:
        raise exceptions.Conflict(
            f'Nova is at work on servers {", ".join(busy)}: import again when '
            'that has ended'
        )


def _arqs_by_handle(
    arqs: Iterable[snapshot.CyborgArq],
) -> dict[int, snapshot.CyborgArq]:
    """Handle id -> the ARQ that has it."""
    held: dict[int, snapshot.CyborgArq] = {}
    for arq in arqs:
        if arq.attach_handle_id is None:
            continue
        other = held.setdefault(arq.attach_handle_id, arq)
        if other is not arq:
            raise exceptions.Conflict(
                f'ARQs {other.uuid} of server {other.instance_uuid} and '
                f'{arq.uuid} of server {arq.instance_uuid} have the same '
                'attach handle: look which guest has the device, and delete '
                'the other server'
            )
    return held


def _handle_rows(
    units: Iterable[tuple[snapshot.Handle, hosts.CyborgPart]],
    held: Mapping[int, snapshot.CyborgArq],
) -> Iterator[Row]:
    """The handles that are PCI functions or mediated devices."""
    for handle, part in units:
        arq = held.get(handle.id)
        try:
            info = cyborg_texts.handle_info(
                handle.attach_type, handle.attach_info
            )
        except exceptions.InvalidName as fault:
            if arq is None:
                continue
            raise exceptions.Conflict(
                f'what ARQ {arq.uuid} of server {arq.instance_uuid} has is no '
                f'device: {fault}. Delete the server'
            ) from fault
        yield {
            'uuid': handle.uuid,
            'deployable_uuid': part.row.uuid,
            'type': attach_handle.HandleType(handle.attach_type),
            'info': info,
            'present': True,
            'arq_uuid': None if arq is None else arq.uuid,
        }


def _arq_row(
    arq: snapshot.CyborgArq,
    node: hosts.CyborgNode,
    profile: snapshot.Profile,
    part: hosts.CyborgPart | None,
) -> Row:
    group = _group(arq, profile)
    return {
        'uuid': arq.uuid,
        'state': arq_types.State(arq.state),
        'device_profile_name': profile.name,
        'device_profile_group_id': arq.device_profile_group_id,
        'group': group,
        'resource_class': _resource_class(arq, group, part),
        'project_id': arq.project_id,
        'hostname': node.nodename,
        'device_rp_uuid': arq.device_rp_uuid,
        'instance_uuid': arq.instance_uuid,
        'role': None,
        'position': None,
        'created_at': arq.created_at,
        'updated_at': arq.updated_at,
    }


def _group(
    arq: snapshot.CyborgArq, profile: snapshot.Profile
) -> dict[str, str]:
    """The group that an ARQ is of, even if we could not serve it."""
    try:
        groups = cyborg_texts.groups(profile.profile_json)
        return {
            key: str(value)
            for key, value in groups[arq.device_profile_group_id].items()
        }
    except (exceptions.InvalidDeviceProfile, IndexError) as fault:
        raise exceptions.Conflict(
            f'ARQ {arq.uuid} of server {arq.instance_uuid} is of group '
            f'{arq.device_profile_group_id} of device profile {profile.name}, '
            'which has no such group. Delete the server'
        ) from fault


def _resource_class(
    arq: snapshot.CyborgArq,
    group: Mapping[str, str],
    part: hosts.CyborgPart | None,
) -> str:
    classes = [
        key.removeprefix('resources:')
        for key in group
        if key.startswith('resources:')
    ]
    if part is not None and part.resource_class in classes:
        return part.resource_class
    if not classes:
        raise exceptions.Conflict(
            f'ARQ {arq.uuid} of server {arq.instance_uuid} asks for no '
            'resources. Delete the server'
        )
    return classes[0]


def _device_rows(
    node: hosts.CyborgNode, parts: Iterable[hosts.CyborgPart]
) -> Iterator[Row]:
    for part in {part.device.id: part for part in parts}.values():
        device = part.device
        address = cyborg_texts.address(part.address)
        yield {
            'uuid': device.uuid,
            'hostname': node.nodename,
            'name': '' if address is None else address.node_device,
            'type': device.type,
            'vendor_id': cyborg_texts.pci_id(device.vendor),
            'vendor': device.vendor,
            'product_id': cyborg_texts.product_id(device.std_board_info),
            'product': device.model,
            'address': '' if address is None else str(address),
            'driver': part.row.driver_name or '',
            'status': device.status,
            'attributes': {},
            'link_sets': [],
            'created_at': device.created_at,
            'updated_at': device.updated_at,
        }


def _deployable_rows(parts: Iterable[hosts.CyborgPart]) -> Iterator[Row]:
    for part in parts:
        yield {
            'uuid': part.row.uuid,
            'device_uuid': part.device.uuid,
            'name': part.row.name,
            # Without one it is not in Placement, so no one asks for it.
            'rp_uuid': part.row.rp_uuid or part.row.uuid,
            'resource_class': part.resource_class,
            'traits': list(part.traits),
            'bitstream_id': part.row.bitstream_id,
        }
