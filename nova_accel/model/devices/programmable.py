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

"""Regions of FPGAs, the parts that are programmed as one; their contents.

A card that cannot be programmed in parts is one region. The contents of a
region are known from its host's journal, never guessed: :class:`Contents` were
programmed, verified and read back.
"""

import dataclasses

#: The name of a card's static part, around its regions.
SHELL = 'shell'

#: The owner of an image if no one remembers whose it was.
UNKNOWN_OWNER = ''


@dataclasses.dataclass(frozen=True)
class Region:
    """A part of a card.

    ``name`` is unique within the device. ``type_uuid`` says which bitstreams
    fit, and ``shell_id`` is the id of the card's static part; None if the card
    does not say. ``contents_attribute`` is the card's attribute in sysfs that
    the operator trusts to tell what is loaded. ``is_shell`` marks the static
    part itself; loading it replaces all regions.
    """

    name: str
    type_uuid: str | None = None
    shell_id: str | None = None
    contents_attribute: str | None = None
    is_shell: bool = False


@dataclasses.dataclass(frozen=True)
class Circuit:
    """A circuit that a region can get again, without asking Glance.

    The attributes are as for :class:`Contents`.
    """

    bitstream_id: str
    sha256: str
    function_uuids: tuple[str, ...] = ()
    owner: str | None = UNKNOWN_OWNER


@dataclasses.dataclass(frozen=True)
class Contents:
    """The verified contents of a region.

    ``bitstream_id`` is the uuid of the image in Glance, ``sha256`` the hash of
    its bytes in hexadecimal, ``function_uuids`` its functions, as far as it
    states them. ``loaded`` is the device's own word just after programming,
    see :meth:`nova_accel.drivers.base.Driver.loaded`. As long as the device
    says the same, the region holds the same. ``is_shell`` is as for
    :class:`Region`. ``owner`` is the id of the project that owns the image,
    None if it is the operator's, :data:`UNKNOWN_OWNER` if no one remembers.
    """

    bitstream_id: str
    sha256: str
    loaded: str
    function_uuids: tuple[str, ...] = ()
    is_shell: bool = False
    owner: str | None = UNKNOWN_OWNER
