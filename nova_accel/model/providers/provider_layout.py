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

"""A host's devices as resource providers, and the changes to the tree.

:func:`layout` says which providers should be in Placement,
:func:`nova_accel.model.providers.occupancy.inventories` how many units they
have, and :func:`diff` how an existing tree has to change. All are pure
functions; ``nova_accel.virt.publishing.nova_tree`` applies the result.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import functools
import hashlib

from nova_accel import exceptions
from nova_accel.model import attach_handle
from nova_accel.model import link_sets
from nova_accel.model import naming
from nova_accel.model.devices import hardware
from nova_accel.model.providers import link_homes


@dataclasses.dataclass(frozen=True)
class Place:
    """Where Placement counts a unit."""

    rp_uuid: str
    resource_class: str


@dataclasses.dataclass(frozen=True)
class Units:
    """The inventory of a resource class; no one gets reserved units."""

    total: int
    reserved: int = 0


#: The length of a name that stands for one that is too long.
SHORT_NAME = 16

#: Resource provider uuid -> resource class -> units.
Inventories = Mapping[str, Mapping[str, Units]]


@dataclasses.dataclass(frozen=True)
class Provider:
    """A wanted resource provider.

    ``parent`` is the uuid of another provider of the layout, None for the
    compute node's own. ``handles`` are keyed by resource class; there is one
    class at most, except of a card of many shapes.
    """

    name: str
    uuid: str
    parent: str | None
    traits: frozenset[str]
    handles: Mapping[str, tuple[attach_handle.AttachHandle, ...]]

    @property
    def totals(self) -> dict[str, int]:
        """Resource class -> number of units."""
        return {
            resource_class: len(handles)
            for resource_class, handles in self.handles.items()
            if handles
        }


@dataclasses.dataclass(frozen=True)
class Layout:
    """All providers of a host, parents first, and their deployables.

    ``rp_uuids`` maps (device name, deployable name) to a provider's uuid.
    """

    providers: tuple[Provider, ...] = ()
    rp_uuids: Mapping[tuple[str, str], str] = dataclasses.field(
        default_factory=dict
    )

    @functools.cached_property
    def uuids(self) -> frozenset[str]:
        return frozenset(provider.uuid for provider in self.providers)

    @functools.cached_property
    def places(self) -> Mapping[str, Place]:
        """Attach handle uuid -> the place where it is handed out."""
        return {
            handle.uuid: Place(provider.uuid, resource_class)
            for provider in self.providers
            for resource_class, handles in provider.handles.items()
            for handle in handles
        }

    @functools.cached_property
    def shares(self) -> Mapping[Place, int]:
        """Place -> the share of a card that a unit takes, if it shares one."""
        return {
            Place(provider.uuid, resource_class): handle.slice.size
            for provider in self.providers
            for resource_class, handles in provider.handles.items()
            for handle in handles
            if handle.slice is not None
        }


_NO_LINKS = link_sets.SetTree()


def layout(
    nodename: str,
    node_uuid: str,
    devices: Iterable[hardware.Device],
    tree: link_sets.SetTree = _NO_LINKS,
) -> Layout:
    """The resource providers of a host's devices.

    Interchangeable devices share one pooled provider. Any other device has its
    own. If it has several deployables, each has a provider below that, except
    those of a card of many shapes, which all are of the card's own. Devices
    that are pooled by their links are below the providers of their sets.

    :param tree: the link sets of the devices
    :raises InvalidName: a provider's name would be too long for Placement.
    """
    found = sorted(devices, key=lambda device: device.address)
    builder = _Builder(
        nodename, node_uuid, link_homes.homes(owners(found), tree)
    )
    for device in found:
        if device.is_shared:
            builder.add_shared(device)
        elif len(device.deployables) == 1:
            builder.add_whole(device, device.deployables[0])
        elif device.deployables:
            builder.add_parts(device)
    return builder.layout()


class _Builder:
    """A layout to which one device after the other is added."""

    def __init__(
        self,
        nodename: str,
        node_uuid: str,
        homes: Mapping[str, link_homes.Home],
    ) -> None:
        self._nodename = nodename
        self._node_uuid = node_uuid
        self._homes = homes
        self._providers: dict[str, Provider] = {}
        # By the name of the provider and the resource class.
        self._handles: dict[
            str, dict[str, list[attach_handle.AttachHandle]]
        ] = {}
        self._rp_uuids: dict[tuple[str, str], str] = {}

    def add_whole(
        self, device: hardware.Device, deployable: hardware.Deployable
    ) -> None:
        """Add a device that has one deployable."""
        home = self._homes.get(device.name, link_homes.NOWHERE)
        path = (
            (*home.prefix, *pool(device, deployable))
            if device.pooled
            else (device.name,)
        )
        self._rp_uuids[device.name, deployable.name] = self._add(
            (*path, *home.suffix),
            self._parent(home),
            deployable.traits,
            deployable,
        )

    def add_shared(self, device: hardware.Device) -> None:
        """Add a card of many shapes."""
        traits = frozenset[str]().union(
            *(deployable.traits for deployable in device.deployables)
        )
        for deployable in device.deployables:
            self._rp_uuids[device.name, deployable.name] = self._add(
                (device.name,), None, traits, deployable
            )

    def add_parts(self, device: hardware.Device) -> None:
        """Add a device, with a provider for each of its deployables."""
        home = self._homes.get(device.name, link_homes.NOWHERE)
        shared = frozenset.intersection(
            *(deployable.traits for deployable in device.deployables)
        )
        parent = self._add(
            (device.name, *home.suffix), self._parent(home), shared
        )
        for deployable in device.deployables:
            path = device.name, deployable.name
            self._rp_uuids[path] = self._add(
                (*path, *home.suffix), parent, deployable.traits, deployable
            )

    def _parent(self, home: link_homes.Home) -> str | None:
        """Add the providers of the sets above a home.

        :returns: the uuid of the smallest one, None if there is none
        """
        parent = None
        for depth, node in enumerate(home.parents):
            parent = self._add(
                (node.name, *link_homes.suffix(home.parents[:depth])),
                parent,
                node.traits,
            )
        return parent

    def layout(self) -> Layout:
        return Layout(
            tuple(
                dataclasses.replace(
                    provider,
                    handles={
                        resource_class: tuple(units)
                        for resource_class, units in self._handles[
                            name
                        ].items()
                    },
                )
                for name, provider in self._providers.items()
            ),
            self._rp_uuids,
        )

    def _name(self, path: tuple[str, ...]) -> str:
        """The name of a provider; with links, a short one if need be.

        :raises InvalidName: the name is too long for Placement.
        """
        try:
            return naming.provider_name(self._nodename, *path)
        except exceptions.InvalidName:
            if not self._homes:
                raise
            digest = hashlib.sha256('/'.join(path).encode()).hexdigest()
            return naming.provider_name(self._nodename, digest[:SHORT_NAME])

    def _add(
        self,
        path: tuple[str, ...],
        parent: str | None,
        traits: frozenset[str],
        deployable: hardware.Deployable | None = None,
    ) -> str:
        """Add a provider; if it is there already, the units join its own.

        :returns: the provider's uuid
        """
        name = self._name(path)
        uuid = naming.derived_uuid(self._node_uuid, 'provider', *path)
        units = self._handles.setdefault(name, {})
        if deployable is not None:
            units.setdefault(deployable.resource_class, []).extend(
                deployable.handles
            )
        self._providers[name] = Provider(
            name,
            uuid,
            parent,
            traits | {naming.OWNER_TRAIT, naming.OWNERSHIP_TRAIT},
            {},
        )
        return uuid


def owners(devices: Iterable[hardware.Device]) -> dict[str, tuple[str, ...]]:
    """Device -> the first parts of its provider's name, if links decide."""
    return {
        device.name: (
            pool(device, device.deployables[0])
            if len(device.deployables) == 1
            else (device.name,)
        )
        for device in devices
        if device.pooled_by_links and device.deployables
    }


