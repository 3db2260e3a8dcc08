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

"""Nova's fake libvirt, with the host devices of guests that it lacks.

libvirt has two lists of devices, for the running guest and its definition. A
device that is detached from the running guest stays in the definition, and
comes back when the guest is started anew. libvirt does not save a guest that
has a host device.
"""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

from collections.abc import Callable
from collections.abc import Iterator
import copy
import re
from typing import Any

import fixtures
from lxml import etree
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.virt.libvirt import config as vconfig
from nova.virt.libvirt import utils as libvirt_utils

from nova_accel.model import pci_address

_FAKE = 'nova.tests.fixtures.libvirt'

#: The source of a PCI function, as Nova's fake writes it.
_NAMED_FUNCTION = re.compile(r"<source hostdev='(pci_\w+)'/>")

_DOMAIN = re.compile(r'<domain[^>]*>')

_MARK = (
    rf'\g<0><metadata><nova:instance xmlns:nova="{vconfig.NOVA_NS}"/>'
    '</metadata>'
)

_Hostdev = dict[str, Any]


def _error(text: str, code: int) -> Exception:
    result: Exception = fakelibvirt.make_libvirtError(
        fakelibvirt.libvirtError,
        text,
        error_code=code,
        error_domain=fakelibvirt.VIR_FROM_QEMU,
    )
    return result


def _parse(element: etree._Element) -> _Hostdev:
    if element.get('type') == 'mdev':
        return {
            'type': 'mdev',
            'model': element.get('model'),
            'address_uuid': element.find('source/address').get('uuid'),
        }
    parsed: _Hostdev = fakelibvirt._parse_hostdev_info(element)
    return parsed


def _identity(hostdev: _Hostdev) -> object:
    if hostdev['type'] == 'mdev':
        return hostdev['address_uuid']
    return tuple(
        int(hostdev[part], 16)
        for part in ('domain', 'bus', 'slot', 'function')
    )


def _present(domain: fakelibvirt.Domain) -> list[_Hostdev]:
    """The devices of the running guest, or of the definition if none runs."""
    hostdevs: list[_Hostdev] = domain._def['devices']['hostdevs']
    return hostdevs


def _defined(domain: fakelibvirt.Domain) -> list[_Hostdev]:
    hostdevs: list[_Hostdev] = getattr(
        domain, 'defined_hostdevs', _present(domain)
    )
    return hostdevs


def _lists(domain: fakelibvirt.Domain, flags: int) -> Iterator[list[_Hostdev]]:
    """The lists of devices that a call with these flags changes."""
    if not flags:
        flags = (
            fakelibvirt.VIR_DOMAIN_AFFECT_LIVE
            if domain.isActive()
            else fakelibvirt.VIR_DOMAIN_AFFECT_CONFIG
        )
    if flags & fakelibvirt.VIR_DOMAIN_AFFECT_LIVE:
        if not domain.isActive():
            raise _error(
                'domain is not running', fakelibvirt.VIR_ERR_OPERATION_INVALID
            )
        yield _present(domain)
    if flags & fakelibvirt.VIR_DOMAIN_AFFECT_CONFIG:
        yield _defined(domain)


def _check_free(domain: fakelibvirt.Domain, hostdev: _Hostdev) -> None:
    """:raises libvirtError: the device does not exist or is in use."""
    identity = _identity(hostdev)
    connection = domain._connection
    if hostdev['type'] == 'mdev' and identity not in map(
        libvirt_utils.mdev_name2uuid, connection.mdev_info.get_all_devices()
    ):
        raise _error(
            f'mediated device {identity} not found',
            fakelibvirt.VIR_ERR_DEVICE_MISSING,
        )
    for other in list(connection._running_vms.values()):
        if other is not domain and identity in map(_identity, _present(other)):
            raise _error(
                f'{identity} is in use by domain {other.name()}',
                fakelibvirt.VIR_ERR_OPERATION_INVALID,
            )


