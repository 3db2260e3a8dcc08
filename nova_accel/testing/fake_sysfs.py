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

"""A sysfs in a directory, for the hosts that tests simulate."""

from collections.abc import Callable
from collections.abc import Iterable
import pathlib
from typing import Any

import fixtures

from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address
from nova_accel.privileged import pci_attributes


class FakeSysfs(fixtures.Fixture):
    """Every host that nova-compute runs on in this process has this sysfs.

    It is written without a privileged process, with the same checks.

    :ivar root: the directory
    :ivar proc: the directory in the place of ``/proc``
    :ivar sysfs: the object that drivers get
    :ivar on_write: attribute -> a function that does what the kernel does
        after a write; it gets the address and the value
    """

    def _setUp(self) -> None:
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.on_write: dict[
            str, Callable[[pci_address.PciAddress, str], None]
        ] = {}
        for path in ('devices/pci0000:00', 'bus/pci/devices'):
            (self.root / path).mkdir(parents=True)
        # Simulated hosts have cards of QAT that the kernel lists.
        self.allow_denied('Y')
        self.proc = self.root / 'proc'
        self.sysfs = sysfs_tree.Sysfs(self.root, self._write, self.proc)
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.host.sysfs_tree.of', self._of)
        )

    def set(
        self, address: pci_address.PciAddress | str, **attributes: str
    ) -> None:
        """Add a PCI function, or set attributes of it.

        :param attributes: a name stands for a path, with ``__`` for ``/``:
            ``nvidia__current_vgpu_type``
        """
        link = self.root / 'bus/pci/devices' / str(address)
        if not link.is_symlink():
            self.place(address)
        function = link.resolve()
        for attribute, value in attributes.items():
            path = function / attribute.replace('__', '/')
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'{value}\n')

    def place(
        self,
        address: pci_address.PciAddress | str,
        root: str = 'pci0000:00',
        bridges: Iterable[pci_address.PciAddress | str] = (),
    ) -> None:
        """Add a PCI function at its place in the tree of the host.

        :param root: its root complex, as sysfs names it: ``pci0000:15``
        :param bridges: those above it, from the root port down
        """
        below = pathlib.Path('devices', root, *map(str, bridges), str(address))
        (self.root / below).mkdir(parents=True, exist_ok=True)
        (self.root / 'bus/pci/devices' / str(address)).symlink_to(
            pathlib.Path('../../..', below)
        )

    def identify(
        self,
        address: pci_address.PciAddress | str,
        vendor_id: str,
        product_id: str,
    ) -> None:
        """Give a function its ids, four digits each, and a reset."""
        self.set(
            address,
            vendor=f'0x{vendor_id}',
            device=f'0x{product_id}',
            reset='',
        )

    def bind(self, address: pci_address.PciAddress | str, driver: str) -> None:
        """Bind a function to a driver of the kernel."""
        link = self.root / 'bus/pci/devices' / str(address) / 'driver'
        link.unlink(missing_ok=True)
        link.symlink_to(pathlib.Path('../../../bus/pci/drivers', driver))

    def allow_denied(self, value: str) -> None:
        """Set whether ``vfio-pci`` takes what is in its denylist, Y or N."""
        parameters = self.root / 'module/vfio_pci/parameters'
        parameters.mkdir(parents=True, exist_ok=True)
        (parameters / 'disable_denylist').write_text(f'{value}\n')

    def lose(self, address: pci_address.PciAddress | str) -> None:
        """Have a function not answer any more; sysfs keeps the rest."""
        self.revive(address, 'ffff')

    def revive(
        self, address: pci_address.PciAddress | str, vendor_id: str
    ) -> None:
        """Have its config space begin with a vendor id, of four digits."""
        self.set(address)
        link = self.root / 'bus/pci/devices' / str(address)
        (link / 'config').write_bytes(
            bytes.fromhex(vendor_id)[::-1] + 62 * b'\xff'
        )

    def remove(self, address: pci_address.PciAddress | str) -> None:
        """Remove a function: its attributes cannot be reached any more."""
        (self.root / 'bus/pci/devices' / str(address)).unlink()

    def _of(self, _host: Any) -> sysfs_tree.Sysfs:
        return self.sysfs

    def _write(self, address: str, attribute: str, value: str) -> None:
        pci_attributes.write_below(self.root, address, attribute, value)
        # The write does not truncate the file, so a part of a longer old
        # value would stay.
        self.set(address, **{attribute.replace('/', '__'): value})
        react = self.on_write.get(attribute)
        if react is not None:
            react(pci_address.PciAddress.parse(address), value)
