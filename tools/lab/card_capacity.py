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

"""What cards can still make, of what shares their capacity.

Each of a type that a card can make N of takes an N-th of it. Beside one type
of NVIDIA's no other size is made, unless mixed sizes are enabled: "Virtual GPU
Software User Guide", time-sliced vGPUs in equal-size mode.
"""

from collections.abc import Iterable
import fractions
import pathlib

from lab import fake_sys
from lab import hardware

_Type = hardware.MdevType | hardware.VgpuType


class Cards:
    """The cards of a machine, and its parents that are no PCI functions.

    :param functions: all that there can be
    """

    def __init__(
        self,
        tree: fake_sys.Tree,
        machine: hardware.Machine,
        functions: Iterable[hardware.Function],
    ) -> None:
        self._tree = tree
        self._functions = {each.path: each for each in functions}
        self._others = {each.path: each for each in machine.mdev_parents}

    def mdevs(self, parent: str) -> list[str]:
        """The paths of the mediated devices that a parent has made."""
        return [
            str(link.parent.relative_to(self._tree.root))
            for link in (self._tree.root / parent).glob('*/mdev_type')
        ]

    def creatable(
        self, function: hardware.Function
    ) -> list[hardware.VgpuType]:
        """What a virtual function can be set to be."""
        return self._creatable(function, self._vgpus(self._siblings(function)))

    def update(self, function: hardware.Function) -> None:
        """Show what it and those that share its capacity can make now."""
        siblings = self._siblings(function)
        made = [
            each for sibling in siblings for each in self._made(sibling.path)
        ]
        vgpus = self._vgpus(siblings)
        for sibling in siblings:
            own = self._made(sibling.path)
            for each in sibling.mdev_types:
                left = _left(each, made)
                # A virtual function makes one.
                self._show(
                    sibling.path,
                    each,
                    left if not sibling.card else min(left, int(not own)),
                )
            if self._shows(sibling, 'nvidia'):
                fake_sys.write_creatable(
                    self._tree, sibling, self._creatable(sibling, vgpus)
                )

    def update_parent(self, path: str) -> None:
        """As :meth:`update`, of a parent of mediated devices."""
        if path in self._functions:
            self.update(self._functions[path])
            return
        made = self._made(path)
        for each in self._others[path].mdev_types:
            self._show(path, each, _left(each, made))

    def _creatable(
        self, function: hardware.Function, made: Iterable[_Type]
    ) -> list[hardware.VgpuType]:
        return (
            []
            if self._vgpus([function])
            else [each for each in function.vgpu_types if _left(each, made)]
        )

    def _siblings(
        self, function: hardware.Function
    ) -> list[hardware.Function]:
        card = function.card or function.path
        return [
            each
            for path, each in self._functions.items()
            if card in (path, each.card)
        ]

    def _made(self, parent: str) -> list[_Type]:
        """The type of each mediated device that a parent has made."""
        found = self._functions.get(parent) or self._others[parent]
        types = {each.name: each for each in found.mdev_types}
        return [
            types[(self._tree.root / path / 'mdev_type').readlink().name]
            for path in self.mdevs(parent)
        ]

    def _vgpus(self, functions: Iterable[hardware.Function]) -> list[_Type]:
        """The types that are set."""
        result: list[_Type] = []
        for function in functions:
            if self._shows(function, 'nvidia'):
                now = int(
                    self._tree.read(
                        f'{function.path}/nvidia/current_vgpu_type'
                    )
                )
                result += [
                    each for each in function.vgpu_types if each.number == now
                ]
        return result

    def _show(
        self, parent: str, mdev_type: hardware.MdevType, count: int
    ) -> None:
        path = pathlib.PurePath(parent, 'mdev_supported_types', mdev_type.name)
        if (self._tree.root / path).exists():
            self._tree.write(f'{path}/available_instances', str(count))

    def _shows(self, function: hardware.Function, name: str) -> bool:
        return (self._tree.root / function.path / name).exists()


def _left(wanted: _Type, made: Iterable[_Type]) -> int:
    """How many of a type can be made beside those that are there."""
    left = fractions.Fraction(1)
    for each in made:
        if each.available != wanted.available and not (
            each.is_mixed and wanted.is_mixed
        ):
            return 0
        left -= fractions.Fraction(1, each.available)
    return int(left * wanted.available)