def _source(named: re.Match[str]) -> str:
    """The PCI function of an interface as libvirt writes it."""
    parts = pci_address.PciAddress.parse_node_device(named[1]).parts
    return (
        '<source><address type="pci" domain="0x{domain}" bus="0x{bus}" '
        'slot="0x{device}" function="0x{function}"/></source>'.format(**parts)
    )


def _name_function(domain: fakelibvirt.Domain, xml: str) -> None:
    """Keep the PCI function of the interface that was attached last."""
    source = etree.fromstring(xml).find('source/address')
    domain._def['devices']['nics'][-1]['source'] = '_'.join(
        [
            'pci',
            *(
                source.get(part).removeprefix('0x')
                for part in ('domain', 'bus', 'slot', 'function')
            ),
        ]
    )


def _is_active(domain: fakelibvirt.Domain) -> int:
    """A guest that is paused is active, too."""
    return int(
        domain._state
        in (fakelibvirt.VIR_DOMAIN_RUNNING, fakelibvirt.VIR_DOMAIN_PAUSED)
    )


class GuestDevices(fixtures.Fixture):
    """Lets guests attach, detach and use host devices.

    A guest that has one cannot be saved. It is started paused if it is to be.
    Nova's mark in the metadata of its guests is kept, too.
    """

    def _setUp(self) -> None:
        domain = fakelibvirt.Domain
        self._make = domain.__init__
        self._attach = domain.attachDeviceFlags
        self._detach = domain.detachDeviceFlags
        self._create = domain.createWithFlags
        self._save = domain.managedSave
        self._describe = domain.XMLDesc
        self._define = fakelibvirt.Connection.defineXML
        self._undefine = fakelibvirt.Connection._undefine
        self._stopped = fakelibvirt.Connection._mark_not_running
        for name, function in (
            ('Domain.__init__', self.make),
            ('Domain.attachDeviceFlags', self.attach),
            ('Domain.detachDeviceFlags', self.detach),
            ('Domain.createWithFlags', self.create),
            ('Domain.isActive', _is_active),
            ('Domain.managedSave', self.save),
            ('Domain.managedSaveRemove', self.forget_saved),
            ('Domain.XMLDesc', self.describe),
            ('Connection.defineXML', self.define),
            ('Connection._undefine', self.undefine),
            ('Connection._mark_not_running', self.stopped),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(f'{_FAKE}.{name}', _as_method(function))
            )

    def make(
        self,
        domain: fakelibvirt.Domain,
        connection: fakelibvirt.Connection,
        xml: str,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        self._make(domain, connection, xml, *args, **kwargs)
        domain.is_novas = vconfig.NOVA_NS in xml

    def attach(
        self, domain: fakelibvirt.Domain, xml: str, flags: int = 0
    ) -> None:
        if not xml.startswith('<hostdev'):
            self._attach(domain, xml, flags)
            if xml.startswith('<interface type="hostdev"'):
                _name_function(domain, xml)
            return
        hostdev = _parse(etree.fromstring(xml))
        for hostdevs in _lists(domain, flags):
            if _identity(hostdev) in map(_identity, hostdevs):
                raise _error(
                    'the guest has it already',
                    fakelibvirt.VIR_ERR_OPERATION_INVALID,
                )
            if domain.isActive():
                _check_free(domain, hostdev)
            hostdevs.append(hostdev)

    def detach(
        self, domain: fakelibvirt.Domain, xml: str, flags: int = 0
    ) -> None:
        if not xml.startswith('<hostdev'):
            self._detach(domain, xml, flags)
            return
        identity = _identity(_parse(etree.fromstring(xml)))
        for hostdevs in _lists(domain, flags):
            found = [
                hostdev
                for hostdev in hostdevs
                if _identity(hostdev) == identity
            ]
            if not found:
                raise _error(
                    'device not found', fakelibvirt.VIR_ERR_DEVICE_MISSING
                )
            hostdevs.remove(found[0])

    def create(self, domain: fakelibvirt.Domain, flags: int) -> None:
        if domain.isActive():
            raise _error(
                'domain is already running',
                fakelibvirt.VIR_ERR_OPERATION_INVALID,
            )
        defined = list(_present(domain))
        # A guest that was saved had no host devices.
        started = [] if domain.hasManagedSaveImage(0) else list(defined)
        for hostdev in started:
            _check_free(domain, hostdev)
        self._create(domain, flags)
        if flags & fakelibvirt.VIR_DOMAIN_START_PAUSED:
            domain._state = fakelibvirt.VIR_DOMAIN_PAUSED
        domain._def['devices']['hostdevs'] = started
        domain.defined_hostdevs = defined

    def save(self, domain: fakelibvirt.Domain, flags: int) -> None:
        if _present(domain):
            raise _error(
                'domain has assigned host devices',
                fakelibvirt.VIR_ERR_OPERATION_INVALID,
            )
        self._save(domain, flags)
        domain._state = fakelibvirt.VIR_DOMAIN_SHUTOFF

    def forget_saved(self, domain: fakelibvirt.Domain, flags: int = 0) -> None:
        """Forget the saved state; Nova's fake calls this without flags."""
        domain._has_saved_state = False

    def describe(self, domain: fakelibvirt.Domain, flags: int) -> str:
        if flags & fakelibvirt.VIR_DOMAIN_XML_INACTIVE:
            defined = _defined(domain)
            domain = copy.copy(domain)
            domain._def = {
                **domain._def,
                'devices': {**domain._def['devices'], 'hostdevs': defined},
            }
        xml: str = self._describe(domain, flags)
        if domain.is_novas:
            xml = _DOMAIN.sub(_MARK, xml, count=1)
        return _NAMED_FUNCTION.sub(_source, xml)

    def define(
        self, connection: fakelibvirt.Connection, xml: str
    ) -> fakelibvirt.Domain:
        before = dict(connection._vms)
        domain = self._define(connection, xml)
        known = before.get(domain.name())
        if known is None:
            return domain
        if known not in connection._running_vms.values():
            domain._has_saved_state = known._has_saved_state
            return domain
        known.defined_hostdevs = _present(domain)
        known._transient = False
        connection._vms[known.name()] = known
        return known

    def undefine(
        self, connection: fakelibvirt.Connection, domain: fakelibvirt.Domain
    ) -> None:
        if domain in connection._running_vms.values():
            # The domain is removed when it is stopped.
            domain._transient = True
        else:
            self._undefine(connection, domain)

    def stopped(
        self, connection: fakelibvirt.Connection, domain: fakelibvirt.Domain
    ) -> None:
        # Nova's fake undefines a transient domain when it is stopped.
        running = connection._running_vms
        for number in [
            number
            for number, other in running.items()
            if other is domain and domain._transient
        ]:
            del running[number]
        self._stopped(connection, domain)
        domain._def['devices']['hostdevs'] = list(_defined(domain))
        vars(domain).pop('defined_hostdevs', None)


def _as_method(function: Any) -> Any:
    """A plain function, which a class binds to its objects."""

    def method(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return method


class RunningGuests(fixtures.Fixture):
    """Looks at each guest that runs after a start, or gets a device then.

    It is used after :class:`GuestDevices`.

    :param look: is called with its domain
    """

    def __init__(self, look: Callable[[fakelibvirt.Domain], None]) -> None:
        self._look = look

    def _setUp(self) -> None:
        for name in ('createWithFlags', 'resume', 'attachDeviceFlags'):
            self._watch(name)

    def _watch(self, name: str) -> None:
        real = getattr(fakelibvirt.Domain, name)

        def call_and_look(
            domain: fakelibvirt.Domain, *args: Any, **kwargs: Any
        ) -> Any:
            found = real(domain, *args, **kwargs)
            if domain._state == fakelibvirt.VIR_DOMAIN_RUNNING:
                self._look(domain)
            return found

        self.useFixture(
            fixtures.MonkeyPatch(f'{_FAKE}.Domain.{name}', call_and_look)
        )
