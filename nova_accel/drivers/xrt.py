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

"""AMD's (Xilinx's) FPGAs with the Xilinx Runtime: Alveo."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import pathlib
import re
import uuid

from nova_accel import exceptions
from nova_accel.drivers import fpga
from nova_accel.drivers import fpga_programming
from nova_accel.drivers import pci_kind
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address
from nova_accel.model.devices import hardware
from nova_accel.model.devices import programmable
from nova_accel.model.fpga import bitstream_format
from nova_accel.privileged import fpga as privileged_fpga

# The kernel's xclbinuuid of a card without an image.
_NONE = str(uuid.UUID(int=0))

# The ids of designs with AMD's own DMA core, which XRT does not know
# (https://github.com/Xilinx/dma_ip_drivers, QDMA/linux-kernel/driver/src).
_BARE_DMA = re.compile('9[0-3][1-4][1248f]')


class XrtDriver(fpga.FpgaDriver):
    """A card: the host keeps its management function, guests get the user's.

    Function 0 manages the card, function 1 is the user's
    (https://xilinx.github.io/XRT/master/html/platforms.html). A card with its
    factory image has only function 0. sysfs is read as in XRT's
    ``src/runtime_src/core/pcie/linux/device_linux.cpp``. The last of
    ``interface_uuids`` belongs to the shell that users' images are linked
    with. ``logic_uuids`` are the shell's own, and ``xclbinuuid`` of the user's
    function is the loaded image.

    ``xrt-smi program``, formerly ``xbutil``
    (https://xilinx.github.io/XRT/master/html/xrt-smi.html), programs the card
    through the user's function, whatever was loaded before. Each application
    does the same when it starts. The linker makes a new uuid for each image. A
    guest may load an image of its own, unless that is forbidden to the host,
    too (https://xilinx.github.io/XRT/master/html/security.html, "mailbox"). A
    card that is handed out whole is not programmed, because its guest has all
    of it.

    A platform of two stages (DFX-2RP) has a base in its flash and gets its
    shell by ``xbmgmt program --shell``, which checks that the shell is for
    that base (``src/runtime_src/core/tools/xbmgmt2``). Until then it only has
    the base's uuids and no user's function. A cold boot of the host removes
    the shell. The flash is left alone, because replacing its contents needs a
    cold boot.
    """

    repeats_programming = True
    tells_contents = True

    def check(self, function: pci_function.PciFunction) -> None:
        pci_kind.check_vendor(function, {'10ee': 'AMD (Xilinx)'})
        if function.address.function != 0:
            raise exceptions.PartOfCard(
                'it is not function 0 of its slot, which manages the card',
                dataclasses.replace(function.address, function=0),
            )
        if _BARE_DMA.fullmatch(function.product_id):
            raise exceptions.DeviceError(
                f'10ee:{function.product_id} is no shell of XRT, but a design '
                'with a DMA core of its own, which may manage the card: if '
                'guests may have it, its driver is "pci"'
            )

    def regions(
        self,
        function: pci_function.PciFunction,
        host: libvirt_devices.HostDevices,
    ) -> Sequence[fpga.FpgaRegion]:
        user = _user(function.address)
        sysfs = self._sysfs.optional
        interfaces = fpga.uuids(sysfs, function.address, 'interface_uuids')
        if user not in host.functions:
            if interfaces:
                return []
            raise exceptions.DeviceError(
                'it has no user function, and interface_uuids names no shell: '
                'does it have its factory image?'
            )
        return [
            fpga.FpgaRegion(
                interfaces[-1] if interfaces else None,
                [fpga.Accelerator(user, _image(sysfs, user))],
                self.shell_id(function),
            )
        ]

    def shell_id(self, function: pci_function.PciFunction) -> str | None:
        return _shell_id(self._sysfs.optional, function.address)

    def loaded_shell(self, device: hardware.Device) -> str:
        shell_id = _shell_id(self._sysfs, device.address)
        if (
            shell_id is None
            or self._sysfs.read(device.address, 'dev_offline') == '1'
        ):
            raise exceptions.DeviceError(
                f'{device.address} is offline, or does not say what its '
                'shell is'
            )
        return shell_id

    def load_shell(
        self,
        device: hardware.Device,
        shell: pathlib.Path,
        timeout_s: float,
    ) -> None:
        fpga_programming.call(
            device,
            programmable.Region(programmable.SHELL),
            timeout_s,
            privileged_fpga.xbmgmt,
            device.address,
            shell,
        )

    def loaded(
        self, device: hardware.Device, region: programmable.Region
    ) -> str:
        user = _user(device.address)
        if self._sysfs.read(device.address, 'dev_offline') == '1':
            raise exceptions.DeviceError(f'{device.address} is offline')
        image = _image(self._sysfs, user)
        if image is None:
            raise exceptions.DeviceError(
                f'{user} does not say what {region.name} holds'
            )
        return image

    def program(
        self,
        device: hardware.Device,
        region: programmable.Region,
        bitstream: pathlib.Path,
        timeout_s: float,
    ) -> None:
        try:
            wanted = bitstream_format.xclbin_uuid(
                privileged_fpga.head(bitstream)
            )
        except (ValueError, OSError) as error:
            raise fpga_programming.refusal(
                device, region, str(error)
            ) from error
        fpga_programming.call(
            device,
            region,
            timeout_s,
            privileged_fpga.xbutil,
            _user(device.address),
            bitstream,
        )
        fpga_programming.check(
            device, region, self.loaded(device, region), [wanted]
        )

    def attributes(
        self, function: pci_function.PciFunction
    ) -> Mapping[str, str]:
        sysfs, address = self._sysfs.optional, function.address
        found = {
            'logic_uuids': ', '.join(fpga.uuids(sysfs, address, 'logic_uuids'))
        }
        for rom in sysfs.names(address):
            if rom.startswith('rom.'):
                for name in ('VBNV', 'ddr_bank_count_max', 'ddr_bank_size'):
                    found[name] = sysfs.read(address, f'{rom}/{name}') or ''
        return {name: text for name, text in found.items() if text}

    def fault(self, function: pci_function.PciFunction) -> str | None:
        if self._sysfs.optional.read(function.address, 'dev_offline') == '1':
            return 'its management function says that it is offline'
        for address in (function.address, _user(function.address)):
            if self._is_not_ready(address):
                return f'{address} is not ready: see "xrt-smi examine"'
        return None

    def _is_not_ready(self, address: pci_address.PciAddress) -> bool:
        """Whether XRT says so.

        A card with its factory image (``mfg``) is as ready as it can be, see
        ``is_ready`` in ``src/runtime_src/core/common/query_requests.h``. There
        is no ``ready`` while a guest has the function.
        """
        facts = self._sysfs.optional
        return (
            facts.read(address, 'ready') == '0'
            and facts.read(address, 'mfg') != '1'
        )


def _image(
    sysfs: sysfs_tree.Sysfs, user: pci_address.PciAddress
) -> str | None:
    image = fpga.one_uuid(sysfs, user, 'xclbinuuid')
    return None if image == _NONE else image


def _shell_id(
    sysfs: sysfs_tree.Sysfs, card: pci_address.PciAddress
) -> str | None:
    logic = fpga.uuids(sysfs, card, 'logic_uuids')
    return logic[-1] if logic else None


def _user(address: pci_address.PciAddress) -> pci_address.PciAddress:
    return dataclasses.replace(address, function=1)
