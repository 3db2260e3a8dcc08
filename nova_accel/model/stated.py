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

"""Reads what an image says of itself, with bounds.

Anybody who may change an image in Glance may write any text of up to 64 KiB
into its properties. A text goes no further than here unless it is short, can
be printed, and is what it has to be.
"""

from collections.abc import Mapping
import re
from typing import Any
import uuid

from nova_accel import exceptions

#: Characters of a text; Glance's own limit for a name.
MAX_LENGTH = 255

#: Characters of a signature: base64 of that of an RSA key of 16,384 bits is
#: shorter.
MAX_SIGNATURE_LENGTH = 4096

#: Functions that a bitstream may have.
MAX_FUNCTIONS = 16

_CANONICAL = re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')


def is_uuid(value: object) -> bool:
    """Whether it is the canonical form of one."""
    return (isinstance(value, str)
            and _CANONICAL.fullmatch(value) is not None)


class Stated:
    """The properties of one image.

    :param image: its id, for faults
    """

    def __init__(self, image: str, properties: Mapping[str, Any]) -> None:
        self._image = image
        self._properties = properties

    def text(self, name: str, max_length: int = MAX_LENGTH) -> str | None:
        """A property without the space around it, None if it is empty.

        :raises BitstreamRefused: it is too long, or cannot be printed.
        """
        value = self._properties.get(name)
        text = '' if value is None else str(value).strip()
        if len(text) > max_length:
            raise self._refused(
                name, f'has {len(text)} characters, {max_length} are allowed')
        if not text.isprintable():
            raise self._refused(
                name, f'has a character that cannot be printed: {text!a}')
        return text or None

    def uuid(self, name: str) -> str | None:
        """A property that is a uuid, in canonical form.

        :raises BitstreamRefused: it is none.
        """
        text = self.text(name)
        return None if text is None else self._uuid(name, text)

    def uuids(self, name: str, most: int) -> tuple[str, ...]:
        """A property of uuids with commas between them, each once.

        :raises BitstreamRefused: one is none, or there are more than ``most``.
        """
        # None is longer than with the braces and the prefix of a URN.
        text = self.text(name, most * 64) or ''
        found = dict.fromkeys(self._uuid(name, part)
                              for part in text.split(',') if part.strip())
        if len(found) > most:
            raise self._refused(
                name, f'has {len(found)} uuids, {most} are allowed')
        return tuple(found)

    def _uuid(self, name: str, text: str) -> str:
        try:
            return str(uuid.UUID(text.strip()))
        except ValueError:
            raise self._refused(
                name, f'has to be a uuid, not {text.strip()[:64]!a}') from None

    def _refused(self, name: str, why: str) -> exceptions.BitstreamRefused:
        return exceptions.BitstreamRefused(
            f'bitstream {self._image}: the property {name} of its image '
            f'{why}; correct it with "openstack image set --property '
            f'{name}=... {self._image}"')
