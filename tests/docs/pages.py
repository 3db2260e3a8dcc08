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

"""The pages of the manual, read without building it.

docutils reads the pages. It knows nothing of Sphinx, so roles and directives
of Sphinx have stand-ins here, which keep the words and leave the rest out.
"""

from collections.abc import Iterator
import dataclasses
import functools
import pathlib
import re
from typing import Any

from docutils import core
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.parsers.rst import directives
from docutils.parsers.rst import roles

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / 'doc/source'

#: Directives of Sphinx and its extensions whose results are not read here.
_IGNORED = (
    'image',
    'figure',
    'include',
    'literalinclude',
    'release-notes',
    'show-options',
    'show-policy',
    'toctree',
)

_ROLES = ('doc', 'download', 'ref', 'term')

#: ``text <target>`` of a role.
_TITLED = re.compile(r'(?s)(?P<title>.+?)\s*<[^<>]+>$')


class _Nothing(Directive):
    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = None

    def run(self) -> list[nodes.Node]:
        return []


class _Contents(_Nothing):
    """The words below the directive, as if it was not there."""

    def run(self) -> list[nodes.Node]:
        result = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, result)
        return [result]


class _Code(_Nothing):
    """A block with its language."""

    def run(self) -> list[nodes.Node]:
        text = '\n'.join(
            line for line in self.content if not re.match(r':\w+: ', line)
        )
        language = self.arguments[0] if self.arguments else ''
        result = nodes.literal_block(text, text, language=language)
        result.line = self.lineno
        return [result]


def _role(
    name: str, rawtext: str, text: str, *_unused: Any, **_also: Any
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    titled = _TITLED.match(text)
    words = titled['title'] if titled else text.rpartition('/')[2]
    return [nodes.inline(rawtext, words, role=name)], []


def _register() -> None:
    class Any_(dict[str, Any]):
        def __getitem__(self, _name: str) -> Any:
            return directives.unchanged

        def __contains__(self, _name: object) -> bool:
            return True

        def __bool__(self) -> bool:
            return True

    for kind in (_Nothing, _Contents, _Code):
        kind.option_spec = Any_()
    for name in _IGNORED:
        directives.register_directive(name, _Nothing)
    directives.register_directive('glossary', _Contents)
    directives.register_directive('code-block', _Code)
    for name in _ROLES:
        roles.register_local_role(name, _role)


@dataclasses.dataclass(frozen=True)
class Page:
    """A page: its path below the source, without the ending; its tree."""

    name: str
    tree: nodes.document

    def blocks(self, language: str) -> Iterator[tuple[int, str]]:
        """(line, text) of the code blocks in that language."""
        for block in self.tree.findall(nodes.literal_block):
            if block.get('language') == language:
                yield block.line or 0, block.rawsource

    def literals(self) -> Iterator[str]:
        """What stands between double backticks."""
        for literal in self.tree.findall(nodes.literal):
            yield re.sub(r'\s+', ' ', literal.astext())

    def paragraphs(self) -> Iterator[str]:
        """Texts in sentences; a literal begins with a backtick."""
        yield from self._texts(nodes.paragraph)

    def words(self) -> int:
        """How many a reader sees, without blocks."""
        return sum(
            len(text.split())
            for text in self._texts(
                nodes.paragraph, nodes.term, nodes.title, nodes.caption
            )
        )

    def _texts(self, *kinds: type[nodes.Node]) -> Iterator[str]:
        for kind in kinds:
            for found in self.tree.findall(kind):
                yield re.sub(
                    r'\s+',
                    ' ',
                    ''.join(
                        f'`{part.astext()}'
                        if isinstance(part.parent, nodes.literal)
                        else part.astext()
                        for part in found.findall(nodes.Text)
                    ),
                )


def _read(path: pathlib.Path) -> Page:
    return Page(
        str(path.relative_to(SOURCE).with_suffix('')),
        core.publish_doctree(
            path.read_text(),
            source_path=str(path),
            settings_overrides={
                'report_level': 5,
                'smart_quotes': False,
                'syntax_highlight': 'none',
            },
        ),
    )


@functools.cache
def all_pages() -> dict[str, Page]:
    """Name -> page, in the order of their names."""
    _register()
    return {
        page.name: page
        for page in map(
            _read,
            sorted(
                path
                for path in SOURCE.rglob('*.rst')
                if not path.name.endswith('.inc.rst')
            ),
        )
    }
