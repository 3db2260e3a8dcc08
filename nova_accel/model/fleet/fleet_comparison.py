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


"""Where the sources of the fleet disagree, and what helps.

Whatever an unfinished operation of Nova may explain is no disagreement.
"""

from collections import defaultdict
from collections.abc import Iterable
from collections.abc import Iterator
import enum
import functools
from typing import NamedTuple

from nova_accel.model import arq_types
from nova_accel.model import binding_repairs
from nova_accel.model import reason
from nova_accel.model.fleet import fleet_sources
from nova_accel.model.units import unit_state

_State = unit_state.State

#: How many ARQs a text names.
_NAMED = 2

#: The states of a unit that no server is given, cleaned or not.
_NOT_OFFERED = (_State.DISABLED, _State.FAULTY, _State.GONE)


class Kind(enum.StrEnum):
    """The ways in which two sources disagree."""

    #: An ARQ is held for nobody.
    LEAK = 'leak'
    #: An ARQ is held on a host that is not its server's.
    ELSEWHERE = 'elsewhere'
    #: A server's ARQ has no unit.
    MISSING = 'missing'
    #: An ARQ has a unit that its host does not find.
    GONE = 'gone'
    #: Placement counts fewer units of a server than are bound.
    UNCOUNTED = 'uncounted'
    #: Placement counts more units of a consumer than are bound.
    OVERCOUNTED = 'overcounted'
    #: Placement has a provider of ours that no host reports.
    NOBODYS = "nobody's"
    #: Nova's own PCI tracker has given a unit away, too.
    DOUBLE = 'double'


class Drift(NamedTuple):
    """One disagreement.

    ``hostname`` is None if no host has to do with it. ``whose`` is the uuid of
    a server, of another consumer, of an ARQ or of a provider. ``devices`` and
    ``units`` are uuids. ``says`` is what one source says, ``but`` what the
    other one does, ``remedy`` what an administrator can do.
    """

    kind: Kind
    hostname: str | None
    whose: str
    devices: tuple[str, ...]
    units: tuple[str, ...]
    says: str
    but: str
    remedy: str


class _Binding(NamedTuple):
    """The ARQs of one server on one host in one role, with their units."""

    hostname: str
    instance_uuid: str
    role: arq_types.Role | None
    held: list[tuple[fleet_sources.Arq, fleet_sources.Unit | None]]

    @property
    def units(self) -> list[fleet_sources.Unit]:
        return [unit for _arq, unit in self.held if unit is not None]

    @property
    def bare(self) -> list[fleet_sources.Arq]:
        """The ARQs without a unit, or whose state says so."""
        return [
            arq
            for arq, unit in self.held
            if unit is None or not arq.is_holding
        ]


class _Why(NamedTuple):
    """Why nobody needs a binding there."""

    kind: Kind
    but: str


