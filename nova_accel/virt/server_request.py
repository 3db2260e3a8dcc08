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

"""A server's request: a device profile, ARQs, and properties of its image.

The flavor names the device profile. ``accel_info`` has the flavor's ARQs that
Nova's own Cyborg client has got. Nova passes it to ``spawn`` and to the
methods that make a guest anew. We plug the ARQs of our devices, and leave
those of a real Cyborg to Nova. The image's properties name a bitstream.
"""

from collections.abc import Container
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any
from typing import NamedTuple

from nova import objects
from nova import utils

from nova_accel.model.fpga import region_request
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import extra_specs

#: An accelerator request as the REST API shows it.
WireArq = Mapping[str, Any]


class Split(NamedTuple):
    """The uuids of our ARQs, and the others, which are Nova's to attach."""

    ours: tuple[str, ...] = ()
    others: tuple[WireArq, ...] = ()


NOTHING = Split()


def split(
    accel_info: Iterable[WireArq],
    nodename: str,
    provider_uuids: Container[str],
    held: Container[str] = (),
) -> Split:
    """Tell our ARQs from the others by their resource providers.

    ARQs of another host are left out: the instance was there before, and
    that host has not given them back yet.

    :param provider_uuids: of our providers on the host
    :param held: the uuids of ARQs that are ours whatever their provider is
    """
    ours: list[str] = []
    others: list[WireArq] = []
    for arq in accel_info:
        if arq['hostname'] != nodename:
            continue
        if arq['device_rp_uuid'] in provider_uuids or arq['uuid'] in held:
            ours.append(arq['uuid'])
        else:
            others.append(arq)
    return Split(tuple(ours), tuple(others))


def profile(flavor: objects.Flavor, found: Split = NOTHING) -> str | None:
    """The profile's name, None if the flavor asks us for none.

    :param found: the ARQs that Nova has got for the server. If some are of
        our devices, Cyborg's key names the profile
    """
    name: str | None = flavor.extra_specs.get(
        device_profile.CYBORG_FLAVOR_KEY
        if found.ours
        else device_profile.FLAVOR_KEY
    )
    return name


def may_ask_us(flavor: objects.Flavor, found: Split) -> bool:
    """Whether a server of the flavor may have accelerators of ours.

    A flavor with Cyborg's key may mean a real Cyborg. The ARQs tell which,
    but Nova has not got them when it starts guests after a boot of the host.

    :param found: as for :func:`profile`
    """
    return profile(flavor, found) is not None or (
        found == NOTHING
        and device_profile.CYBORG_FLAVOR_KEY in flavor.extra_specs
    )


def image_properties(instance: objects.Instance) -> dict[str, Any]:
    """The properties of the image that an instance was made of last.

    They include those that Nova does not know. Nova keeps all properties of
    the image that an instance boots from, also if the image is a volume's. A
    rebuild of the instance replaces them. Only Nova's image objects drop the
    properties that they do not know.
    """
    prefix = utils.SM_IMAGE_PROP_PREFIX
    return {
        name.removeprefix(prefix): value
        for name, value in instance.system_metadata.items()
        if name.startswith(prefix)
    }


def of_os_acc(
    info: Mapping[str, str],
    specs: Mapping[str, str],
    image: Mapping[str, Any],
) -> objects.Instance:
    """Nova's object of a server, as the specification of os-acc names it.

    :param info: as for :meth:`nova_accel.virt.os_acc.OsAcc.plug`
    :param specs: the extra specs of its flavor. They may ask for a bitstream,
        as an image does by the same names
    :param image: the one that it boots from, empty if it boots from a volume
    :raises InvalidDeviceProfile: the flavor and the image do not ask for the
        same bitstream.
    """
    properties = image.get('properties') or {}
    to_program = extra_specs.programming(specs)
    region_request.read_wanted(to_program, properties)
    return objects.Instance(
        uuid=info['uuid'],
        project_id=info['project_id'],
        user_id=None,
        flavor=objects.Flavor(extra_specs=dict(specs)),
        numa_topology=None,
        system_metadata=utils.get_system_metadata_from_image(
            {**image, 'properties': {**properties, **to_program}}
        ),
    )
