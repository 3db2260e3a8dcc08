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

"""Texts for people, from the words of hardware and other programs."""

from collections.abc import Sequence

#: How many characters of a reason are reported to the API.
MAX_LENGTH = 1023


def some(names: Sequence[str], most: int) -> str:
    """The first of the names, such as "a, b and 2 more"."""
    more = len(names) - most
    text = ', '.join(names[:most])
    return f'{text} and {more} more' if more > 0 else text


def sanitize(text: str, max_length: int = MAX_LENGTH) -> str:
    """The text cut to a length, with ``?`` for what the API refuses.

    No database stores half of a surrogate pair, which Python makes of bytes in
    sysfs that are not UTF-8. PostgreSQL does not store NUL.
    """
    return (
        text[:max_length]
        .replace('\0', '?')
        .encode('utf-8', 'replace')
        .decode()
    )


def printable(text: str) -> str:
    """The text with control characters written as escapes, such as ``\\n``.

    So a client's text can safely be returned and logged.
    """
    if text.isprintable():
        return text
    return ''.join(
        character
        if character.isprintable()
        else character.encode('unicode_escape').decode()
        for character in text
    )
