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

"""Accelerator requests (ARQs) of other projects in Cyborg's tables."""

from collections.abc import Iterable
import json
from typing import Any

from oslo_utils import uuidutils
import sqlalchemy as sa

from rig.cyborg import services

_PROJECT = 'b' * 32

#: The columns that a binding sets.
_PLACE = (
    'hostname',
    'device_rp_uuid',
    'deployable_id',
    'instance_uuid',
    'attach_handle_id',
)


def fill(engine: sa.Engine, amount: int, already: int) -> None:
    """Bind ARQs until there are so many, as :func:`rig.benchmark.arqs.fill`.

    Each host has one device with as many handles as Cyborg's driver "fake"
    reports. Each handle has an ARQ of the first device profile.

    :param already: how many of these ARQs exist
    """
    tables = sa.MetaData()
    tables.reflect(engine)
    with engine.begin() as connection:
        for first in range(already, amount, services.HANDLES):
            _Host(connection, tables.tables, f'other-{first}').fill(
                min(services.HANDLES, amount - first)
            )


def unbind(engine: sa.Engine) -> None:
    """Make those ARQs as they are before they are bound."""
    tables = sa.MetaData()
    tables.reflect(engine)
    arqs = tables.tables['extended_accelerator_requests']
    handles = tables.tables['attach_handles']
    with engine.begin() as connection:
        of_others = arqs.c.project_id == _PROJECT
        connection.execute(
            sa.update(handles)
            .where(
                handles.c.id.in_(
                    sa.select(arqs.c.attach_handle_id).where(of_others)
                )
            )
            .values(in_use=False)
        )
        connection.execute(
            sa.update(arqs)
            .where(of_others)
            .values(state='Initial', **dict.fromkeys(_PLACE))
        )


class _Host:
    """The rows of one host."""

    def __init__(
        self, connection: sa.Connection, tables: Any, name: str
    ) -> None:
        self._connection = connection
        self._tables = tables
        self._name = name

    def fill(self, amount: int) -> None:
        """Bind ARQs to so many handles of a new device."""
        rp_uuid = uuidutils.generate_uuid()
        deployable, control_path = self._insert_device(rp_uuid)
        handles = self._insert(
            'attach_handles',
            [
                {
                    'deployable_id': deployable,
                    'cpid_id': control_path,
                    'in_use': True,
                    'attach_type': 'TEST_PCI',
                    'attach_info': self._address(number + 1),
                }
                for number in range(amount)
            ],
        )
        profile = self._connection.scalar(
            sa.select(sa.func.min(self._tables['device_profiles'].c.id))
        )
        self._insert(
            'extended_accelerator_requests',
            [
                {
                    'project_id': _PROJECT,
                    'state': 'Bound',
                    'substate': 'Initial',
                    'device_profile_id': profile,
                    'device_profile_group_id': 0,
                    'hostname': self._name,
                    'device_rp_uuid': rp_uuid,
                    'deployable_id': deployable,
                    'instance_uuid': uuidutils.generate_uuid(),
                    'attach_handle_id': handle,
                }
                for handle in handles
            ],
        )

    def _insert_device(self, rp_uuid: str) -> tuple[int, int]:
        """:returns: the ids of its deployable and its control path"""
        [device] = self._insert(
            'devices',
            [
                {
                    'type': 'FPGA',
                    'vendor': '0xABCD',
                    'model': 'miss model info',
                    'hostname': self._name,
                    'status': 'enabled',
                    'device_state': 'available',
                }
            ],
        )
        [control_path] = self._insert(
            'controlpath_ids',
            [
                {
                    'device_id': device,
                    'cpid_type': 'PCI',
                    'cpid_info': self._address(0),
                }
            ],
        )
        [deployable] = self._insert(
            'deployables',
            [
                {
                    'name': f'{self._name}_FakeDevice',
                    'device_id': device,
                    'num_accelerators': services.HANDLES,
                    'rp_uuid': rp_uuid,
                    'driver_name': 'fake',
                }
            ],
        )
        return deployable, control_path

    def _insert(self, table: str, rows: Iterable[dict[str, Any]]) -> list[int]:
        """:returns: the ids of the new rows"""
        return [self._insert_one(self._tables[table], row) for row in rows]

    def _insert_one(self, table: sa.Table, row: dict[str, Any]) -> int:
        values = {'uuid': uuidutils.generate_uuid(), **row}
        done = self._connection.execute(sa.insert(table), values)
        assert done.inserted_primary_key is not None
        return int(done.inserted_primary_key[0])

    @staticmethod
    def _address(function: int) -> str:
        return json.dumps(
            {
                'domain': '0000',
                'bus': '0c',
                'device': str(function // 8),
                'function': str(function % 8),
            }
        )
