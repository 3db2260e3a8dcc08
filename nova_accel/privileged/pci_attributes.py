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
from nova_accel.privileged import pci_function

#: The mount point of sysfs; callers cannot choose it.
ROOT = pathlib.Path('/sys')

#: The attributes that may be written. See the kernel's
#: Documentation/ABI/testing/sysfs-bus-pci, and for the last one
#: https://docs.nvidia.com/vgpu
ATTRIBUTES = frozenset({'reset', 'sriov_numvfs', 'nvidia/current_vgpu_type'})

_VALUE = re.compile(r'[0-9]{1,10}')


@privileged.sysfs_pctxt.entrypoint
def write(address: str, attribute: str, value: str) -> None:
    """Write an attribute of a PCI function.

    :param address: ``0000:81:00.0``
    :param attribute: one of :data:`ATTRIBUTES`
    :param value: a decimal number
    :raises ValueError: an argument is not allowed.
    :raises OSError: the function has no such attribute, or refuses.
    """
    write_below(ROOT, address, attribute, value)


def write_below(
    root: pathlib.Path, address: str, attribute: str, value: str
) -> None:
    """Like :func:`write`, with sysfs at ``root``."""
    if attribute not in ATTRIBUTES:
        raise ValueError(f'{attribute!r} is not written')
    if _VALUE.fullmatch(value) is None:
        raise ValueError(f'{value!r} is not a decimal number')
    path = pci_function.attribute(
        root, pci_function.address(address), attribute
    )
    # Without O_CREAT and O_TRUNC, a missing attribute is an error.
    file = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        # The kernel wants the value in a single write.
        os.write(file, value.encode())
    finally:
        os.close(file)
