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


"""The facts that every driver states about a device in the same way."""

from collections.abc import Iterable
import dataclasses
from typing import Any

from nova_accel import exceptions
from nova_accel.drivers import catalogue
from nova_accel.host import pci_function
from nova_accel.host import sysfs_tree
from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model import pci_classes
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import hardware

# A value in the Vital Product Data of a ConnectX-7 that connects a host to the
# NVSwitches of an HGX B200 or B300. Its ids are those of a network card. See
# siderolabs/extensions#893 and NVIDIA's dcgm-exporter.
_MANAGES_SWITCHES = 'SW_MNG'

# The network functions of NVIDIA's BlueField cards, by vendor and product.
_DPUS = frozenset(
    ('15b3', product) for product in ('a2d2', 'a2d6', 'a2d9', 'a2dc', 'a2df')
)


@dataclasses.dataclass(frozen=True)
class Facts:
    """A PCI function, the operator's line for it, and its catalogue entry.

    ``type`` is one of :data:`nova_accel.model.naming.RESOURCE_CLASSES`.
    """

    function: pci_function.PciFunction
    spec: device_spec.DeviceSpec
    known: catalogue.Product
    type: str

    @property
    def vendor(self) -> str:
        """The vendor's name in traits, the same on every host.

        libvirt's names depend on the version of the host's own list. So a
        vendor that is not in the catalogue is called by its PCI id.
        """
        return self.known.vendor or self.function.vendor_id

    @property
    def product(self) -> str:
        """The product's name in traits, like :attr:`vendor`."""
        return self.known.product or self.function.product_id

    def deployable(
        self,
        name: str,
        handles: Iterable[attach_handle.AttachHandle],
        *traits: str,
    ) -> hardware.Deployable:
        """A part of the device, as the operator's line wants it.

        :param traits: additional traits
        :raises InvalidName: the device's trait would be too long.
        """
        cleaning = self.spec.cleaning
        stated: dict[str, Any] = {}
        if cleaning:
            stated['cleaning'] = cleaning
        if self.spec.live_migratable is not None:
            stated['live_migratable'] = self.spec.live_migratable
        if self.spec.vgpu_params is not None:
            stated['vgpu_params'] = self.spec.vgpu_params
        handles = (dataclasses.replace(each, **stated) for each in handles)
        return hardware.Deployable(
            name=name,
            resource_class=(
                self.spec.resource_class or naming.RESOURCE_CLASSES[self.type]
            ),
            traits=self.spec.traits.union(
                traits,
                [naming.device_trait(self.type, self.vendor, self.product)],
            ),
            handles=tuple(handles),
            is_cleaned=bool(cleaning),
        )

    def device(
        self, deployables: Iterable[hardware.Deployable], pooled: bool = False
    ) -> hardware.Device:
        """The device.

        :param pooled: whether it is interchangeable with others of its kind,
            if the operator's line does not say
        """
        # Boards with the same PCI ids are not interchangeable.
        board = (
            {naming.device_trait(self.type, self.vendor, self.product)}
            if self.known.is_board
            else set()
        )
        return hardware.Device(
            name=self.function.name,
            type=self.type,
            vendor_id=self.function.vendor_id,
            product_id=self.function.product_id,
            vendor=(self.known.vendor or self.function.vendor or self.vendor),
            product=(
                self.known.product or self.function.product or self.product
            ),
            address=self.function.address,
            driver=self.spec.driver,
            deployables=tuple(deployables),
            numa_node=self.function.numa_node,
            pooled=pooled if self.spec.pool is None else self.spec.pool,
            pooled_by_numa_node=self.spec.pool_by_numa_node,
            pooled_by_links=self.spec.pool_by_links,
            operator_traits=self.spec.traits | board,
            attributes=_attributes(self.function),
        )


def _attributes(function: pci_function.PciFunction) -> dict[str, str]:
    """Attributes for people, the same at every discovery."""
    found = {
        'pci_class': function.class_code,
        'iommu_group': function.iommu_group,
        'link': function.link_max,
        'upstream': function.upstream,
        'max_virtual_functions': function.max_virtual_functions or None,
        **function.vpd,
    }
    return {
        name: str(value) for name, value in found.items() if value is not None
    }


def of(
    function: pci_function.PciFunction,
    spec: device_spec.DeviceSpec,
    default_type: str | None = None,
) -> Facts:
    """The facts from the catalogue; the operator's line overrides it.

    :param default_type: the driver's type for devices of unknown type
    :raises DeviceError: the type of the device is unknown, or the function
        cannot be of that type, or only the host may have it.
    """
    known = catalogue.look_up(
        function.vendor_id, function.product_id, function.subsystem
    )
    type_ = spec.type or known.type or default_type
    if type_ is None:
        raise exceptions.DeviceError(
            f'{function.vendor_id}:{function.product_id} is not in the '
            'catalogue, the line must have a "type"'
        )
    _check_type(function, spec, known, type_)
    _check_is_not_the_hosts(function)
    return Facts(function, spec, known, type_)


def tell_missing(
    card: pci_function.PciFunction,
    types: Iterable[tuple[str, int]],
    deployables: Iterable[hardware.Deployable],
) -> None:
    """Tell the operator which units of a line's types no one can get.

    :param types: the types of the line, and how many units it wants of each
    :param deployables: those of the types, in the same order
    """
    for (name, wanted), found in zip(types, deployables, strict=True):
        units = 0 if found.fault else len(found.handles)
        if units < wanted:
            sysfs_tree.note(
                card.address,
                f'it has {units} of the {wanted} units of the type {name} in '
                'its line: others leave no room for more or have its '
                'functions, or these have a trouble of their own',
            )


def _check_type(
    function: pci_function.PciFunction,
    spec: device_spec.DeviceSpec,
    known: catalogue.Product,
    type_: str,
) -> None:
    """:raises DeviceError: the catalogue or the PCI class contradicts."""
    if known.type is None:
        fault = pci_classes.fault(
            type_, function.class_code, spec.product_id != '*'
        )
        if fault is not None:
            raise exceptions.DeviceError(fault)
    elif not naming.is_same_type(known.type, type_):
        raise exceptions.DeviceError(
            f'its type cannot be {type_}: in the catalogue, that of '
            f'{function.vendor_id}:{function.product_id} ({known.product}) is '
            f'{known.type}; if that is wrong, correct it in [nova_accel] '
            'catalogue_file'
        )


def _check_is_not_the_hosts(function: pci_function.PciFunction) -> None:
    """:raises DeviceError: only the host may have the function."""
    if any(_MANAGES_SWITCHES in value for value in function.vpd.values()):
        raise exceptions.DeviceError(
            f'it manages the NVSwitches of the host ({_MANAGES_SWITCHES} in '
            'its Vital Product Data), so Fabric Manager needs it'
        )
    if (
        function.parent_address is None
        and (function.vendor_id, function.product_id) in _DPUS
    ):
        sysfs_tree.note(
            function.address,
            'it is a physical function of a BlueField, so its guest may '
            'reconfigure the card: offer virtual functions, or restrict the '
            'host with mlxprivhost',
        )


def virtual(known: Facts) -> Facts:
    """The facts of a card that is handed out in parts: its GPU is a VGPU."""
    if known.type == 'GPU':
        return dataclasses.replace(known, type='VGPU')
    return known