def pool(
    device: hardware.Device, deployable: hardware.Deployable
) -> tuple[str, ...]:
    """The name parts of the pool that the device belongs to."""
    parts = [
        deployable.resource_class.removeprefix('CUSTOM_').lower(),
        device.vendor_id,
        device.product_id,
    ]
    if device.pooled_by_numa_node and device.numa_node is not None:
        parts.append(f'numa{device.numa_node}')
    if device.operator_traits:
        traits = ','.join(sorted(device.operator_traits))
        parts.append(hashlib.sha256(traits.encode()).hexdigest()[:8])
    return tuple(parts)


@dataclasses.dataclass(frozen=True)
class Present:
    """One of our providers as the tree has it now.

    ``traits`` may include an operator's.
    """

    uuid: str
    units: Mapping[str, Units]
    traits: frozenset[str]
    parent: str | None = None


@dataclasses.dataclass(frozen=True)
class TreeChanges:
    """The changes that turn the present tree into the wanted one.

    ``put`` are wanted providers that are missing or differ, parents first.
    ``inventories`` are the new ones of these, and of unwanted providers whose
    inventories change. ``remove`` are the uuids of providers to remove,
    children first. ``stale`` maps uuids of wanted providers to traits that
    they no longer have. ``unwanted`` are present providers from which no one
    gets anything any more. They are removed once their last allocation is
    gone.
    """

    put: tuple[Provider, ...] = ()
    inventories: Inventories = dataclasses.field(default_factory=dict)
    remove: tuple[str, ...] = ()
    stale: Mapping[str, frozenset[str]] = dataclasses.field(
        default_factory=dict
    )
    unwanted: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        """Whether there is anything to change."""
        return bool(self.put or self.inventories or self.remove or self.stale)


