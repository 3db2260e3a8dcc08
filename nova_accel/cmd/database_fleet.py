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


"""The fleet as the databases and Placement have it now."""

from collections.abc import Collection
from typing import Any

from nova_accel import conf
from nova_accel.cmd import cells
from nova_accel.cmd import placement_call
from nova_accel.db import fleet as fleet_db
from nova_accel.model.fleet import fleet
from nova_accel.model.fleet import fleet_sources
from nova_accel.overview import reading

CONF = conf.CONF


class _Sources:
    """The sources that a Nova service's configuration leads to."""

    def ours(self) -> fleet_sources.Ours:
        return fleet_db.read(CONF.nova_accel.host_silence_s)

    def nova(
        self, ours: fleet_sources.Ours, consumers: Collection[str]
    ) -> fleet_sources.NovaReading:
        return cells.read(ours.instance_uuids.union(consumers))

    def placement(self, path: str) -> Any:
        return placement_call.call('get', path)


def read(asks_placement: bool = False) -> fleet.Fleet:
    """The fleet, by a number of statements that does not depend on its size.

    :param asks_placement: as for :func:`nova_accel.overview.reading.read`
    :raises ServiceUnavailable: the database of accelerators or Placement does
        not answer
    :raises ConfigurationError: Nova knows of no cell.
    """
    return reading.read(_Sources(), asks_placement)
