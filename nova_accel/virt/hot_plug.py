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

"""Detaching and attaching the accelerators of a running guest.

The instance holds its accelerators all the time. Only the running guest is
changed: its definition keeps the devices, for its next start.
"""

from collections.abc import Callable
from collections.abc import Container
from collections.abc import Iterable

from lxml import etree
from nova.virt.libvirt import config as vconfig
from nova.virt.libvirt import guest as libvirt_guest
from nova.virt.libvirt import host as libvirt_host
from oslo_log import log as logging
import tenacity

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import finding
from nova_accel.model import host_findings
from nova_accel.virt import guest_xml

LOG = logging.getLogger(__name__)

_POLL_INTERVAL_S = 0.5

_PARSERS = {
    'pci': vconfig.LibvirtConfigGuestHostdevPCI,
    'mdev': vconfig.LibvirtConfigGuestHostdevMDEV,
}


def detach(
    guest: libvirt_guest.Guest, arqs: Iterable[arq_types.Arq], timeout_s: float
) -> None:
    """Detach devices from a guest, and wait until it has none of them.

    :raises libvirtError: libvirt refused one.
    :raises DeviceError: the guest has not let go of all in time.
    """
    arqs = tuple(arqs)
    for hostdev in _hostdevs(arqs, _names(guest), present=True):
        guest.detach_device(hostdev, live=True)
    # libvirt asks the guest, which may answer later.
    try:
        tenacity.Retrying(
            retry=tenacity.retry_if_result(bool),
            wait=tenacity.wait_fixed(_POLL_INTERVAL_S),
            stop=tenacity.stop_after_delay(timeout_s),
        )(lambda: _hostdevs(arqs, _names(guest), present=True))
    except tenacity.RetryError as error:
        raise exceptions.DeviceError(
            'the guest has not let go of '
            f'{_listed(error.last_attempt.result())} within {timeout_s:g} s',
            public=(
                'the guest has not let go of its accelerators within '
                f'{timeout_s:g} s'
            ),
        ) from error


def attach(guest: libvirt_guest.Guest, arqs: Iterable[arq_types.Arq]) -> None:
    """Attach those devices that the guest does not have.

    Each gets the address that it has in the guest's definition, unless
    another device has got it meanwhile.

    :raises libvirtError: libvirt refused one.
    """
    missing = _hostdevs(arqs, _names(guest), present=False)
    places = _free_places(guest) if missing else {}
    for hostdev in missing:
        hostdev.place = places.get(guest_xml.name(hostdev))
        guest.attach_device(hostdev, live=True)


def take_out(
    guest: libvirt_guest.Guest, arqs: Iterable[arq_types.Arq], timeout_s: float
) -> list[guest_xml.Address | None]:
    """As :func:`detach`, and also from the guest's definition.

    :returns: the address of each function that the guest had, None of one that
        it did not have
    """
    arqs = tuple(arqs)
    places = _places(etree.fromstring(guest.get_xml_desc()))
    detach(guest, arqs, timeout_s)
    leave_out(guest, arqs)
    return [
        places.get(guest_xml.name(hostdev))
        for hostdev in guest_xml.hostdevs(arqs)
    ]


def leave_out(
    guest: libvirt_guest.Guest, arqs: Iterable[arq_types.Arq]
) -> None:
    """Take devices out of a guest's definition, and not out of the guest.

    :raises libvirtError: libvirt refused one.
    """
    definition = etree.fromstring(guest.get_xml_desc(dump_inactive=True))
    defined = _places(definition)
    for hostdev in guest_xml.hostdevs(arqs):
        if guest_xml.name(hostdev) in defined:
            guest.detach_device(hostdev, persistent=True)


