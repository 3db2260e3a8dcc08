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

"""The slice of a card that one unit takes, on a card of many shapes.

Such a card offers more units than it can make at a time: each shape at each
place where the card can make it. The slices say which units exclude each
other.
"""

import dataclasses
from typing import Any

from nova_accel.model import decoding

#: The size of a whole card. It can be divided by all numbers up to 16, and by
#: 20, 24, 28, 32, 48 and 64, the numbers of units that cards make.
WHOLE_CARD = 2882880

#: The regular expression of the whole name of a shape.
SHAPE_PATTERN = r'whole|mig:[1-9]g\.[1-9][0-9]{0,3}gb|vgpu:[!-~][ -~]{0,199}'

#: Names of shapes, for error texts.
SHAPE_EXAMPLES = 'whole, or such as mig:3g.40gb or "vgpu:NVIDIA A40-12Q"'

#: The mode of a card that a guest has as a whole.
WHOLE = 'whole'

#: The mode of a card that is divided into GPU instances.
MIG = 'mig'

#: The kind of the shapes of vGPUs. A card makes vGPUs of one type at a time,
#: so its mode is then the shape.
VGPU = 'vgpu'


@dataclasses.dataclass(frozen=True, order=True)
class CardSlice:
    """The slice of a card that a unit takes.

    ``shape`` is the name of the unit's shape, such as ``mig:3g.40gb``. All
    units of a card are in one ``mode`` at a time. ``start`` and ``size`` are
    on the axis of the card's memory, in parts of :data:`WHOLE_CARD`.
    """

    shape: str
    mode: str
    start: int
    size: int

    @property
    def end(self) -> int:
        return self.start + self.size

    def excludes(self, other: 'CardSlice') -> bool:
        """Whether a card cannot have both at a time."""
        return self.mode != other.mode or (
            self.start < other.end and other.start < self.end
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, for the journal and between the planes."""
        return dataclasses.asdict(self)


def from_dict(value: Any) -> CardSlice:
    """The reverse of :meth:`CardSlice.to_dict`.

    :raises Malformed: the value is no slice of a card.
    """
    field = decoding.Fields(value)
    start = field('start', decoding.integer(0, WHOLE_CARD - 1))
    return CardSlice(
        field('shape', decoding.name),
        field('mode', decoding.name),
        start,
        field('size', decoding.integer(1, WHOLE_CARD - start)),
    )
