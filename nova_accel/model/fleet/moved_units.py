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


"""The owners of all units, as they would be after some moves."""

from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from nova_accel.model.fleet import fleet_sources


def after(
    ours: fleet_sources.Ours, moves: Iterable[Mapping[str, Any]]
) -> fleet_sources.Ours:
    """The view of the database after moves, as the API plans them.

    A server gets free units of the devices that its move names. The room that
    a card of many shapes has for others stays as it is now.
    """
    units = list(ours.units)
    for move in moves:
        arqs = []
        for number, unit in enumerate(units):
            arq = unit.arq
            if (
                arq is not None
                and arq.instance_uuid == move['server_uuid']
                and arq.hostname == move['from']
            ):
                arqs.append(arq)
                units[number] = unit._replace(arq=None)
        given = {
            device['device_uuid']: device['units']
            for device in move['devices']
        }
        for number, unit in enumerate(units):
            if unit.arq is None and given.get(unit.device_uuid):
                suiting = [
                    arq
                    for arq in arqs
                    if arq.resource_class == unit.resource_class
                ]
                if suiting and unit.condition.reason() is None:
                    arqs.remove(suiting[0])
                    given[unit.device_uuid] -= 1
                    units[number] = unit._replace(
                        arq=suiting[0]._replace(hostname=move['to'])
                    )
    return ours._replace(units=units)