class _Comparison:
    def __init__(
        self,
        ours: fleet_sources.Ours,
        nova: fleet_sources.Nova,
        placement: fleet_sources.Placement | None,
    ) -> None:
        self._ours, self._nova, self._placement = ours, nova, placement
        self._hosts = {host.name: host for host in ours.hosts}
        self._devices = {device.uuid: device for device in ours.devices}

    def all(self) -> Iterator[Drift]:
        for binding in self._bindings:
            yield from self._of_binding(binding)
        yield from self._of_unbound()
        yield from self._of_passed_through()
        if self._placement is not None:
            yield from self._of_counts(self._placement)
            yield from self._of_providers(self._placement)

    @functools.cached_property
    def _bindings(self) -> list[_Binding]:
        found: dict[tuple[str, str, str | None], _Binding] = {}
        held = [(unit.arq, unit) for unit in self._ours.units if unit.arq] + [
            (arq, None) for arq in self._ours.unheld
        ]
        for arq, unit in held:
            if arq.instance_uuid is None or arq.hostname is None:
                continue
            found.setdefault(
                (arq.hostname, arq.instance_uuid, arq.role),
                _Binding(arq.hostname, arq.instance_uuid, arq.typed_role, []),
            ).held.append((arq, unit))
        return list(found.values())

    def _why(self, binding: _Binding) -> _Why | None:
        """Why nobody needs it there, None if somebody may."""
        server = self._nova.servers.get(binding.instance_uuid)
        host = self._hosts.get(binding.hostname)
        service_host = binding.hostname if host is None else host.service_host
        why = binding_repairs.why_unneeded(binding.role, server, service_host)
        if why is None:
            return None
        if server is None:
            return _Why(Kind.LEAK, 'Nova has no such server')
        if binding.role is arq_types.Role.OLD or server.host is None:
            return _Why(Kind.LEAK, why)
        return _Why(Kind.ELSEWHERE, f'the server is on host {server.host}')

    def _of_binding(self, binding: _Binding) -> Iterator[Drift]:
        why = self._why(binding)
        if why is not None:
            yield self._told(
                why.kind,
                binding,
                binding.units,
                f'{_named(arq for arq, _unit in binding.held)} bound on host '
                f'{binding.hostname}',
                why.but,
                self._remedy(binding),
            )
            return
        server = self._nova.servers.get(binding.instance_uuid)
        bare = binding.bare
        if bare and server is not None and server.is_settled:
            yield self._told(
                Kind.MISSING,
                binding,
                binding.units,
                f'the server is on host {server.host}, and has no task',
                f'{_named(bare)} without a unit',
                'rebuild or delete the server',
            )
        gone = [
            (arq, unit)
            for arq, unit in binding.held
            if unit is not None and not unit.condition.is_present
        ]
        if gone:
            yield self._told(
                Kind.GONE,
                binding,
                [unit for _arq, unit in gone],
                f'{_named(arq for arq, _unit in gone)} bound to it',
                'the host does not find the device any more',
                'look at the host; put the device back, or delete the server',
            )

    def _remedy(self, binding: _Binding) -> str:
        """The way to free a binding that nobody needs."""
        host = self._hosts.get(binding.hostname)
        if binding.role is None:
            return 'nova-accel-manage audit --fix'
        return binding_repairs.remedy(host is None or host.is_silent)

    def _told(
        self,
        kind: Kind,
        binding: _Binding,
        units: Iterable[fleet_sources.Unit],
        says: str,
        but: str,
        remedy: str,
    ) -> Drift:
        return _drift(
            kind,
            binding.hostname,
            binding.instance_uuid,
            units,
            says,
            but,
            remedy,
        )

    def _of_unbound(self) -> Iterator[Drift]:
        """Units of ARQs that are bound to no server."""
        for unit in self._ours.units:
            if unit.arq is not None and (
                unit.arq.instance_uuid is None or unit.arq.hostname is None
            ):
                yield _drift(
                    Kind.LEAK,
                    self._devices[unit.device_uuid].hostname,
                    unit.arq.uuid,
                    [unit],
                    f'{_named([unit.arq])} given a unit',
                    f'it is {unit.arq.state} and bound to no server',
                    'nova-accel-manage audit --fix',
                )

    def _of_passed_through(self) -> Iterator[Drift]:
        """Units that Nova's own PCI tracker has given to servers, too."""
        if not self._nova.passed_through:
            return
        taken: defaultdict[
            tuple[str, str, str, str | None], list[fleet_sources.Unit]
        ] = defaultdict(list)
        for unit in self._ours.units:
            hostname, address = self._devices[unit.device_uuid].place
            if unit.arq is None and unit.condition.reason(_NOT_OFFERED):
                continue
            # The server may have the card with all its functions.
            for place in dict.fromkeys((unit.address, address)):
                other = self._nova.passed_through.get((hostname, place))
                if other is not None:
                    holder = unit.arq and (
                        unit.arq.instance_uuid or unit.arq.uuid
                    )
                    taken[hostname, place, other, holder].append(unit)
                    break
        for (hostname, place, other, holder), units in taken.items():
            yield _drift(
                Kind.DOUBLE,
                hostname,
                other,
                units,
                f"Nova's PCI tracker has given {place} to the server",
                'it is free' if holder is None else f'it is held for {holder}',
                'STOP: disable the device, look at both servers, and take it '
                'out of one device_spec',
            )

    def _of_counts(
        self, placement: fleet_sources.Placement
    ) -> Iterator[Drift]:
        """Servers whose units Placement counts differently."""
        held: defaultdict[tuple[str, str, str], list[fleet_sources.Unit]] = (
            defaultdict(list)
        )
        told = set()
        for binding in self._bindings:
            if self._why(binding) is not None or binding.bare:
                told.add(binding.instance_uuid)
            for unit in binding.units:
                held[
                    unit.rp_uuid, binding.instance_uuid, unit.resource_class
                ].append(unit)
        counted = {
            (rp_uuid, consumer, name): amount
            for rp_uuid, consumers in placement.allocations.items()
            for consumer, resources in consumers.items()
            for name, amount in resources.items()
        }
        of_provider: defaultdict[str, list[fleet_sources.Unit]] = defaultdict(
            list
        )
        for unit in self._ours.units:
            of_provider[unit.rp_uuid].append(unit)
        for key in sorted({*held, *counted}):
            rp_uuid, consumer, name = key
            if (
                rp_uuid not in placement.allocations
                or consumer in told
                or consumer in self._nova.consumers
            ):
                continue
            server = self._nova.servers.get(consumer)
            if server is None or server.is_settled:
                yield from self._of_count(
                    consumer,
                    name,
                    held.get(key, []),
                    counted.get(key, 0),
                    of_provider[rp_uuid],
                )

    def _of_count(
        self,
        consumer: str,
        name: str,
        held: list[fleet_sources.Unit],
        counted: int,
        of_provider: list[fleet_sources.Unit],
    ) -> Iterator[Drift]:
        """How a consumer's units of a provider differ in number.

        :param of_provider: all units of the provider
        """
        if len(held) == counted or not of_provider:
            return
        hostname = self._devices[of_provider[0].device_uuid].hostname
        bound = f'{len(held)} {name} {_are(len(held))} bound'
        placement = f'Placement counts {counted}'
        if counted < len(held):
            yield _drift(
                Kind.UNCOUNTED,
                hostname,
                consumer,
                held,
                bound,
                placement,
                'none, if the host reports: it reserves the unit, and has it '
                'allocated again; otherwise migrate or delete the server',
            )
            return
        exists = consumer in self._nova.servers
        devices = {unit.device_uuid for unit in of_provider}
        yield _drift(
            Kind.OVERCOUNTED,
            hostname,
            consumer,
            # Nobody knows which device of a pool is meant.
            held or (of_provider if len(devices) == 1 else []),
            f'{placement} {name}',
            bound if exists else 'Nova has no such server',
            (
                'rebuild or delete the server'
                if exists
                else 'none, if the host reports: it takes them away; '
                'otherwise nova-manage placement audit --delete'
            ),
        )

    def _of_providers(
        self, placement: fleet_sources.Placement
    ) -> Iterator[Drift]:
        """Our providers that no host reports."""
        known = {unit.rp_uuid for unit in self._ours.units}
        parents = {
            provider.uuid: provider.parent_uuid
            for provider in placement.providers
        }
        for uuid in tuple(known):
            # A provider may be there only for those below it.
            parent = parents.get(uuid)
            while parent is not None and parent not in known:
                known.add(parent)
                parent = parents.get(parent)
        for provider in placement.providers:
            if provider.uuid not in known:
                yield Drift(
                    Kind.NOBODYS,
                    None,
                    provider.uuid,
                    (),
                    (),
                    f'Placement has the provider {provider.name}',
                    'no host reports it',
                    'if it stays: openstack resource provider delete',
                )


