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

"""The findings of all hosts, and where they are."""

from collections.abc import Iterator
import datetime
from typing import NamedTuple

from nova_accel.model import finding
from nova_accel.model.fleet import fleet_sources


class Finding(NamedTuple):
    """A finding of a host; ``since`` is when it first said so.

    ``devices`` are the uuids of the devices that it is about, as far as the
    database has them.
    """

    hostname: str
    since: datetime.datetime
    what: finding.Finding
    devices: tuple[str, ...]

    @property
    def whose(self) -> str:
        """The server or the device, empty if only the words say it."""
        return self.what.instance_uuid or self.what.device or ''

    @property
    def outcome(self) -> str:
        """The host's answer to it, in words."""
        return (
            'the host has repaired it'
            if self.what.is_repaired
            else 'the host leaves it alone'
            if self.what.kind in finding.LEFT_ALONE
            else 'the host has not repaired it'
        )


def find(ours: fleet_sources.Ours) -> Iterator[Finding]:
    """All findings, in the order of the source."""
    if not ours.findings:
        return
    hostnames = {device.uuid: device.hostname for device in ours.devices}
    # Host, and a name of a device, a unit or a server -> devices.
    places: dict[tuple[str, str], dict[str, None]] = {}
    for device in ours.devices:
        places.setdefault((device.hostname, device.address), {})[
            device.uuid
        ] = None
    for unit in ours.units:
        names = [unit.uuid, unit.address]
        if unit.arq is not None and unit.arq.instance_uuid is not None:
            names.append(unit.arq.instance_uuid)
        for name in names:
            places.setdefault((hostnames[unit.device_uuid], name), {})[
                unit.device_uuid
            ] = None
    for found in ours.findings:
        # A device tells more than the server that has it.
        name = found.what.device or found.what.instance_uuid or ''
        yield Finding(*found, tuple(places.get((found.hostname, name), ())))
