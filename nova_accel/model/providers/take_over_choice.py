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

"""Which ARQs a host makes its own that it has not adopted.

Nova's own Cyborg client has bound them, or they were imported from a Cyborg,
while their servers run. The host takes over what it sees in the guest, and
only that.
"""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses

from nova_accel.model import arq_types
from nova_accel.model import finding
from nova_accel.model import host_binding
from nova_accel.model import nova_server
from nova_accel.model.providers import provider_layout


@dataclasses.dataclass(frozen=True)
class ArqChoice:
    """The ARQs of an instance to take over, and what is wrong with others."""

    arqs: tuple[arq_types.Arq, ...] = ()
    findings: tuple[finding.Finding, ...] = ()


def choose(
    binding: host_binding.Binding,
    server: nova_server.Server | None,
    service_host: str,
    guest: Collection[str],
    places: Mapping[str, provider_layout.Place],
) -> ArqChoice:
    """Choose among the ARQs of a binding that is not adopted.

    An ARQ whose device is offered, but by another provider, is left for later:
    the API has not accepted the report yet that says so.

    :param server: Nova's view of the instance, None if there is none
    :param service_host: the host's name in Nova's RPC
    :param guest: the devices of the guest, none if there is no guest
    :param places: attach handle uuid -> its place, of what the host offers
    """
    if (
        server is None
        or server.host != service_host
        or server.is_busy
        or server.is_migrating
    ):
        return ArqChoice()
    arqs = []
    findings = []
    for arq in binding.arqs:
        why = _why_not(arq, guest, places)
        if why is not None:
            findings.append(
                finding.Finding(
                    finding.Kind.NOT_TAKEN_OVER,
                    f'by the accelerator API the server holds '
                    f'{", ".join(arq.handle.parts)} (ARQ {arq.uuid}), which '
                    f'this host has not made its own: {why}',
                    instance_uuid=binding.instance_uuid,
                    device=arq.handle.parts[0],
                )
            )
        elif places[arq.handle.uuid].rp_uuid == arq.device_rp_uuid:
            arqs.append(arq)
    return ArqChoice(tuple(arqs), tuple(findings))


def _why_not(
    arq: arq_types.Arq,
    guest: Collection[str],
    places: Mapping[str, provider_layout.Place],
) -> str | None:
    missing = [part for part in arq.handle.parts if part not in guest]
    if missing:
        return f'the guest does not have {", ".join(missing)}'
    if arq.handle.uuid not in places:
        return (
            'the host does not offer it, so look for its device among those '
            'that are refused, or add it to device_spec'
        )
    return None