def find(
    ours: fleet_sources.Ours,
    nova: fleet_sources.Nova,
    placement: fleet_sources.Placement | None = None,
) -> list[Drift]:
    """Where the sources disagree, sorted by kind and host.

    :param placement: None if Placement was not asked
    """
    return sorted(
        _Comparison(ours, nova, placement).all(),
        key=lambda found: (
            found.kind,
            found.hostname or '',
            found.whose,
            found.units,
        ),
    )


def lasting(before: Iterable[Drift], after: Iterable[Drift]) -> list[Drift]:
    """The drift that was found twice, so that no change explains it."""
    first = set(before)
    return [found for found in after if found in first]


def _drift(
    kind: Kind,
    hostname: str,
    whose: str,
    units: Iterable[fleet_sources.Unit],
    says: str,
    but: str,
    remedy: str,
) -> Drift:
    units = tuple(units)
    return Drift(
        kind,
        hostname,
        whose,
        tuple(dict.fromkeys(unit.device_uuid for unit in units)),
        tuple(unit.uuid for unit in units),
        says,
        but,
        remedy,
    )


def _named(arqs: Iterable[fleet_sources.Arq]) -> str:
    """Such as "ARQ 1, 2 and 3 more are"."""
    uuids = sorted(arq.uuid for arq in arqs)
    return f'ARQ {reason.some(uuids, _NAMED)} {_are(len(uuids))}'


def _are(amount: int) -> str:
    return 'is' if amount == 1 else 'are'
