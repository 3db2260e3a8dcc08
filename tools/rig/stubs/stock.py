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

"""Free units that nova-scheduler is said to know, without any database."""

import datetime
from typing import Any

from nova_accel.model.units import known_units
from nova_accel.model.units import unit_changes


class Stock:
    """The deployables of all hosts.

    :ivar known: what is known of them
    """

    def __init__(self) -> None:
        self.known = known_units.KnownUnits()
        self._hosts: dict[str, list[unit_changes.ChangedDeployable]] = {}
        self._silent: frozenset[str] = frozenset()

    def add(
        self, hostname: str, rp_uuid: str, free: int = 1, **values: Any
    ) -> None:
        """Add a deployable to a provider; by default an FPGA, all free."""
        here = self._hosts.setdefault(hostname, [])
        here.append(
            unit_changes.ChangedDeployable(
                **{
                    'hostname': hostname,
                    'uuid': f'{rp_uuid}-{len(here)}',
                    'rp_uuid': rp_uuid,
                    'resource_class': 'FPGA',
                    'traits': frozenset(),
                    'device_uuid': f'{hostname}-{rp_uuid}',
                    'numa_node': None,
                    'region': None,
                    'bitstream_id': None,
                    'total': free,
                    'free': free,
                    **values,
                }
            )
        )
        self.tell()

    def silence(self, *hostnames: str) -> None:
        """Have these hosts report no more."""
        self._silent = frozenset(hostnames)
        self.tell()

    def tell(self) -> None:
        """Tell all of it again."""
        self.known.apply(
            unit_changes.Changes(
                datetime.datetime.now(datetime.UTC),
                True,
                self._hosts,
                silent=self._silent,
            ),
            0.0,
        )
