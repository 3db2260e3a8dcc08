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

"""The devices that the findings of hosts are about."""

from collections.abc import Iterator
import dataclasses

from nova_accel.model import finding
from nova_accel.model.fleet import fleet_sources


def place(ours: fleet_sources.Ours) -> Iterator[finding.Finding]:
    """The findings of all hosts with their devices, in the given order."""
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
        where = found.hostname or '', found.device or found.instance_uuid or ''
        yield dataclasses.replace(found, devices=tuple(places.get(where, ())))
