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

"""Trees of resource providers, drawn from indented lines.

Each line is a provider: its name, its inventory and its traits, separated by
``|``. A provider that is indented is below the one before it::

    compute1 | VCPU: 64
      compute1_accel_qat_8086_4941 | CUSTOM_QAT: 16 | CUSTOM_QAT_SERVICE_SYM
"""

from collections.abc import Sequence
import dataclasses

from pictures import canvas

_MARGIN = 14
_INDENT = 34
_GAP = 12
_LINE = 17


@dataclasses.dataclass(frozen=True)
class _Provider:
    depth: int
    texts: Sequence[str]

    @property
    def height(self) -> float:
        return _LINE * len(self.texts) + 10

    @property
    def width(self) -> float:
        return 22 + max(canvas.room(words) for words in self.texts)


def svg(source: str) -> str:
    providers = [
        _Provider(
            (len(line) - len(line.lstrip())) // 2,
            [part.strip() for part in line.split('|')],
        )
        for line in source.splitlines()
        if line.strip()
    ]
    parts = []
    y = float(_MARGIN)
    # Depth -> where the provider's children are joined.
    bottoms: dict[int, float] = {}
    width = 0.0
    for each in providers:
        x = _MARGIN + _INDENT * each.depth
        if each.depth:
            middle = y + each.height / 2
            stem = x - _INDENT / 2
            parts.append(
                canvas.path(
                    f'M{stem},{bottoms[each.depth - 1]} '
                    f'L{stem},{middle} L{x},{middle}',
                    'join',
                )
            )
        parts.append(_drawn(each, x, y))
        bottoms[each.depth] = y + each.height
        y += each.height + _GAP
        width = max(width, x + each.width)
    return canvas.picture(width + _MARGIN, y, *parts)


def _drawn(provider: _Provider, x: float, y: float) -> str:
    name, *others = provider.texts
    return ''.join(
        (
            canvas.box(
                x,
                y,
                provider.width,
                provider.height,
                'ours' if provider.depth else 'box',
            ),
            canvas.text(x + 10, y + _LINE, name, 'left title'),
            *(
                canvas.text(x + 10, y + _LINE * number, words, 'left small')
                for number, words in enumerate(others, 2)
            ),
        )
    )
