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

"""Read what the kernel's driver of QuickAssist tells root alone."""

import contextlib
import pathlib

from nova_accel import privileged
from nova_accel.privileged import offered
from nova_accel.privileged import pci_function

#: The mount points of sysfs and debugfs; callers cannot choose them.
SYSFS = pathlib.Path('/sys')
DEBUGFS = pathlib.Path('/sys/kernel/debug')

# The status is -1 or 0.
_MAX_BYTES = 16


@privileged.sysfs_pctxt.entrypoint
def heartbeat(address: str) -> str | None:
    """Whether a card answers, see the kernel's ``debugfs-driver-qat``.

    The file is in ``Documentation/ABI/testing``.

    :param address: of the card: ``0000:6b:00.0``; this host offers it, or a
        virtual function of it
    :returns: ``0`` if it answers and ``-1`` if not; None if its driver, or a
        kernel before Linux 6.6, does not say
    :raises ValueError: the address is not allowed.
    :raises OSError: the kernel refuses.
    """
    card = pci_function.address(address)
    _check(card)
    for path in DEBUGFS.glob(f'qat_*_{card}/heartbeat/status'):
        with path.open('rb') as file:
            return file.read(_MAX_BYTES).decode('ascii', 'replace').strip()
    return None


def _check(card: str) -> None:
    """:raises ValueError: no line offers it or a virtual function of it."""
    try:
        offered.check(SYSFS, card)
    except ValueError:
        directory = SYSFS / 'bus/pci/devices' / card
        for virtual in directory.glob('virtfn*'):
            with contextlib.suppress(ValueError):
                offered.check(SYSFS, virtual.readlink().name)
                return
        raise
