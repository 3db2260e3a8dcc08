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

"""Texts for people, made of what hardware and other programs say."""

#: Characters of a reason that are told to the API.
MAX_LENGTH = 1023


def told(text: str, max_length: int = MAX_LENGTH) -> str:
    """The text as the API takes it, cut and with what it refuses as ``?``.

    No database has half of a surrogate pair (bytes of sysfs that are no
    UTF-8), and PostgreSQL no NUL.
    """
    return (text[:max_length].replace('\0', '?')
            .encode('utf-8', 'replace').decode())


def printable(text: str) -> str:
    """The text with what ends lines, or moves a cursor, as ``\\n`` is written.

    So a text that a client has sent can be told and logged.
    """
    return ''.join(
        character if character.isprintable()
        else character.encode('unicode_escape').decode()
        for character in text)
