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

"""The types of mediated devices that a card makes."""

from collections.abc import Iterator
from collections.abc import Sequence
import re

from nova_accel.host import pci_function
from nova_accel.host import sysfs_tree
from nova_accel.model import naming

# The description of NVIDIA's types states how many units a card makes if it
# makes no other type.
_MAX_INSTANCE = re.compile(r'\bmax_instance=([1-9][0-9]{0,5})\b')


class MdevTypes:
    """The types of one card, as its functions that make them tell of them.

    ``name`` and ``description`` are for people, and optional
    (https://docs.kernel.org/driver-api/vfio-mediated-device.html).

    :param parents: these functions
    """

    def __init__(
        self,
        sysfs: sysfs_tree.Sysfs,
        parents: Sequence[pci_function.PciFunction],
    ) -> None:
        self._sysfs = sysfs
        self._parents = parents

    @property
    def ids(self) -> list[str]:
        """The types that the card makes."""
        return sorted(
            {each for parent in self._parents for each in parent.mdev_types}
        )

    def name(self, mdev_type: str) -> str | None:
        """The name for people, None if there is none."""
        return next(self._read(mdev_type, 'name'), None)

    def most(self, mdev_type: str) -> int | None:
        """How many units the card makes of a type alone, None if unknown.

        A virtual function offers one unit of any type for which its card still
        has room. So the sum over the functions is not what the card makes.
        """
        for text in self._read(mdev_type, 'description'):
            match = _MAX_INSTANCE.search(text)
            if match is not None:
                return int(match[1])
        return None

    def _read(self, mdev_type: str, attribute: str) -> Iterator[str]:
        path = f'mdev_supported_types/{mdev_type}/{attribute}'
        for parent in self._parents:
            text = self._sysfs.optional.read(parent.address, path)
            if text:
                yield text


def unit_uuid(
    node_uuid: str,
    parent: pci_function.PciFunction,
    mdev_type: str,
    index: int,
) -> str:
    """The uuid of a unit of a type, the same at each look.

    :param index: of the units of the type that the function makes
    """
    return naming.derived_uuid(node_uuid, parent.name, mdev_type, str(index))
