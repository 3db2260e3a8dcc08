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

"""Regions of FPGAs: what is programmed at once, and what they hold.

A card that cannot be programmed in parts is one region. What a region holds
is known from its host's journal, never guessed: :class:`Contents` is what was
programmed, verified and read back.
"""

import dataclasses

#: The name of what a card's regions are in, its static part.
SHELL = 'shell'

#: The owner of an image of which nobody remembers whose it was.
UNKNOWN_OWNER = ''


@dataclasses.dataclass(frozen=True)
class Region:
    """A part of a card.

    ``name`` is unique within the device. ``type_uuid`` says which bitstreams
    fit, ``shell_id`` is that of the card's static part; None if the card does
    not say. ``contents_attribute`` is the attribute of the card in sysfs that
    the operator trusts to tell what is loaded. ``is_shell`` says that it is no
    region but the static part, with which all regions are replaced.
    """

    name: str
    type_uuid: str | None = None
    shell_id: str | None = None
    contents_attribute: str | None = None
    is_shell: bool = False


@dataclasses.dataclass(frozen=True)
class Circuit:
    """A circuit that a region can get again, without asking Glance.

    Its parts are those of :class:`Contents`.
    """

    bitstream_id: str
    sha256: str
    function_uuids: tuple[str, ...] = ()
    owner: str | None = UNKNOWN_OWNER


@dataclasses.dataclass(frozen=True)
class Contents:
    """What a region holds.

    ``bitstream_id`` is the uuid of the image in Glance, ``sha256`` the hash
    of its bytes in hexadecimal, ``function_uuids`` what it does, as far as it
    says. ``loaded`` is what the device said of itself when it had just been
    programmed (see :meth:`nova_accel.drivers.base.Driver.loaded`): as long as
    it says the same, the region holds the same. ``is_shell`` is as for
    :class:`Region`. ``owner`` is the id of the project whose image it is, None
    if it is the operator's, :data:`UNKNOWN_OWNER` if nobody remembers.
    """

    bitstream_id: str
    sha256: str
    loaded: str
    function_uuids: tuple[str, ...] = ()
    is_shell: bool = False
    owner: str | None = UNKNOWN_OWNER
