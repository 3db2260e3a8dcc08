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

"""Draws all pictures of the manual that have a text.

The manual runs this. By hand: ``python -m pictures.all_pictures DIRECTORY``.
"""

import pathlib
import sys

from pictures import provider_tree
from pictures import sequence
from pictures import shapes

SOURCE = pathlib.Path(__file__).parents[2] / 'doc/source/_pictures'

#: How a file is drawn, by its ending.
DRAWN_BY = {
    '.sequence': sequence.svg,
    '.shapes': shapes.svg,
    '.tree': provider_tree.svg,
}


def draw(directory: pathlib.Path) -> None:
    """Write an SVG file for each text.

    :raises ValueError: a text cannot be drawn; names it
    """
    for path in sorted(SOURCE.iterdir()):
        try:
            drawn = DRAWN_BY[path.suffix](path.read_text())
        except ValueError as error:
            raise ValueError(f'{path.name}: {error}') from error
        (directory / f'{path.stem}.svg').write_text(drawn)


if __name__ == '__main__':
    draw(pathlib.Path(sys.argv[1]))
