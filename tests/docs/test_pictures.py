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

"""Pictures are drawn from their texts, and each is on a page."""

import pathlib
from xml.etree import ElementTree as etree

import fixtures
import testtools

from docs import pages
from pictures import all_pictures
from pictures import provider_tree
from pictures import sequence
from pictures import shapes

_SVG = '{http://www.w3.org/2000/svg}'


def _texts(drawn: str) -> list[str | None]:
    # Our own pictures.
    return [each.text for each in etree.fromstring(drawn).iter(f'{_SVG}text')]


class PicturesTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.drawn = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        all_pictures.draw(self.drawn)

    def test_each_is_svg_for_light_and_dark(self) -> None:
        for path in self.drawn.iterdir():
            text = path.read_text()
            self.assertTrue(_texts(text), path.name)
            self.assertIn('prefers-color-scheme: dark', text)

    def test_each_is_shown(self) -> None:
        manual = ''.join(
            path.read_text() for path in pages.SOURCE.rglob('*.rst')
        )
        for path in self.drawn.iterdir():
            self.assertIn(f'_static/{path.name}', manual)

    def test_the_readme_shows_it_as_it_is_drawn(self) -> None:
        """Make it anew with ``python -m pictures.all_pictures doc``."""
        self.assertEqual(
            (self.drawn / 'overview.svg').read_text(),
            (pages.ROOT / 'doc/overview.svg').read_text(),
        )


class SourcesTest(testtools.TestCase):
    def test_a_sequence(self) -> None:
        self.assertEqual(
            ['a', 'b', 'ask', 'thinks'],
            _texts(sequence.svg('a, *b\na -> b: ask\nb: thinks\n')),
        )

    def test_a_sequence_with_somebody_unknown(self) -> None:
        error = self.assertRaises(
            ValueError, sequence.svg, 'a, b\na -> c: ask\n'
        )
        self.assertIn("no one is called 'c'", str(error))

    def test_a_line_that_is_no_step(self) -> None:
        self.assertRaises(ValueError, sequence.svg, 'a, b\nask\n')

    def test_a_tree(self) -> None:
        self.assertEqual(
            ['node', 'node_accel_1', 'VGPU: 4'],
            _texts(provider_tree.svg('node\n  node_accel_1 | VGPU: 4\n')),
        )

    def test_shapes_without_a_size(self) -> None:
        self.assertRaises(ValueError, shapes.svg, '<rect/>')
