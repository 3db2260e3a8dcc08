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

"""No paragraph and no command was torn when the pages were cut or wrapped."""

from collections.abc import Iterator
import re

from docutils import nodes
import testtools

from docs import pages

#: The end of a sentence, or of what leads to a list or a block.
_ENDED = re.compile(r'[.:?!]["\')]*$')

#: The end of an item whose list is one sentence.
_GOES_ON = (',', ';')

#: A prompt behind a command: the next command, on the same line.
_PROMPT = re.compile(r'\S [#$] [a-z]')

#: Two blanks and more are before a comment.
_COMMENT = re.compile(r'\s{2,}# .*')


def _is_whole(paragraph: nodes.paragraph) -> bool:
    """Whether it ends as sentences do.

    The cells of tables and the items of lists may be words without an end. An
    item of two sentences or more needs one.
    """
    text = paragraph.astext().strip()
    if _ENDED.search(text) or isinstance(paragraph.parent, nodes.entry):
        return True
    if isinstance(paragraph.parent, nodes.list_item):
        return text.endswith(_GOES_ON) or not re.search(r'[.?!] [A-Z]', text)
    # A term of the glossary, whose directive is Sphinx's.
    return isinstance(paragraph.parent, nodes.container)


def torn(page: pages.Page) -> Iterator[str]:
    for paragraph in page.tree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.system_message):
            continue
        if not _is_whole(paragraph):
            yield ' '.join(paragraph.astext().split())[-72:]
    # A number at the end of a sentence, alone on its line.
    for message in page.tree.findall(nodes.system_message):
        if 'Enumerated list start value' in message.astext():
            yield f'line {message["line"]} begins a list with its number'
    for _line, block in page.blocks('console'):
        for line in block.splitlines():
            if _PROMPT.search(_COMMENT.sub('', line)):
                yield line


class TornTest(testtools.TestCase):
    def test_nothing_is_torn(self) -> None:
        self.assertEqual(
            [],
            [
                f'{page.name}: {end}'
                for page in pages.all_pages().values()
                for end in torn(page)
            ],
        )
