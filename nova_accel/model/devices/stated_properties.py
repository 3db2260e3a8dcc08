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

"""Read the properties of an image, within bounds.

Anybody who may change an image in Glance may write any text of up to 64 KiB
into its properties. A text passes this module only if it is short, printable
and of the expected form.
"""

from collections.abc import Mapping
from typing import Any
import uuid

from nova_accel import exceptions

#: The longest text, in characters; Glance's own limit for names.
MAX_LENGTH = 255

#: The longest signature, in characters. A 16,384-bit RSA signature in base64
#: is shorter.
MAX_SIGNATURE_LENGTH = 4096

#: The most functions of a bitstream.
MAX_FUNCTIONS = 16


class Stated:
    """The properties of one image.

    :param image: the image's id, for error texts
    """

    def __init__(self, image: str, properties: Mapping[str, Any]) -> None:
        self._image = image
        self._properties = properties

    def text(self, name: str, max_length: int = MAX_LENGTH) -> str | None:
        """A property without surrounding blanks, None if it is empty.

        :raises BitstreamRefused: it is too long, or cannot be printed.
        """
        value = self._properties.get(name)
        text = '' if value is None else str(value).strip()
        if len(text) > max_length:
            raise self._refused(
                name, f'has {len(text)} characters, {max_length} are allowed'
            )
        if not text.isprintable():
            raise self._refused(
                name, f'has a character that cannot be printed: {text!a}'
            )
        return text or None

    def uuid(self, name: str) -> str | None:
        """A property that is a uuid, in canonical form, None if it is empty.

        :raises BitstreamRefused: it is not a uuid.
        """
        text = self.text(name)
        return None if text is None else self._uuid(name, text)

    def uuids(self, name: str, most: int) -> tuple[str, ...]:
        """A property of uuids with commas between them, each once.

        :raises BitstreamRefused: one is malformed, or there are more than
            ``most``.
        """
        # The longest form of a uuid has braces and a URN's prefix.
        text = self.text(name, most * 64) or ''
        found = dict.fromkeys(
            self._uuid(name, part) for part in text.split(',') if part.strip()
        )
        if len(found) > most:
            raise self._refused(
                name, f'has {len(found)} uuids, {most} are allowed'
            )
        return tuple(found)

    def _uuid(self, name: str, text: str) -> str:
        try:
            return str(uuid.UUID(text.strip()))
        except ValueError:
            raise self._refused(
                name, f'has to be a uuid, not {text.strip()[:64]!a}'
            ) from None

    def _refused(self, name: str, why: str) -> exceptions.BitstreamRefused:
        return exceptions.BitstreamRefused(
            f'bitstream {self._image}: the property {name} of its image '
            f'{why}; correct it with "openstack image set --property '
            f'{name}=... {self._image}"'
        )
