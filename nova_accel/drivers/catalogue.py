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


"""The catalogue of accelerators by their PCI ids: data, not code.

``catalogue.json`` has vendor id -> name and type -> product id -> name. Boards
that share a product id have entries of their own, ``25b6/10de:14a9``, with
their subsystem ids; the entry ``25b6`` is for a board that does not tell its
own. The ids are from pci.ids (https://pci-ids.ucw.cz), from the kernel's
``drivers/fpga/dfl-pci.c``, ``drivers/ptp/ptp_ocp.c`` and
``drivers/accel/qaic/qaic_drv.c``. Further ids are from programs for the
devices:

* Alveo: XRT's ``src/runtime_src/core/pcie/driver/linux/xocl/devices.h``
* V80: AMD's QDMA driver
* OFS, and the boards of 8086:bcce and bccf: opae-sdk's
  ``binaries/opae.io/opae/io/config.py``
* 8086:0b31: DPDK's ``drivers/raw/ifpga``
* the boards of 10de:25b6: the table of GPUs of NVIDIA's
  open-gpu-kernel-modules
* F1: AWS' XDMA driver
* TPU: JAX's ``jax/_src/cloud_tpu_init.py``

The names become parts of traits, so entries may be added but names must never
change.

``[nova_accel] catalogue_file`` is the operator's own catalogue, in YAML of the
same form. It adds entries and overrides existing ones, and an entry for a
product id those of its boards, too.
"""

from collections.abc import Mapping
import dataclasses
import functools
from importlib import resources
import json
from typing import Any

from nova_accel import conf
from nova_accel.drivers import catalogue_file
from nova_accel.model.devices import subsystem

CONF = conf.CONF

# Is between the ids of a product and of its board.
_BOARD = '/'


@dataclasses.dataclass(frozen=True)
class Product:
    """The catalogue's facts about a device; None if unknown.

    ``type`` is one of :data:`nova_accel.model.naming.RESOURCE_CLASSES`.
    ``is_board`` says that others with the same PCI ids are other products.
    """

    type: str | None = None
    vendor: str | None = None
    product: str | None = None
    is_board: bool = False


#: (vendor id, product id) -> entry; the vendor itself has product id None, and
#: a board the product id ``25b6/10de:14a9``.
Entries = Mapping[tuple[str, str | None], Product]


def entries() -> Entries:
    """The shipped catalogue and the operator's; each file is read once.

    :raises ConfigurationError: the operator's catalogue is wrong; the text
        names the option, the file and the fault.
    """
    return _entries(CONF.nova_accel.catalogue_file)


def look_up(
    vendor_id: str,
    product_id: str,
    board: subsystem.Subsystem | None = None,
) -> Product:
    """The entry of a device, or of its vendor alone, or an empty one.

    :param vendor_id: four lower-case hexadecimal digits, as ``product_id``
    :param board: its subsystem, None if it is not known
    """
    known = entries()
    return (
        known.get((vendor_id, f'{product_id}{_BOARD}{board}'))
        or known.get((vendor_id, product_id))
        or known.get((vendor_id, None))
        or Product()
    )


@functools.cache
def _entries(file: str | None) -> Entries:
    shipped = json.loads(
        resources.files(__package__)
        .joinpath('catalogue.json')
        .read_text(encoding='utf-8')
    )
    vendors = {
        vendor_id: vendor['name'] for vendor_id, vendor in shipped.items()
    }
    products = _products(shipped)
    if file is not None:
        own = catalogue_file.read(file)
        vendors |= {
            vendor_id: vendor['name'] for vendor_id, vendor in own.items()
        }
        named = _products(own)
        products = {
            (vendor_id, product_id): name
            for (vendor_id, product_id), name in products.items()
            if (vendor_id, product_id.partition(_BOARD)[0]) not in named
        } | named
    result: dict[tuple[str, str | None], Product] = {
        (vendor_id, None): Product(vendor=name)
        for vendor_id, name in vendors.items()
    }
    for (vendor_id, product_id), (type_, product) in products.items():
        result[vendor_id, product_id] = Product(
            type_, vendors[vendor_id], product, _BOARD in product_id
        )
    return result


def _products(
    catalogue: Mapping[str, Any],
) -> dict[tuple[str, str], tuple[str, str]]:
    """(vendor id, product id) -> (type, name)."""
    return {
        (vendor_id, product_id): (type_, name)
        for vendor_id, vendor in catalogue.items()
        for type_, names in vendor.get('products', {}).items()
        for product_id, name in names.items()
    }
