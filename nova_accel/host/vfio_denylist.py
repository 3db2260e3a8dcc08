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

"""The PCI functions that the kernel's ``vfio-pci`` refuses.

Linux 5.9 and later have a list of devices that a guest could make harm the
host. ``vfio-pci`` takes none of them, unless its parameter
``disable_denylist`` is set when the module is loaded
(``vfio_pci_dev_in_denylist`` of the kernel's ``drivers/vfio/pci/vfio_pci.c``).
"""

from nova_accel.host import pci_function
from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address

_MODULE = 'module/vfio_pci'
_PARAMETER = 'parameters/disable_denylist'

# Intel's C3xxx, C62x, DH895xCC, each with its virtual functions, DSA and IAA.
_INTEL = '8086'
_DENIED = frozenset(
    ('19e2', '19e3', '37c8', '37c9', '0435', '0443', '0b25', '0cfe')
)


def reason(
    sysfs: sysfs_tree.Sysfs, function: pci_function.PciFunction
) -> str | None:
    """Why ``vfio-pci`` refuses a function, None if it does not.

    Until the module is loaded, the kernel's default counts. A kernel without
    the parameter has no list.
    """
    if (
        function.vendor_id != _INTEL
        or function.product_id not in _DENIED
        or 'vfio' in (function.driver or '')
        or _is_disabled(sysfs, function.address)
    ):
        return None
    return (
        f'vfio-pci refuses {function.address}, because '
        f'{function.vendor_id}:{function.product_id} is in its denylist. If '
        'you trust the guests, write "options vfio-pci disable_denylist=1" '
        'into a file of /etc/modprobe.d and load vfio-pci again, or at boot'
    )


def _is_disabled(
    sysfs: sysfs_tree.Sysfs, address: pci_address.PciAddress
) -> bool:
    module = sysfs.root / _MODULE
    try:
        return sysfs_tree.text(module / _PARAMETER) == 'Y'
    except OSError as error:
        if not isinstance(error, FileNotFoundError):
            sysfs_tree.note(
                address,
                f'{_MODULE}/{_PARAMETER} cannot be read: '
                f'{sysfs_tree.told(error)}',
            )
        return module.is_dir()
