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

"""The ARQs that Nova's own Cyborg client has got.

``accel_info`` has the ARQs of the flavor. Nova passes it to ``spawn`` and to
the methods that make a guest anew. We plug the ARQs of our devices, and leave
those of a real Cyborg to Nova. Neutron names the ARQs of ports in the ports'
binding profiles.
"""

from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple

#: An accelerator request as the REST API shows it.
WireArq = Mapping[str, Any]


class Split(NamedTuple):
    """The uuids of our ARQs, and the others, which are Nova's to attach."""

    ours: tuple[str, ...] = ()
    others: tuple[WireArq, ...] = ()


NOTHING = Split()


def of_ports(
    network_info: Iterable[Mapping[str, Any]], functions: Container[str]
) -> frozenset[str]:
    """The uuids of the ARQs of ports that have one of our PCI functions.

    :param network_info: the instance's, as Nova has it
    :param functions: the addresses of ours on the host
    """
    profiles = (vif.get('profile') or {} for vif in network_info)
    return frozenset(
        profile['arq_uuid']
        for profile in profiles
        if profile.get('arq_uuid') and profile.get('pci_slot') in functions
    )


def split(
    accel_info: Iterable[WireArq],
    nodename: str,
    provider_uuids: Container[str],
) -> Split:
    """Tell our ARQs from the others by their resource providers.

    ARQs of another host are left out: the instance was there before, and
    that host has not given them back yet.

    :param provider_uuids: of our providers on the host
    """
    here = [arq for arq in accel_info if arq['hostname'] == nodename]
    return Split(
        tuple(
            arq['uuid']
            for arq in here
            if arq['device_rp_uuid'] in provider_uuids
        ),
        tuple(
            arq for arq in here if arq['device_rp_uuid'] not in provider_uuids
        ),
    )
