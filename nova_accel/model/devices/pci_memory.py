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

"""How much of a guest's address space a PCI function takes.

The kernel's ``resource`` in sysfs has a line of start, end and flags for each
region of a function, see Documentation/PCI/sysfs-pci.rst.
"""

import re

from nova_accel import exceptions

#: Standard base address registers; what follows is of the ROM and of bridges.
_REGISTERS = 6

#: ``IORESOURCE_MEM`` in include/linux/ioport.h.
_IS_MEMORY = 0x200

_LINE = re.compile('0x([0-9a-f]{1,16}) 0x([0-9a-f]{1,16}) 0x([0-9a-f]{1,16})')


def memory_bytes(resource: str) -> int:
    """The bytes of memory that the function's registers ask for.

    :raises DeviceError: the text is not of a function's regions.
    """
    total = 0
    for line in resource.splitlines()[:_REGISTERS]:
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise exceptions.DeviceError(
                f'{line!r:.64} is not a region of a PCI function'
            )
        start, end, flags = (int(number, 16) for number in match.groups())
        if flags & _IS_MEMORY and end >= start:
            total += end - start + 1
    return total
