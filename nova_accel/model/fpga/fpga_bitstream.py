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

"""Bitstreams: how one is asked for, and what an image says of one.

A bitstream is an image in Glance. Its properties describe it, under Cyborg's
names: ``vendor``, ``board``, ``shell_id``, ``region_uuid``, ``function_uuid``,
``function_name``. One name is our own: ``provides_shell_id``, of an image that
is the static part of a card. All who may change an image may write anything
there, see :mod:`nova_accel.model.devices.stated_properties`.
"""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
from typing import Any
import uuid

from nova_accel.model.devices import programmable
from nova_accel.model.devices import stated_properties

#: The tag of images that are bitstreams.
TAG = 'FPGA'


@dataclasses.dataclass(frozen=True)
class WantedBitstream:
    """A bitstream by its id, or by a function: one of the three is set.

    ``bitstream_id`` is the uuid of an image, ``function_id`` that of a
    function.
    """

    bitstream_id: str | None = None
    function_id: str | None = None
    function_name: str | None = None

    def __str__(self) -> str:
        if self.bitstream_id is not None:
            return f'bitstream {self.bitstream_id}'
        if self.function_id is not None:
            return f'function {self.function_id}'
        return f'function {self.function_name!r}'

    def is_met_by(self, bitstream: 'Bitstream') -> bool:
        """Whether the bitstream is that image, or has that function."""
        if self.bitstream_id is not None:
            return bitstream.id == self.bitstream_id
        if self.function_id is not None:
            return self.function_id in bitstream.function_uuids
        return bitstream.function_name == self.function_name


@dataclasses.dataclass(frozen=True)
class Signature:
    """The signature of an image, in Nova's and Glance's terms, all as text.

    Parts that the image does not have are None.
    """

    signature: str | None
    hash_method: str | None
    key_type: str | None
    certificate_uuid: str | None


@dataclasses.dataclass(frozen=True)
class Bitstream:
    """A bitstream, as its image in Glance describes it.

    ``size`` is in bytes. ``hash_value`` is Glance's own hash of the data in
    lower-case hexadecimal, ``hash_algorithm`` the algorithm's name in hashlib.
    ``shell_id`` is the shell that the bitstream needs, ``provides_shell_id``
    the one that it is itself. ``owner`` is as for
    :class:`nova_accel.model.devices.programmable.Contents`. Other values are
    None, or empty, if the image does not state them.
    """

    id: str
    name: str
    size: int
    status: str = 'active'
    hash_algorithm: str | None = None
    hash_value: str | None = None
    vendor: str | None = None
    board: str | None = None
    shell_id: str | None = None
    region_uuid: str | None = None
    function_uuids: tuple[str, ...] = ()
    function_name: str | None = None
    signature: Signature | None = None
    provides_shell_id: str | None = None
    owner: str | None = programmable.UNKNOWN_OWNER

    def __str__(self) -> str:
        return f'{self.name!r} ({self.id})'


def from_image(
    image: Mapping[str, Any], operator_projects: Collection[str] = ()
) -> Bitstream:
    """The bitstream that an image describes, from Nova's image API.

    A bitstream with several functions states their uuids separated by commas.

    An image is the operator's if one of the operator's projects owns it, or if
    it is public: Glance lets only administrators publish images.

    :param operator_projects: the ids of the operator's projects
    :raises BitstreamRefused: a property has a value that is not allowed; the
        text names the image, the property and the cure.
    """
    image_id = canonical(str(image['id']))
    stated = stated_properties.Stated(image_id, image.get('properties') or {})
    hash_value = image.get('os_hash_value')
    provides_shell_id = stated.text('provides_shell_id')
    owner = str(image.get('owner') or programmable.UNKNOWN_OWNER)
    return Bitstream(
        id=image_id,
        name=stated.text('bs-name')
        or str(image.get('name') or '')[: stated_properties.MAX_LENGTH],
        size=int(image.get('size') or 0),
        status=str(image.get('status')),
        hash_algorithm=image.get('os_hash_algo') or None,
        hash_value=str(hash_value).lower() if hash_value else None,
        vendor=stated.text('vendor'),
        board=stated.text('board'),
        shell_id=stated.text('shell_id'),
        region_uuid=stated.uuid('region_uuid'),
        function_uuids=stated.uuids(
            'function_uuid', stated_properties.MAX_FUNCTIONS
        ),
        function_name=stated.text('function_name'),
        signature=_signature(
            stated.text(
                'img_signature', stated_properties.MAX_SIGNATURE_LENGTH
            ),
            stated.text('img_signature_hash_method'),
            stated.text('img_signature_key_type'),
            stated.text('img_signature_certificate_uuid'),
        ),
        provides_shell_id=(provides_shell_id and canonical(provides_shell_id)),
        owner=(
            None
            if image.get('is_public') is True or owner in operator_projects
            else owner
        ),
    )


def from_circuit(circuit: programmable.Circuit) -> Bitstream:
    """The bitstream that a region held before, as far as that is known."""
    return Bitstream(
        circuit.bitstream_id,
        circuit.bitstream_id,
        size=0,
        function_uuids=circuit.function_uuids,
        owner=circuit.owner,
    )


def _signature(*parts: str | None) -> Signature | None:
    return Signature(*parts) if any(parts) else None


def canonical(text: str) -> str:
    """A uuid in its canonical form; any other text as it is."""
    try:
        return str(uuid.UUID(text.strip()))
    except ValueError:
        return text.strip()
