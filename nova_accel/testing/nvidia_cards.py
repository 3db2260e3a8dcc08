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

"""Cards of NVIDIA, as the imitation of their tool has them.

An H100 with its profiles of GPU instances and its vGPU types; other cards are
made with others.
"""

from collections.abc import Sequence
import dataclasses
from typing import NamedTuple


class Profile(NamedTuple):
    """A profile of GPU instances, with slices of computing and of memory."""

    number: int
    name: str
    compute: int
    size: int
    starts: tuple[int, ...]


class VgpuType(NamedTuple):
    """A vGPU type; ``profile`` is that of the GPU instance that it needs."""

    number: int
    name: str
    most: int
    profile: int | None = None


#: The profiles of an H100 with 80 GB, as it prints them.
H100 = (
    Profile(19, '1g.10gb', 1, 1, (0, 1, 2, 3, 4, 5, 6)),
    Profile(20, '1g.10gb+me', 1, 1, (0, 1, 2, 3, 4, 5, 6)),
    Profile(15, '1g.20gb', 1, 2, (0, 2, 4, 6)),
    Profile(14, '2g.20gb', 2, 2, (0, 2, 4)),
    Profile(9, '3g.40gb', 3, 4, (0, 4)),
    Profile(5, '4g.40gb', 4, 4, (0,)),
    Profile(0, '7g.80gb', 7, 8, (0,)),
)

#: Types of an H100; their numbers are not the real ones.
H100_TYPES = (
    VgpuType(1121, 'NVIDIA H100-1-10C', 7, 19),
    VgpuType(1122, 'NVIDIA H100-1-10CME', 1, 20),
    VgpuType(1123, 'NVIDIA H100-1-20C', 4, 15),
    VgpuType(1124, 'NVIDIA H100-2-20C', 3, 14),
    VgpuType(1125, 'NVIDIA H100-3-40C', 2, 9),
    VgpuType(1126, 'NVIDIA H100-4-40C', 1, 5),
    VgpuType(1127, 'NVIDIA H100-7-80C', 1, 0),
    VgpuType(1130, 'NVIDIA H100-5C', 16),
    VgpuType(1131, 'NVIDIA H100-20C', 4),
    VgpuType(1132, 'NVIDIA H100-40C', 2),
    VgpuType(1133, 'NVIDIA H100-80C', 1),
)


@dataclasses.dataclass(frozen=True)
class Instance:
    """A GPU instance of a simulated card."""

    number: int
    profile: Profile
    start: int

    @property
    def slices(self) -> frozenset[int]:
        return frozenset(range(self.start, self.start + self.profile.size))


@dataclasses.dataclass
class Card:
    """A card, which a test may change.

    ``is_on`` is its MIG mode, and ``pending`` the mode after a reboot.
    ``keeps_mode`` says that it has the mode over a reboot. ``processes`` have
    it open, so it cannot change its mode now. ``needs_no_functions`` says that
    it cannot while it has virtual functions, either; ``are_functions`` says
    whether it has them. ``driver`` is its driver of the kernel. ``refusals``
    is what the tool answers to an option, instead of doing it.
    """

    address: str
    functions: Sequence[str]
    profiles: Sequence[Profile] = H100
    types: Sequence[VgpuType] = H100_TYPES
    has_mig: bool = True
    is_on: bool = False
    pending: bool = False
    keeps_mode: bool = False
    processes: int = 0
    needs_no_functions: bool = False
    are_functions: bool = True
    driver: str = 'nvidia'
    is_root: bool = True
    instances: dict[int, Instance] = dataclasses.field(default_factory=dict)
    computing: set[int] = dataclasses.field(default_factory=set)
    vgpus: dict[str, tuple[VgpuType, int | None]] = dataclasses.field(
        default_factory=dict
    )
    refusals: dict[str, tuple[int, str]] = dataclasses.field(
        default_factory=dict
    )

    def fitting(self) -> list[VgpuType]:
        """The types that one more function can get now."""
        used = [type_ for type_, _instance in self.vgpus.values()]
        if self.is_on:
            free = {each.profile.number for each in self.free()}
            return [each for each in self.types if each.profile in free]
        return [
            each
            for each in self.types
            if each.profile is None
            and (not used or each.number == used[0].number)
            and len(used) < each.most
        ]

    def attributes(self, function: str) -> dict[str, str]:
        """The attributes of a function in sysfs; ``__`` stands for ``/``."""
        type_, instance = self.vgpus.get(function, (None, None))
        types = [f'{each.number:<6}: {each.name}' for each in self.fitting()]
        return {
            'nvidia__current_vgpu_type': str(type_.number if type_ else 0),
            'nvidia__creatable_vgpu_types': '\n'.join(
                [] if type_ else ['ID    : vGPU Name', *types]
            ),
            'nvidia__gpu_instance_id': (
                '' if instance is None else str(instance)
            ),
        }

    def free(self) -> list[Instance]:
        """The GPU instances without a vGPU."""
        used = [number for _type, number in self.vgpus.values()]
        return [
            self.instances[number]
            for number in sorted(self.instances)
            if number not in used and number in self.computing
        ]
