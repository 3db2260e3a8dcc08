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

"""Write attributes of PCI functions in sysfs, as root."""

import os
import pathlib
import re

from nova_accel import privileged
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import vgpu_parameters
from nova_accel.privileged import arguments
from nova_accel.privileged import offered
from nova_accel.privileged import pci_function

#: The mount point of sysfs; callers cannot choose it.
ROOT = pathlib.Path('/sys')

_PARAMETERS = 'nvidia/vgpu_params'

#: The attributes that may be written. See the kernel's
#: Documentation/ABI/testing/sysfs-bus-pci, and for those of NVIDIA
#: https://docs.nvidia.com/vgpu
ATTRIBUTES = frozenset(
    {'reset', 'sriov_numvfs', 'nvidia/current_vgpu_type', _PARAMETERS}
)

_NUMBER = re.compile(r'[0-9]{1,10}')
_LIST = re.compile(rf'({vgpu_parameters.PATTERN})?')


@privileged.sysfs_pctxt.entrypoint
def write(address: str, attribute: str, value: str) -> None:
    """Write an attribute of a PCI function that this host offers to guests.

    :param address: ``0000:81:00.0``
    :param attribute: one of :data:`ATTRIBUTES`
    :param value: a decimal number; for ``reset`` 1, and for ``sriov_numvfs``
        the number in the function's line of ``device_spec``. For
        ``nvidia/vgpu_params`` those of the line, or '' to clear them
    :raises ValueError: an argument is not allowed.
    :raises OSError: the function has no such attribute, or refuses.
    """
    name = pci_function.address(address)
    _check(offered.check(ROOT, name), name, attribute, value)
    write_below(ROOT, name, attribute, value)


def _check(
    line: device_spec.DeviceSpec, name: str, attribute: str, value: str
) -> None:
    """:raises ValueError: the write would harm others' guests."""
    function = ROOT / 'bus/pci/devices' / name
    if attribute == 'sriov_numvfs' and (
        value != str(line.sriov_numvfs) or (function / 'physfn').is_symlink()
    ):
        raise ValueError(
            f'value {str(value)[:20]!r} for sriov_numvfs of {name} is not '
            f'what its line of [nova_accel] device_spec says, which is '
            f'{line.sriov_numvfs}'
        )
    if attribute == _PARAMETERS and value not in ('', line.vgpu_params):
        raise ValueError(
            f'value {str(value)[:100]!r} for {attribute} of {name} is not '
            'what its line of [nova_accel] device_spec says, which is '
            f'{line.vgpu_params!r}'
        )
    if attribute == 'reset' and value != '1':
        raise ValueError(f'value {str(value)[:20]!r} for reset is not 1')
    if attribute in ('reset', 'sriov_numvfs') and _virtual_functions(function):
        # Guests may have them.
        raise ValueError(f'address {name}: it has virtual functions')


def _virtual_functions(function: pathlib.Path) -> bool:
    try:
        return (function / 'sriov_numvfs').read_text().strip() != '0'
    except FileNotFoundError:
        return False


def write_below(
    root: pathlib.Path, address: str, attribute: str, value: str
) -> None:
    """Like :func:`write`, with sysfs at ``root``."""
    if arguments.text('attribute', attribute) not in ATTRIBUTES:
        raise ValueError(f'attribute {attribute[:50]!r} is not written')
    content = _content(attribute, arguments.text('value', value))
    path = pci_function.attribute(
        root, pci_function.address(address), attribute
    )
    # Without O_CREAT and O_TRUNC, a missing attribute is an error.
    file = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        # The kernel wants the value in a single write.
        os.write(file, content.encode())
    finally:
        os.close(file)


def _content(attribute: str, value: str) -> str:
    """The text that is written.

    :raises ValueError: the attribute has no such values.
    """
    if attribute == _PARAMETERS:
        if _LIST.fullmatch(value) is None:
            raise ValueError(f'value {value[:50]!r} is no list of parameters')
        # As NVIDIA's manual says it, with echo: a space clears them. Its
        # driver drops the last character, which it takes for a line's end.
        return f'{value or " "}\n'
    if _NUMBER.fullmatch(value) is None:
        raise ValueError(f'value {value[:50]!r} is not a decimal number')
    return value
