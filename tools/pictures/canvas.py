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

"""What all pictures share: colours for light and dark, boxes and arrows.

A picture has a background of its own, so that it can be read on any page.
"""

import html

#: Classes of the manual's pictures. ``ours`` is the code of nova_accel.
STYLE = """\
<style>
  .page { fill: #ffffff }
  .zone { fill: #f3f6fa; stroke: #8497b0; stroke-dasharray: 5 3 }
  .box { fill: #ffffff; stroke: #44546a; stroke-width: 1.2 }
  .ours { fill: #e2efda; stroke: #548235; stroke-width: 1.2 }
  .title { font-weight: bold }
  .small { font-size: 11px; fill: #404040 }
  .pale { stroke: #8497b0; fill: none; stroke-dasharray: 3 4 }
  .line { stroke: #44546a; fill: none; stroke-width: 1.2;
          marker-end: url(#tip) }
  .last { opacity: 0.35 }
  .join { stroke: #8497b0; fill: none; stroke-width: 1.2 }
  .tip { fill: #44546a }
  text { text-anchor: middle; fill: #1b1b1b }
  .left { text-anchor: start }
  .right { text-anchor: end }
  @media (prefers-color-scheme: dark) {
    .page { fill: #16191d }
    .zone { fill: #1d2228; stroke: #66788f }
    .box { fill: #262c34; stroke: #9fb2c8 }
    .ours { fill: #24381f; stroke: #8dbb6d }
    .small { fill: #c4c9cf }
    .pale { stroke: #66788f }
    .line { stroke: #9fb2c8 }
    .last { opacity: 0.35 }
  .join { stroke: #66788f }
    .tip { fill: #9fb2c8 }
    text { fill: #e8eaed }
  }
</style>
"""

_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"
     width="{width}" height="{height}" font-family="sans-serif" font-size="13">
{style}<defs><marker id="tip" markerWidth="9" markerHeight="8" refX="8"
  refY="4" orient="auto"><path class="tip" d="M0,0 L9,4 L0,8 z"/></marker>
</defs>
<rect class="page" x="0" y="0" width="{width}" height="{height}"/>
"""


def picture(width: float, height: float, *parts: str) -> str:
    head = _HEAD.format(width=width, height=height, style=STYLE)
    return ''.join([head, *parts, '</svg>\n'])


def box(
    x: float, y: float, width: float, height: float, style: str = 'box'
) -> str:
    return (
        f'<rect class="{style}" x="{x}" y="{y}" width="{width}" '
        f'height="{height}" rx="4"/>\n'
    )


def text(x: float, y: float, words: str, style: str = '') -> str:
    """``y`` is that of the base line."""
    return (
        f'<text class="{style}" x="{x}" y="{y}">{html.escape(words)}</text>\n'
    )


def path(points: str, style: str = 'line') -> str:
    return f'<path class="{style}" d="{points}"/>\n'


def room(words: str, size: float = 13) -> float:
    """About the width of the words, in pixels."""
    return len(words) * size * 0.54
