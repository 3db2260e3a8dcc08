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

"""The ids of the board that a PCI function is on.

Several boards may have the same chip, and so the same vendor and product:
NVIDIA A2 and A16, Intel N6000 and C6100. The subsystem ids tell them apart.
"""

import dataclasses
import re

# As the kernel's ``drivers/pci/pci-sysfs.c`` writes an id.
_ID = re.compile('0x([0-9a-f]{4})')

# A function without an id has this.
_NONE = '0000'


@dataclasses.dataclass(frozen=True)
class Subsystem:
    """Both ids, each of them four lower-case hexadecimal digits."""

    vendor_id: str
    product_id: str

    def __str__(self) -> str:
        return f'{self.vendor_id}:{self.product_id}'


def parse_id(text: str) -> str:
    """An id, as ``subsystem_vendor`` and ``subsystem_device`` have it.

    :raises ValueError: the text is none.
    """
    found = _ID.fullmatch(text)
    if found is None:
        raise ValueError(f'has no id: {text!r:.64}')
    return found[1]


def of(
    vendor_id: str | None,
    product_id: str | None,
    of_card: Subsystem | None = None,
) -> Subsystem | None:
    """The board of a function, None if it does not say.

    A virtual function has ids of its own. A function of an N6001 has the ids
    of its card, and a function of an A2 has no product. A function that lacks
    an id is on its card's board.

    :param of_card: for a virtual function, the board of its physical one
    """
    if of_card is not None and (
        vendor_id in (None, _NONE) or product_id in (None, _NONE)
    ):
        return of_card
    if vendor_id in (None, _NONE) or product_id is None:
        return None
    return Subsystem(vendor_id, product_id)