def put_in(
    guest: libvirt_guest.Guest,
    arqs: Iterable[arq_types.Arq],
    places: Iterable[guest_xml.Address | None],
) -> None:
    """Attach devices at addresses of :func:`take_out`, also at later starts.

    :raises libvirtError: libvirt refused one.
    """
    for hostdev, place in zip(guest_xml.hostdevs(arqs), places, strict=False):
        hostdev.place = place
        guest.attach_device(hostdev, persistent=True, live=True)


def attach_missing(
    host: libvirt_host.Host,
    held_by: Callable[[str], Iterable[arq_types.Arq]],
    findings: host_findings.Findings,
) -> None:
    """Attach the devices that running guests lack, but instances hold.

    It is for the start of nova-compute, which may have been killed after it
    had detached them.

    :param held_by: the ARQs of an instance
    :param findings: gets what guests lack
    """
    found = []
    for guest in host.list_guests():
        try:
            arqs = tuple(held_by(guest.uuid))
            if arqs and _hostdevs(arqs, _names(guest), present=False):
                LOG.warning(
                    'The guest of instance %s runs without all of '
                    'its accelerators; attaching them',
                    guest.uuid,
                    instance_uuid=guest.uuid,
                )
                attach(guest, arqs)
                found.append(
                    finding.Finding(
                        finding.Kind.NOT_IN_GUEST,
                        'its guest ran without all of its accelerators, when '
                        'nova-compute started; they are attached again',
                        is_repaired=True,
                        instance_uuid=guest.uuid,
                    )
                )
        except (
            exceptions.AcceleratorError,
            libvirt_host.libvirt.libvirtError,
        ) as error:
            LOG.error(
                'The guest of instance %s may lack accelerators until '
                'a hard reboot: %s',
                guest.uuid,
                error,
                instance_uuid=guest.uuid,
            )
    # Later comparisons find what a guest still lacks.
    findings.put('hot plug', found)


def _hostdevs(
    arqs: Iterable[arq_types.Arq],
    names: set[str],
    present: bool,
) -> list[guest_xml.HostdevPCI | guest_xml.HostdevMDEV]:
    return [
        hostdev
        for hostdev in guest_xml.hostdevs(arqs)
        if (guest_xml.name(hostdev) in names) == present
    ]


def _names(guest: libvirt_guest.Guest) -> set[str]:
    """The names of the devices that the running guest has."""
    return {
        guest_xml.name(device)
        for device in guest.get_config().devices
        if isinstance(
            device,
            (
                vconfig.LibvirtConfigGuestHostdevPCI,
                vconfig.LibvirtConfigGuestHostdevMDEV,
            ),
        )
    }


def _free_places(
    guest: libvirt_guest.Guest,
) -> dict[str, guest_xml.Address]:
    """The addresses of the host devices in the guest's definition, by name.

    An address that a device of the running guest has is left out.
    """
    taken = {
        _numbers(place)
        for place in etree.fromstring(guest.get_xml_desc()).iterfind(
            "./devices/*/address[@type='pci']"
        )
    }
    return _places(
        etree.fromstring(guest.get_xml_desc(dump_inactive=True)), taken
    )


def _places(
    domain: etree._Element, taken: Container[tuple[int, ...]] = ()
) -> dict[str, guest_xml.Address]:
    """The guest's addresses of the host devices in its XML, by name."""
    places = {}
    for element in domain.iterfind('./devices/hostdev'):
        parser = _PARSERS.get(element.get('type'))
        place = element.find("./address[@type='pci']")
        if parser is None or place is None or _numbers(place) in taken:
            continue
        hostdev, address = parser(), guest_xml.Address()
        hostdev.parse_dom(element)
        address.parse_dom(place)
        places[guest_xml.name(hostdev)] = address
    return places


def _numbers(place: etree._Element) -> tuple[int, ...]:
    return tuple(
        int(place.get(part, '0'), 16)
        for part in ('domain', 'bus', 'slot', 'function')
    )


def _listed(hostdevs: Iterable[vconfig.LibvirtConfigGuestHostdev]) -> str:
    return ', '.join(map(guest_xml.name, hostdevs))
