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

"""Cyborg's database at one moment, as far as it matters here.

The names are those of Cyborg's tables and columns, of its releases 16 and 17.
Texts are as Cyborg's drivers and callers wrote them, and are checked where
they are used.
"""

import datetime
from typing import NamedTuple

#: The revision of Cyborg's schema -> its release.
RELEASES = {'6c77bd6afea5': '16', 'b47c8f2d1e3a': '17'}


class Profile(NamedTuple):
    """A row of ``device_profiles``."""

    id: int
    uuid: str
    name: str
    profile_json: str
    description: str | None
    created_at: datetime.datetime | None
    updated_at: datetime.datetime | None


class CyborgDevice(NamedTuple):
    """A row of ``devices``; ``hostname`` is its agent's ``[DEFAULT] host``."""

    id: int
    uuid: str
    type: str
    vendor: str
    model: str
    std_board_info: str | None
    hostname: str
    status: str
    created_at: datetime.datetime | None
    updated_at: datetime.datetime | None


class ControlPath(NamedTuple):
    """A row of ``controlpath_ids``: a device's own PCI address."""

    device_id: int
    cpid_info: str


class CyborgDeployable(NamedTuple):
    """A row of ``deployables``; ``rp_uuid`` is its provider in Placement."""

    id: int
    uuid: str
    name: str
    device_id: int
    num_accelerators: int
    rp_uuid: str | None
    driver_name: str | None
    bitstream_id: str | None


class Attribute(NamedTuple):
    """A row of ``attributes``; ``rc`` is a resource class, ``trait0`` ..."""

    deployable_id: int
    key: str
    value: str


class Handle(NamedTuple):
    """A row of ``attach_handles``."""

    id: int
    uuid: str
    deployable_id: int
    attach_type: str
    attach_info: str


class CyborgArq(NamedTuple):
    """A row of ``extended_accelerator_requests``."""

    uuid: str
    project_id: str | None
    state: str
    device_profile_id: int
    device_profile_group_id: int
    hostname: str | None
    device_rp_uuid: str | None
    instance_uuid: str | None
    attach_handle_id: int | None
    created_at: datetime.datetime | None
    updated_at: datetime.datetime | None


class Snapshot(NamedTuple):
    """All rows, as one transaction saw them."""

    profiles: tuple[Profile, ...] = ()
    devices: tuple[CyborgDevice, ...] = ()
    controlpath_ids: tuple[ControlPath, ...] = ()
    deployables: tuple[CyborgDeployable, ...] = ()
    attributes: tuple[Attribute, ...] = ()
    handles: tuple[Handle, ...] = ()
    arqs: tuple[CyborgArq, ...] = ()
