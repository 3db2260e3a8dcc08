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

"""Cyborg's rows, by the hosts that they belong to."""

import collections
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import operator
from typing import NamedTuple

from nova_accel import exceptions
from nova_accel.model.cyborg import snapshot


class CyborgNode(NamedTuple):
    """One of Nova's compute nodes.

    ``nodename`` is Nova's name of the hypervisor, ``service_host`` its
    ``[DEFAULT] host``.
    """

    uuid: str
    nodename: str
    service_host: str


class CyborgPart(NamedTuple):
    """A deployable, with its device and what Cyborg knows of it.

    ``address`` is the device's own, as Cyborg writes it.
    """

    row: snapshot.CyborgDeployable
    device: snapshot.CyborgDevice
    address: str | None
    resource_class: str
    traits: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Rows:
    """The possessions of one host.

    ``parts`` has them by the ids of their deployables.
    """

    parts: dict[int, CyborgPart] = dataclasses.field(default_factory=dict)
    handles: list[snapshot.Handle] = dataclasses.field(default_factory=list)
    arqs: list[snapshot.CyborgArq] = dataclasses.field(default_factory=list)


class Claim(NamedTuple):
    """The claim of an ARQ in Placement, on one of Cyborg's providers."""

    instance_uuid: str
    rp_uuid: str
    resource_class: str


class CyborgProvider(NamedTuple):
    """One of Cyborg's providers: its inventory, as Cyborg wrote it."""

    uuid: str
    resource_class: str
    total: int
    is_disabled: bool


@dataclasses.dataclass(frozen=True)
class Origin:
    """The possessions of a node in Cyborg.

    ``arqs`` are the uuids of all that an instance has there, ``claims`` what
    those of a provider claim in Placement.
    """

    node: CyborgNode
    arqs: frozenset[str]
    claims: Mapping[str, Claim]
    providers: tuple[CyborgProvider, ...]


def by_name(cyborg: snapshot.Snapshot) -> dict[str, Rows]:
    """Cyborg's name of each host -> what it has.

    An ARQ belongs to the host of its handle, else to that of its provider,
    else to the one that it names. One without an instance belongs to none.
    """
    parts = {part.row.id: part for part in _parts(cyborg)}
    host_of_handle = {
        handle.id: parts[handle.deployable_id].device.hostname
        for handle in cyborg.handles
    }
    host_of_provider = {
        part.row.rp_uuid: part.device.hostname for part in parts.values()
    }
    found: dict[str, Rows] = collections.defaultdict(Rows)
    for part in parts.values():
        found[part.device.hostname].parts[part.row.id] = part
    for handle in cyborg.handles:
        found[host_of_handle[handle.id]].handles.append(handle)
    for arq in cyborg.arqs:
        if arq.instance_uuid is None:
            continue
        name = (
            host_of_provider.get(arq.device_rp_uuid, arq.hostname or '')
            if arq.attach_handle_id is None
            else host_of_handle[arq.attach_handle_id]
        )
        found[name].arqs.append(arq)
    return dict(found)


def _parts(cyborg: snapshot.Snapshot) -> Iterator[CyborgPart]:
    devices = {device.id: device for device in cyborg.devices}
    addresses = {
        path.device_id: path.cpid_info for path in cyborg.controlpath_ids
    }
    attributes = collections.defaultdict(list)
    for attribute in cyborg.attributes:
        attributes[attribute.deployable_id].append(attribute)
    for row in cyborg.deployables:
        its = attributes[row.id]
        yield CyborgPart(
            row,
            devices[row.device_id],
            addresses.get(row.device_id),
            next((each.value for each in its if each.key == 'rc'), ''),
            tuple(
                sorted(
                    each.value for each in its if each.key.startswith('trait')
                )
            ),
        )


def node_of(name: str, nodes: Iterable[CyborgNode]) -> CyborgNode:
    """The node of a host, by Cyborg's name of it.

    That is the name of its nova-compute, or that of the node.

    :raises Conflict: there is none, or several
    """
    known = list(nodes)
    for column in ('service_host', 'nodename'):
        nodename = operator.attrgetter(column)
        found = [node for node in known if nodename(node) == name]
        if len(found) == 1:
            return found[0]
        if found:
            raise exceptions.Conflict(
                'Nova has several compute nodes of that host: '
                + ', '.join(node.nodename for node in found)
            )
    raise exceptions.Conflict(
        'Nova has no compute host of that name. Cyborg knows a host by '
        '[DEFAULT] host of its agent, which has to be that of nova-compute: '
        'correct "hostname" in the table "devices" of Cyborg'
    )


def origins(
    cyborg: snapshot.Snapshot, nodes: Iterable[CyborgNode]
) -> dict[str, Origin]:
    """Nodename -> what it had in Cyborg, also for servers that are gone.

    Hosts that Nova does not know are left out.
    """
    known = list(nodes)
    found = {}
    for name, rows in by_name(cyborg).items():
        try:
            node = node_of(name, known)
        except exceptions.Conflict:
            continue
        found[node.nodename] = Origin(
            node,
            frozenset(arq.uuid for arq in rows.arqs),
            dict(_claims(rows)),
            tuple(_providers(rows.parts.values())),
        )
    return found


def _claims(rows: Rows) -> Iterator[tuple[str, Claim]]:
    classes = {
        part.row.rp_uuid: part.resource_class for part in rows.parts.values()
    }
    for arq in rows.arqs:
        rp_uuid = arq.device_rp_uuid
        if (
            arq.instance_uuid is not None
            and rp_uuid is not None
            and rp_uuid in classes
        ):
            yield (
                arq.uuid,
                Claim(arq.instance_uuid, rp_uuid, classes[rp_uuid]),
            )


def _providers(parts: Iterable[CyborgPart]) -> Iterator[CyborgProvider]:
    for part in parts:
        if part.row.rp_uuid is not None:
            yield CyborgProvider(
                part.row.rp_uuid,
                part.resource_class,
                part.row.num_accelerators,
                part.device.status == 'maintaining',
            )
