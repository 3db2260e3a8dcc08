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

"""Pages and sentences are short enough to be read once."""

import re

import testtools

from docs import pages

#: The most words of a page for operators and users, with those of its tables.
_PAGE = 1200

#: The most words of a sentence.
_SENTENCE = 35

#: Pages for those who know what they look for, in any length.
_REFERENCE = ('contributor/', 'reference/')

#: The beginning of a sentence that may be longer -> why.
_LONG: dict[str, str] = {}

_END = re.compile(r'(?<=[.!?:])["\')]*\s+(?=["(]*[A-Z`0-9])')


def sentences(page: pages.Page) -> list[str]:
    return [
        sentence
        for paragraph in page.paragraphs()
        for sentence in _END.split(paragraph)
    ]


class WordsTest(testtools.TestCase):
    def test_no_page_is_long(self) -> None:
        counts = {
            page.name: page.words()
            for page in pages.all_pages().values()
            if not page.name.startswith(_REFERENCE)
        }
        self.assertEqual(
            {},
            {name: count for name, count in counts.items() if count > _PAGE},
        )

    def test_no_sentence_is_long(self) -> None:
        long = {
            sentence: page.name
            for page in pages.all_pages().values()
            for sentence in sentences(page)
            if len(sentence.split()) > _SENTENCE
        }
        self.assertEqual(
            [],
            [
                f'{page}: {sentence}'
                for sentence, page in long.items()
                if not sentence.startswith(tuple(_LONG))
            ],
        )
        self.assertEqual(
            [],
            [
                beginning
                for beginning in _LONG
                if not any(each.startswith(beginning) for each in long)
            ],
        )
