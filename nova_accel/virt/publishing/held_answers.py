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

"""The last answers of drivers about devices that instances hold, on disk.

A driver sees less of a device while a guest has it: no types of the regions of
an FPGA, no drive behind a controller. A restart must not lose what was known.
"""

from collections.abc import Mapping
import dataclasses
import pathlib
from typing import Any
from typing import NamedTuple

from nova_accel.model import attach_handle
from nova_accel.model import bounds
from nova_accel.model import decoding
from nova_accel.model import pci_address
from nova_accel.model.devices import hardware
from nova_accel.model.devices import programmable
from nova_accel.model.devices import vgpu_parameters
from nova_accel.state import value_file


class HeldAnswer(NamedTuple):
    """The last answer of a driver, and the line that it was asked for.

    The device is as its driver has it, without what the core adds.
    """

    device: hardware.Device
    line: str


class HeldAnswers:
    """The memory of one host, in a file."""

    def __init__(self, path: pathlib.Path) -> None:
        self._file: value_file.ValueFile[tuple[HeldAnswer, ...]] = (
            value_file.ValueFile(
                path,
                decoding.listed(_answer, bounds.MAX_DEVICES),
                _to_json,
                (),
                'devices in guests are published as far as their drivers see '
                'them now',
                'After a restart, devices in guests would be published as far '
                'as their drivers see them then',
            )
        )

    def damaged(self) -> list[tuple[None, str]]:
        """The fault of the file, if it was damaged at the last start."""
        return [(None, why) for why in self._file.damaged]

    def read(self) -> tuple[HeldAnswer, ...]:
        return self._file.value

    def write(self, answers: tuple[HeldAnswer, ...]) -> None:
        """Remember them. Does not raise. Nothing new costs nothing."""
        self._file.write(answers)


def _answer(value: Any) -> HeldAnswer:
    field = decoding.Fields(value)
    return HeldAnswer(field('device', _device), field('line', decoding.words))


_WORDS = decoding.optional(decoding.words)


def _device(value: Any) -> hardware.Device:
    field = decoding.Fields(value)
    pci_id = decoding.matching(bounds.PCI_ID, 'a PCI id')
    return hardware.Device(
        name=field('name', decoding.name),
        type=field('type', decoding.name),
        vendor_id=field('vendor_id', pci_id),
        product_id=field('product_id', pci_id),
        vendor=field('vendor', decoding.words),
        product=field('product', decoding.words),
        address=field('address', pci_address.from_text),
        driver=field('driver', decoding.name),
        deployables=field(
            'deployables',
            decoding.listed(_deployable, bounds.MAX_PARTS),
        ),
        numa_node=field(
            'numa_node',
            decoding.optional(decoding.integer(0, bounds.MAX_NUMA_NODE)),
        ),
        pooled=field('pooled', decoding.boolean),
        pooled_by_numa_node=field('pooled_by_numa_node', decoding.boolean),
        pooled_by_links=field('pooled_by_links', decoding.boolean),
        operator_traits=frozenset(field('operator_traits', decoding.traits)),
        fault=field('fault', _WORDS),
        attributes=field(
            'attributes',
            decoding.mapped(decoding.words, decoding.words, bounds.MAX_PARTS),
        ),
        regions=field('regions', decoding.listed(_region, bounds.MAX_PARTS)),
        shell=field('shell', decoding.optional(_region)),
        subsystem=field('subsystem', _WORDS),
    )


def _deployable(value: Any) -> hardware.Deployable:
    field = decoding.Fields(value)
    return hardware.Deployable(
        name=field('name', decoding.name),
        resource_class=field('resource_class', decoding.name),
        traits=frozenset(field('traits', decoding.traits)),
        handles=field('handles', decoding.listed(_handle, bounds.MAX_PARTS)),
        is_cleaned=field('is_cleaned', decoding.boolean),
        region=field('region', _WORDS),
        fault=field('fault', _WORDS),
    )


def _handle(value: Any) -> attach_handle.AttachHandle:
    field = decoding.Fields(value)
    return dataclasses.replace(
        attach_handle.from_dict(value),
        cleaning=field('cleaning', decoding.listed(decoding.words)),
        live_migratable=field(
            'live_migratable', decoding.optional(decoding.boolean)
        ),
        vgpu_params=field(
            'vgpu_params',
            decoding.optional(
                decoding.matching(
                    rf'{vgpu_parameters.PATTERN}\Z', 'a list of parameters'
                )
            ),
        ),
    )


def _region(value: Any) -> programmable.Region:
    field = decoding.Fields(value)
    return programmable.Region(
        name=field('name', decoding.name),
        type_uuid=field('type_uuid', _WORDS),
        shell_id=field('shell_id', _WORDS),
        contents_attribute=field('contents_attribute', _WORDS),
        is_shell=field('is_shell', decoding.boolean),
    )


def _to_json(answers: tuple[HeldAnswer, ...]) -> Any:
    return [
        each._asdict() | {'device': _plain(each.device)} for each in answers
    ]


def _plain(value: Any) -> Any:
    """A device or a part of one, in the form of its parser."""
    if isinstance(value, pci_address.PciAddress):
        return str(value)
    if isinstance(value, attach_handle.AttachHandle):
        return value.to_dict() | {
            name: getattr(value, name)
            for name in ('cleaning', 'live_migratable', 'vgpu_params')
        }
    if dataclasses.is_dataclass(value):
        return {
            field.name: _plain(getattr(value, field.name))
            for field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, frozenset):
        return sorted(value)
    return list(map(_plain, value)) if isinstance(value, tuple) else value
