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


"""What is known of accelerators by their PCI ids alone: data, not code.

``catalogue.json`` has vendor id -> name and type -> product id -> name. Ids
are from pci.ids (https://pci-ids.ucw.cz), and of the kernel's
``drivers/fpga/dfl-pci.c`` and ``drivers/ptp/ptp_ocp.c``. The names are in
traits: an entry may be added, but a name never changes.
"""

from collections.abc import Mapping
import dataclasses
import functools
from importlib import resources
import json


@dataclasses.dataclass(frozen=True)
class Entry:
    """What is known of a device; None is what is not known.

    ``type`` is one of :data:`nova_accel.model.naming.RESOURCE_CLASSES`.
    """

    type: str | None = None
    vendor: str | None = None
    product: str | None = None


@functools.cache
def entries() -> Mapping[tuple[str, str | None], Entry]:
    """(vendor id, product id) -> entry; product id None is the vendor."""
    text = resources.files(__package__).joinpath('catalogue.json').read_text(
        encoding='utf-8')
    result: dict[tuple[str, str | None], Entry] = {}
    for vendor_id, vendor in json.loads(text).items():
        result[vendor_id, None] = Entry(vendor=vendor['name'])
        for type_, products in vendor['products'].items():
            for product_id, product in products.items():
                result[vendor_id, product_id] = Entry(
                    type_, vendor['name'], product)
    return result


def look_up(vendor_id: str, product_id: str) -> Entry:
    """What is known of a device, of its vendor at least, or nothing.

    :param vendor_id: four lower-case hexadecimal digits, as ``product_id``
    """
    known = entries()
    return (known.get((vendor_id, product_id))
            or known.get((vendor_id, None)) or Entry())
