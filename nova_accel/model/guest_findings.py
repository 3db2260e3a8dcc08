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

"""How a host's guests differ from what Nova and the host's journal say."""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses

from nova_accel.model import arq_types
from nova_accel.model import binding_repairs
from nova_accel.model import finding
from nova_accel.model import host_binding
from nova_accel.model import nova_server

#: The states of Nova in which the guest of an idle server runs. A resized
#: server may be stopped.
_RUNNING = frozenset({'active', 'paused', 'rescued'})

#: No operation of Nova makes a host look like this for a moment. A guest that
#: has just ended itself is stopped by Nova soon, and one that is resumed gets
#: its devices back.
SURE = frozenset({finding.Kind.GUEST_GONE, finding.Kind.GUEST_WITHOUT_SERVER})


@dataclasses.dataclass(frozen=True)
class SeenGuests:
    """libvirt's guests of one host.

    ``running`` are the uuids of those that run or are paused. ``devices`` maps
    the uuid of each guest to its devices: addresses of PCI functions, and
    uuids of mediated devices.
    """

    running: Collection[str]
    devices: Mapping[str, Collection[str]]


def find(
    host: binding_repairs.HostBindings, guests: SeenGuests
) -> Iterator[finding.Finding]:
    """Find what is wrong with guests that have accelerators, or should.

    The host leaves all of it alone. Something that an operation of Nova may
    explain is not wrong. ``host`` is read before or after the guests: what is
    found both times is no matter of time.
    """
    for held in host.held:
        server = host.servers.get(held.instance_uuid)
        if held.role is arq_types.Role.ACTIVE and _should_run(host, server):
            yield from _of_server(held, guests)
    # The guest of each was there when the host was looked at, and still is.
    for uuid, why in sorted(_unexplained(host).items()):
        if uuid in guests.devices:
            yield finding.Finding(
                finding.Kind.GUEST_WITHOUT_SERVER,
                f'a guest of this host has accelerators, but by Nova {why}',
                instance_uuid=uuid,
            )


def _should_run(
    host: binding_repairs.HostBindings, server: nova_server.Server | None
) -> bool:
    return (
        server is not None
        and server.host == host.name
        and server.vm_state in _RUNNING
        and not server.is_busy
        and not server.is_migrating
    )


def _of_server(
    held: host_binding.Binding, guests: SeenGuests
) -> Iterator[finding.Finding]:
    """Find what is wrong with the guest of a server that runs by Nova."""
    uuid = held.instance_uuid
    if uuid not in guests.devices:
        yield finding.Finding(
            finding.Kind.GUEST_GONE,
            'by Nova the server runs on this host, but libvirt has no guest '
            'of it',
            instance_uuid=uuid,
        )
    elif uuid not in guests.running:
        yield finding.Finding(
            finding.Kind.GUEST_STOPPED,
            'by Nova the server runs on this host, but its guest does not run',
            instance_uuid=uuid,
        )
    else:
        for arq in held.arqs:
            for part in arq.handle.parts:
                if part not in guests.devices[uuid]:
                    yield finding.Finding(
                        finding.Kind.NOT_IN_GUEST,
                        f'the server holds {part} (ARQ {arq.uuid}), but its '
                        'guest runs without it',
                        instance_uuid=uuid,
                        device=part,
                    )


def _unexplained(host: binding_repairs.HostBindings) -> dict[str, str]:
    """Guest -> why its server should not have accelerators of this host."""
    return {
        binding.instance_uuid: why
        for binding in (*host.held, *host.listed)
        if binding.role is not arq_types.Role.OLD
        and binding.instance_uuid in host.guests
        and (
            why := binding_repairs.why_unneeded(
                binding.role,
                host.servers.get(binding.instance_uuid),
                host.name,
            )
        )
    }
