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

"""Split a host's report into parts, so that every request is short."""

from collections.abc import Iterable
from collections.abc import Mapping
import json
from typing import Any

from nova_accel.model import bounds

#: The maximum size of a part's devices as JSON, in bytes. The API checks and
#: stores this much within a second. A longer device is a part of its own.
MAX_BYTES = 512 * 1024


def split(
    devices: Iterable[Mapping[str, Any]],
) -> list[list[Mapping[str, Any]]]:
    """The parts, in the order of the devices; at least one.

    :param devices: as from
        :meth:`nova_accel.model.devices.hardware.Device.to_report`
    """
    parts: list[list[Mapping[str, Any]]] = [[]]
    length = 0
    for device in devices:
        own = len(json.dumps(device))
        is_full = (
            len(parts[-1]) == bounds.MAX_DEVICES_OF_PART
            or length + own > MAX_BYTES
        )
        if parts[-1] and is_full:
            parts.append([])
            length = 0
        parts[-1].append(device)
        length += own
    return parts
