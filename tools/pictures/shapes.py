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

"""Pictures whose shapes are written down one by one, as elements of SVG.

The first line has the width and the height, as ``<!-- 800 690 -->``. The
classes of the elements are those of :data:`pictures.canvas.STYLE`.
"""

import re

from pictures import canvas

_SIZE = re.compile(r'<!-- (\d+) (\d+) -->\n')


def svg(source: str) -> str:
    """:raises ValueError: the first line has no size"""
    if (size := _SIZE.match(source)) is None:
        raise ValueError('the first line has no size')
    return canvas.picture(int(size[1]), int(size[2]), source[size.end() :])
