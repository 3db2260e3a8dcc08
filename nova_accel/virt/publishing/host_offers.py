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

"""The accelerators of a host, each kind with a line that offers it.

The drivers are tried one after the other: nova-compute's own discovery says
what a line would offer.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import json
from typing import Any

from nova_accel import exceptions
from nova_accel.drivers import catalogue
from nova_accel.drivers import loading
from nova_accel.host import pci_function
from nova_accel.host import vfio_vgpu
from nova_accel.model import naming
from nova_accel.model.devices import device_spec
from nova_accel.virt.publishing import host_preview
from nova_accel.virt.publishing import line_results

# An older name of the driver mdev.
_ALIASES = frozenset({'nvidia_vgpu'})

# The driver of devices of any kind.
_ANY_KIND = 'pci'

# The operator has to replace it, because no host tells it.
_PHYSICAL_NETWORK = 'physnet1'

# NVMe controllers, which need no entry in the catalogue.
_NVME = '0108'

# The classes of what may be an accelerator that the catalogue does not know:
# 3D controllers without a display, co-processors, processing accelerators.
_LIKELY = ('0302', '0b40', '12')

_NVIDIA = '10de'


@dataclasses.dataclass(frozen=True)
class Kind:
    """The devices of a host that one line can match.

    ``keys`` are those of the line by which it matches them. ``type`` is None
    if the catalogue does not know the devices.
    """

    keys: tuple[tuple[str, str], ...]
    product: str
    type: str | None
    functions: tuple[pci_function.PciFunction, ...]

    @property
    def ids(self) -> str:
        """Such as ``10de:2331``; a board has the ids of it, too."""
        ids = [value for _key, value in self.keys]
        return '/'.join(
            ':'.join(ids[at : at + 2]) for at in range(0, len(ids), 2)
        )

    @property
    def mdev_types(self) -> list[str]:
        """The types of mediated devices that its functions make."""
        return sorted(
            {name for each in self.functions for name in each.mdev_types}
        )


@dataclasses.dataclass(frozen=True)
class Offer:
    """A line for a kind of devices, and what it would do.

    ``also`` are other drivers that would offer some of them.
    """

    kind: Kind
    line: device_spec.DeviceSpec
    results: tuple[line_results.LineResult, ...]
    also: tuple[str, ...] = ()

    @property
    def offered(self) -> list[line_results.LineResult]:
        return [
            each
            for each in self.results
            if each.outcome in line_results.USEFUL
        ]

    @property
    def others(self) -> list[line_results.LineResult]:
        """The devices that cannot be offered now, and unknown facts."""
        return [each for each in self.results if each not in self.offered]

    @property
    def hints(self) -> list[str]:
        """Keys that an operator may add to the line, or has to replace."""
        return list(_hints(self.kind, self.line))


def of(preview: host_preview.Preview) -> list[Offer]:
    """An offer for each kind of accelerators that a host has.

    :raises DeviceError: libvirt does not list its devices, or guests.
    :raises ConfigurationError: the operator's catalogue is wrong.
    """
    return _together(
        preview, [_best(preview, kind) for kind in _kinds(preview.functions)]
    )


def _together(
    preview: host_preview.Preview, offers: Sequence[Offer]
) -> list[Offer]:
    """The results of the lines in one configuration, where a card may take
    its parts.
    """
    lines = [each.line for each in offers if each.offered]
    results = line_results.of(preview, lines)
    return [
        dataclasses.replace(
            each,
            results=(
                *(
                    result
                    for result in results
                    if result.line == lines.index(each.line) + 1
                ),
                *(result for result in each.results if result.line is None),
            ),
        )
        if each.offered
        else each
        for each in offers
    ]


def _kinds(functions: Sequence[pci_function.PciFunction]) -> list[Kind]:
    found: dict[tuple[tuple[str, str], ...], Kind] = {}
    for function in functions:
        known = catalogue.look_up(
            function.vendor_id, function.product_id, function.subsystem
        )
        class_code = function.class_code or ''
        type_ = known.type or ('SSD' if class_code.startswith(_NVME) else None)
        if function.is_bridge or not (type_ or class_code.startswith(_LIKELY)):
            continue
        keys = _keys(function, known)
        kind = found.setdefault(
            keys, Kind(keys, _product(function, known), type_, ())
        )
        found[keys] = dataclasses.replace(
            kind, functions=(*kind.functions, function)
        )
    return list(found.values())


def _keys(
    function: pci_function.PciFunction, known: catalogue.Product
) -> tuple[tuple[str, str], ...]:
    keys = {
        'vendor_id': function.vendor_id,
        'product_id': function.product_id,
    }
    if known.is_board and function.subsystem is not None:
        keys |= {
            'subsystem_vendor_id': function.subsystem.vendor_id,
            'subsystem_product_id': function.subsystem.product_id,
        }
    return tuple(keys.items())


def _product(
    function: pci_function.PciFunction, known: catalogue.Product
) -> str:
    """The name for people: the catalogue's, else that of the host."""
    return ' '.join(
        filter(
            None,
            [
                known.vendor or function.vendor,
                known.product or function.product,
            ],
        )
    )


