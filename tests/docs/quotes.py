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

"""Texts that programs print, and texts that the manual quotes.

Both have parts that vary: ``<uuid>`` and ``...`` in a quote, the expressions
of an f-string and ``%s`` in the code. A quote is found if some text of the
code can be that text, or contain it.
"""

import ast
import collections
from collections.abc import Iterable
import functools
import pathlib
import re

#: The words of a text.
Text = tuple[str, ...]

#: What varies in a word.
_ANY = '\0'

#: The expressions of an f-string, and the places of %-formats.
_PLACES = re.compile(r'%\(\w+\)[sdr]|%[sdr]')

#: After these a text may be another one's.
_JOINTS = ':;,('

_PLAIN = re.compile(r"[(\"]*[A-Za-z]+('[a-z]+)?[.,:;)\"]*")

_VARIABLE = re.compile(r'<[^<>]+>|\.\.\.')


def _text(node: ast.expr) -> str | None:
    """A string of the code, with ``_ANY`` for what varies."""
    match node:
        case ast.Constant(value=str() as value):
            return _PLACES.sub(_ANY, value)
        case ast.JoinedStr(values=values):
            return ''.join(
                part.value
                if isinstance(part, ast.Constant)
                and isinstance(part.value, str)
                else _ANY
                for part in values
            )
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            parts = [_text(left), _text(right)]
            return ''.join(_ANY if each is None else each for each in parts)
    return None


class Texts:
    """All texts of some files, and where each word is."""

    def __init__(self, paths: Iterable[pathlib.Path]) -> None:
        self._of_word: dict[str, set[Text]] = collections.defaultdict(set)
        for path in paths:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.expr):
                    words = tuple((_text(node) or '').split())
                    for word in words:
                        self._of_word[_bare(word)].add(words)

    def has(self, quote: str) -> bool:
        """Whether a program can say that, at once or as parts it joins."""
        return self._is_made(_words(quote))

    def _is_made(self, wanted: Text) -> bool:
        """Whether it is in a text, or begins in one and the rest is made."""
        if self._is_one(wanted):
            return True
        return any(
            self._is_one(wanted[:end]) and self._is_made(wanted[end:])
            for end in range(len(wanted) - 1, 1, -1)
            if min(_count(wanted[:end]), _count(wanted[end:]))
            > (1 if wanted[end - 1][-1] in _JOINTS else 2)
        )

    def _is_one(self, wanted: Text) -> bool:
        wanted = _trimmed(wanted)
        of_each = [
            self._of_word.get(_bare(word), set())
            for word in wanted
            if _is_plain(word)
        ]
        return not of_each or any(
            _agree(wanted, text) for text in set.intersection(*of_each)
        )


def _count(words: Text) -> int:
    return sum(map(_is_plain, words))


def _words(quote: str) -> Text:
    return _trimmed(tuple(_VARIABLE.sub(_ANY, quote).split()))


def _trimmed(words: Text) -> Text:
    """The words from the first plain one to the last."""
    plain = [place for place, word in enumerate(words) if _is_plain(word)]
    return words[plain[0] : plain[-1] + 1] if plain else ()


def _is_plain(word: str) -> bool:
    """Whether it is a word, and no value that may vary."""
    return _PLAIN.fullmatch(word) is not None


def _agree(wanted: Text, text: Text) -> bool:
    """Whether the words are a part of the text, or can be."""

    @functools.cache
    def ends(at: int, place: int) -> bool:
        if at == len(wanted):
            return True
        if place == len(text):
            return False
        word = wanted[at]
        if _fits(word, text[place]) and ends(at + 1, place + 1):
            return True
        # What varies may be several words, or none.
        return (
            ((text[place] == _ANY or _ANY in word) and ends(at, place + 1))
            or (
                not _is_plain(word)
                and _ANY in text[place]
                and ends(at + 1, place)
            )
            or (_ANY in word and ends(at + 1, place))
        )

    return any(ends(0, place) for place in range(len(text)))


def _bare(word: str) -> str:
    return word.strip('.,:;"()')


def _fits(wanted: str, word: str) -> bool:
    """Whether two words can be the same."""
    if _is_plain(wanted):
        return _bare(wanted) == _bare(word)
    if _ANY in wanted:
        wanted, word = word, wanted
    if _ANY in wanted:
        return True
    parts = map(re.escape, _bare(word).split(_ANY))
    return re.fullmatch('.*'.join(parts), _bare(wanted)) is not None