def diff(
    wanted: Layout,
    inventories: Inventories,
    present: Iterable[Present],
    unused: frozenset[str],
    given: Mapping[str, frozenset[str]],
) -> TreeChanges:
    """Compare the layout with our existing providers.

    All free units of an unwanted provider are reserved first. It is removed
    only when Placement is known to have no allocation from it. Placement
    refuses an earlier removal, and Nova then fails whatever it was doing. A
    trait that we did not set belongs to an operator and stays.

    :param inventories: the inventories of the layout's providers, and of
        others from which instances hold units
    :param present: our providers in the tree, parents first
    :param unused: the uuids of providers that had no allocations after they
        became ``unwanted``
    :param given: provider uuid -> the traits that we have set
    """
    existing = {provider.uuid: provider for provider in present}
    put = tuple(
        provider
        for provider in wanted.providers
        if _differs(
            provider, inventories[provider.uuid], existing.get(provider.uuid)
        )
    )
    leaving = _leaving(wanted, inventories, existing, unused)
    stale = {
        provider.uuid: existing[provider.uuid].traits
        & given.get(provider.uuid, frozenset()) - provider.traits
        for provider in wanted.providers
        if provider.uuid in existing
    }
    return dataclasses.replace(
        leaving,
        put=put,
        inventories={
            **{provider.uuid: inventories[provider.uuid] for provider in put},
            **leaving.inventories,
        },
        stale={uuid: traits for uuid, traits in stale.items() if traits},
    )


def _leaving(
    wanted: Layout,
    inventories: Inventories,
    existing: dict[str, Present],
    unused: frozenset[str],
) -> TreeChanges:
    """The changes to existing providers that the layout lacks.

    The arguments are those of :func:`diff`.
    """
    changed: dict[str, Mapping[str, Units]] = {}
    remove: list[str] = []
    unwanted: set[str] = set()
    needed: set[str | None] = set()
    for uuid in reversed(existing):
        if uuid in wanted.uuids:
            continue
        before = existing[uuid].units
        units = {
            resource_class: Units(found.total, found.total)
            for resource_class, found in before.items()
        }
        units.update(inventories.get(uuid, {}))
        if units != before:
            changed[uuid] = units
        elif uuid not in inventories and units:
            unwanted.add(uuid)
        # Without an inventory it cannot have an allocation.
        if uuid in needed or (
            units and not (uuid in unwanted and uuid in unused)
        ):
            needed.add(existing[uuid].parent)
        else:
            remove.append(uuid)
    return TreeChanges(
        inventories=changed,
        remove=tuple(remove),
        unwanted=frozenset(unwanted.difference(remove)),
    )


def now_given(
    wanted: Layout,
    changes: TreeChanges,
    given: Mapping[str, frozenset[str]],
) -> dict[str, frozenset[str]]:
    """The traits that we have set, once the changes are made.

    A stale trait counts until the tree no longer has it, because the change
    may never have reached Placement.
    """
    result = {
        uuid: traits
        for uuid, traits in given.items()
        if uuid not in changes.remove
    }
    for provider in wanted.providers:
        result[provider.uuid] = provider.traits | changes.stale.get(
            provider.uuid, frozenset()
        )
    return result


def _differs(
    wanted: Provider, units: Mapping[str, Units], present: Present | None
) -> bool:
    return (
        present is None
        or present.units != units
        or not wanted.traits <= present.traits
    )