def _best(preview: host_preview.Preview, kind: Kind) -> Offer:
    """The first of the likely lines that offers something.

    If none does, the first says why.
    """
    tried = [
        Offer(kind, spec, tuple(line_results.of(preview, [spec])))
        for spec in device_spec.parse(
            map(json.dumps, _lines(preview, kind)), preview.drivers
        )
    ]
    good = [each for each in tried if each.offered]
    best = (good or tried)[0]
    return dataclasses.replace(
        best,
        also=tuple(
            dict.fromkeys(
                each.line.driver
                for each in good
                if each.line.driver != best.line.driver
            )
        ),
    )


def _lines(
    preview: host_preview.Preview, kind: Kind
) -> Iterator[dict[str, Any]]:
    """The lines to try, the likeliest first; there is at least one."""
    kinds = loading.kinds()
    for driver in sorted(
        preview.drivers.keys() - _ALIASES,
        key=lambda name: (_rank(kind, name, kinds[name]), name),
    ):
        if driver == _ANY_KIND or (
            kind.type is not None
            and (
                kinds[driver] is None
                or naming.is_same_type(kind.type, kinds[driver] or '')
            )
        ):
            for more in _more(preview, kind, driver):
                yield {**dict(kind.keys), 'driver': driver, **more}


def _rank(kind: Kind, driver: str, its_type: str | None) -> int:
    """Drivers of the kind come first, that of all kinds last.

    A card that makes mediated devices has its vendor's driver for vGPUs.
    """
    if its_type is not None:
        return 1 if its_type == kind.type else 2
    if driver == _ANY_KIND:
        return 4
    return 0 if kind.mdev_types else 3


def _more(
    preview: host_preview.Preview, kind: Kind, driver: str
) -> list[dict[str, Any]]:
    """The further keys that a line of the driver may have, a line for each."""
    match driver:
        case 'nic':
            return [{'physical_network': _PHYSICAL_NETWORK}]
        case 'mdev':
            return [{'mdev_type': name} for name in kind.mdev_types]
        case 'nvidia_vfio':
            ids = _vgpu_types(preview, kind)
            return [{'vgpu_types': {ids[0]: 1}}] if ids else []
    return [{}]


def _vgpu_types(preview: host_preview.Preview, kind: Kind) -> list[str]:
    """The ids of the vGPU types that a card's virtual functions can get."""
    vgpus = vfio_vgpu.VfioVgpu(preview.sysfs)
    for card in kind.functions:
        for part in card.virtual_functions:
            try:
                return sorted(vgpus.types(part).values(), key=int)
            except exceptions.DeviceError:
                break
    return []


def _hints(kind: Kind, line: device_spec.DeviceSpec) -> Iterator[str]:
    if line.physical_network is not None:
        yield (
            f'replace "{_PHYSICAL_NETWORK}" by the physical network that the '
            'devices are connected to'
        )
    if line.mdev_type is not None and len(kind.mdev_types) > 1:
        yield f'"mdev_type" may be one of {", ".join(kind.mdev_types)}'
    if line.driver == 'nvme':
        yield 'each drive is erased before its first guest gets it'
    if line.vgpu_types:
        yield 'choose the "vgpu_types": their ids, and how many of each'
    most = max(each.max_virtual_functions for each in kind.functions)
    if (
        most
        and kind.type != 'SSD'
        and dict(kind.keys)['vendor_id'] != _NVIDIA
        and not any(each.virtual_functions for each in kind.functions)
    ):
        yield (
            f'"sriov_numvfs": {most} in the line makes up to {most} virtual '
            'functions of each, which are offered instead'
        )
