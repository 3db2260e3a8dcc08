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

"""Intel's FPGAs with a Device Feature List, the cards of OPAE."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import pathlib
import re

from nova_accel import exceptions
from nova_accel import privileged
from nova_accel.drivers import fpga
from nova_accel.drivers import fpga_programming
from nova_accel.drivers import fpga_region
from nova_accel.host import pci_function
from nova_accel.host import sysfs_tree
from nova_accel.model import pci_address
from nova_accel.model.devices import hardware
from nova_accel.model.devices import programmable
from nova_accel.model.fpga import bitstream_format
from nova_accel.privileged import fpga as privileged_fpga


class FpgaDflDriver(fpga_region.FpgaRegionDriver):
    """A card whose ports have been given to virtual functions.

    The kernel's ``Documentation/fpga/dfl.rst`` describes the tree. A container
    ``fpga_region/regionN`` has the management engine ``dfl-fme.N``. Below that
    is a ``dfl-fme-region.N`` for each programmable region. A port's ``afu_id``
    (``Documentation/ABI/testing/sysfs-platform-dfl-port``) is the accelerator
    type. The engine's ``bitstream_id`` (``sysfs-platform-dfl-fme``) is the
    image of the card's static part. The port cannot be read while a guest has
    it.

    Virtual functions of cards with the Open FPGA Stack have no port. Their
    BAR 0 begins with the accelerator's header (``opae-libs/plugins/vfio`` of
    OPAE), which a process of root reads.

    OPAE's ``fpgasupdate`` programs the card. Like ``fpgaconf`` it knows only
    one region, and it refuses one whose port is in use
    (https://opae.github.io, ``opae-libs/plugins/xfpga/reconf.c``). OPAE does
    not say whether a failed programming may be repeated. ``afu_id`` is the
    same for all images of one accelerator.
    """

    repeats_programming = False

    def region_paths(
        self, function: pci_function.PciFunction
    ) -> Sequence[str]:
        return [
            f'{path}/fpga_region/{region}'
            for engine in _below(self._sysfs, function.address, 'dfl-fme.')
            for path in _paths(
                self._sysfs, function.address, engine, 'dfl-fme-region.'
            )
            for region in self._sysfs.names(
                function.address, f'{path}/fpga_region'
            )
        ]

    def function_uuid(self, function: pci_function.PciFunction) -> str | None:
        return _afu_id(self._sysfs.optional, function.address)

    def loaded(
        self, device: hardware.Device, region: programmable.Region
    ) -> str:
        types = {
            address: self._accelerator(address)
            for address in _accelerators(device, region)
        }
        if not types or None in types.values():
            silent = [
                str(address)
                for address, type_ in types.items()
                if type_ is None
            ]
            raise exceptions.DeviceError(
                f'{", ".join(silent) or device.address} does not say what '
                f'{region.name} holds'
            )
        return ' '.join(sorted(set(filter(None, types.values()))))

    def program(
        self,
        device: hardware.Device,
        region: programmable.Region,
        bitstream: pathlib.Path,
        timeout_s: float,
    ) -> None:
        if device.regions != (region,):
            # tools/fpgaconf/fpgaconf.c: "we don't support multiple slots"
            raise fpga_programming.refusal(
                device, region, 'OPAE programs cards of one region only'
            )
        for address in _accelerators(device, region):
            if not (self._has_port(address) or self._has_bar(address)):
                raise fpga_programming.refusal(
                    device,
                    region,
                    f'{address} could not tell what it holds afterwards: it '
                    'has neither a dfl-port nor a BAR 0 that the host can '
                    'read. Unbind it from vfio-pci',
                )
        try:
            wanted = bitstream_format.gbs_types(
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
            privileged_fpga.fpgasupdate,
            device.address,
            bitstream,
        )
        fpga_programming.check(
            device, region, self.loaded(device, region), wanted
        )

    def _accelerator(self, address: pci_address.PciAddress) -> str | None:
        """The id of a function's accelerator, None if it does not say.

        :raises DeviceError: it cannot be read.
        """
        if self._has_port(address) or not self._has_bar(address):
            return _afu_id(self._sysfs, address)
        try:
            return privileged_fpga.afu_id(str(address))
        except privileged.ERRORS as error:
            raise exceptions.DeviceError(
                f'{address} does not say what it holds: {error}'
            ) from error

    def _has_port(self, address: pci_address.PciAddress) -> bool:
        return any(True for _ in _below(self._sysfs, address, 'dfl-port.'))

    def _has_bar(self, address: pci_address.PciAddress) -> bool:
        """Whether the host can read BAR 0; a guest may have it otherwise."""
        driver = self._sysfs.link(address, 'driver') or ''
        return 'vfio' not in driver and (
            'resource0' in self._sysfs.names(address)
        )

    def attributes(
        self, function: pci_function.PciFunction
    ) -> Mapping[str, str]:
        sysfs = self._sysfs.optional
        found = {
            name: sysfs.read(function.address, f'{engine}/{name}')
            for engine in _below(sysfs, function.address, 'dfl-fme.')
            for name in ('bitstream_id', 'bitstream_metadata', 'ports_num')
        }
        return {name: text for name, text in found.items() if text}

    def fault(self, function: pci_function.PciFunction) -> str | None:
        sysfs = self._sysfs.optional
        for engine in _below(sysfs, function.address, 'dfl-fme.'):
            errors = sysfs.read(
                function.address, f'{engine}/errors/catfatal_errors'
            )
            if errors and re.fullmatch('0x0*[1-9a-f][0-9a-f]*', errors):
                return f'it has catastrophic or fatal errors: {errors}'
        return None


def _accelerators(
    device: hardware.Device, region: programmable.Region
) -> list[pci_address.PciAddress]:
    """The functions of the accelerators in a region."""
    return [
        handle.address
        for deployable in device.deployables
        if deployable.region == region.name
        for handle in deployable.handles
    ]


def _afu_id(
    sysfs: sysfs_tree.Sysfs, address: pci_address.PciAddress
) -> str | None:
    for port in _below(sysfs, address, 'dfl-port.'):
        return fpga.one_uuid(sysfs, address, f'{port}/afu_id')
    return None


def _below(
    sysfs: sysfs_tree.Sysfs, address: pci_address.PciAddress, prefix: str
) -> Iterator[str]:
    """The paths of the devices in the card's containers."""
    for container in fpga_region.in_order(sysfs.names(address, 'fpga_region')):
        yield from _paths(sysfs, address, f'fpga_region/{container}', prefix)


def _paths(
    sysfs: sysfs_tree.Sysfs,
    address: pci_address.PciAddress,
    directory: str,
    prefix: str,
) -> list[str]:
    return [
        f'{directory}/{name}'
        for name in fpga_region.in_order(sysfs.names(address, directory))
        if name.startswith(prefix)
    ]
