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

"""The rows of hosts that are imported from a Cyborg.

A host has never reported. Its devices, deployables and attach handles have
Cyborg's uuids, and its accelerator requests no role. The handle of a mediated
device has the uuid of the device.
"""

from collections.abc import Iterable
import dataclasses
import datetime
from typing import Any
import uuid

import sqlalchemy as sa

from nova_accel.db.sql import schema
from nova_accel.model import attach_handle
from nova_accel.model import pci_address

_ARQS = schema.ARQS
_HANDLES = schema.ATTACH_HANDLES

_NEVER = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclasses.dataclass(frozen=True)
class Provider:
    """A resource provider of Cyborg's.

    ``address`` is that of its one function, or of the parent of its mediated
    devices, of which it has ``units``.
    """

    hostname: str
    address: str
    resource_class: str
    traits: tuple[str, ...] = ()
    units: int = 1
    mdev_type: str | None = None
    physical_network: str | None = None

    @property
    def name(self) -> str:
        return f'{self.hostname}_{self.address}'

    @property
    def uuid(self) -> str:
        """As Cyborg derives it."""
        return self._uuid('')

    def rows(self) -> list[tuple[sa.Table, list[dict[str, Any]]]]:
        """Its rows, parents first."""
        common = {'name': self.name}
        return [
            (
                schema.DEVICES,
                [
                    {
                        **common,
                        'uuid': self._uuid('device'),
                        'hostname': self.hostname,
                        'type': 'GPU',
                        'vendor_id': '8086',
                        'vendor': '',
                        'product_id': '0000',
                        'product': '',
                        'address': self.address,
                        'driver': 'cyborg',
                        'status': 'enabled',
                        'attributes': {},
                        'link_sets': [],
                        'created_at': schema.now(),
                    }
                ],
            ),
            (
                schema.DEPLOYABLES,
                [
                    {
                        **common,
                        'uuid': self._uuid('deployable'),
                        'device_uuid': self._uuid('device'),
                        'rp_uuid': self.uuid,
                        'resource_class': self.resource_class,
                        'traits': list(self.traits),
                    }
                ],
            ),
            (
                _HANDLES,
                [
                    {
                        'uuid': self._uuid(f'handle {number}'),
                        'deployable_uuid': self._uuid('deployable'),
                        'type': str(self._handle.type),
                        'info': self._handle.info,
                        'present': True,
                    }
                    for number in range(self.units)
                ],
            ),
        ]

    @property
    def _handle(self) -> attach_handle.AttachHandle:
        return attach_handle.AttachHandle(
            '',
            pci_address.PciAddress.parse(self.address),
            self.mdev_type,
            self.physical_network,
        )

    def _uuid(self, part: str) -> str:
        return str(uuid.uuid3(uuid.NAMESPACE_DNS, part + self.name))


def add_host(
    connection: sa.Connection, hostname: str, providers: Iterable[Provider]
) -> None:
    """Add a host as if it reported, so that Nova's client can bind ARQs."""
    connection.execute(
        sa.insert(schema.HOSTS).values(
            hostname=hostname,
            node_uuid=str(uuid.uuid4()),
            service_host=hostname,
            report_digest='',
            reported_at=schema.now(),
        )
    )
    for provider in providers:
        for table, rows in provider.rows():
            connection.execute(sa.insert(table), rows)


def forget_reports(connection: sa.Connection, hostname: str) -> None:
    """Make it a host that has never reported, as an import does."""
    connection.execute(
        sa.update(schema.HOSTS)
        .where(schema.HOSTS.c.hostname == hostname)
        .values(reported_at=_NEVER, report_digest='')
    )


def remove_host(connection: sa.Connection, hostname: str) -> None:
    """Delete all that there is of a host."""
    devices = sa.select(schema.DEVICES.c.uuid).where(
        schema.DEVICES.c.hostname == hostname
    )
    deployables = connection.scalars(
        sa.select(schema.DEPLOYABLES.c.uuid).where(
            schema.DEPLOYABLES.c.device_uuid.in_(devices)
        )
    ).all()
    for table, where in (
        (_HANDLES, _HANDLES.c.deployable_uuid.in_(deployables)),
        (schema.DEPLOYABLES, schema.DEPLOYABLES.c.uuid.in_(deployables)),
        *(
            (table, table.c.hostname == hostname)
            for table in (
                _ARQS,
                schema.DEVICES,
                schema.BINDINGS,
                schema.FINDINGS,
                schema.HOSTS,
            )
        ),
    ):
        connection.execute(sa.delete(table).where(where))


def undo(
    connection: sa.Connection, hostname: str, providers: Iterable[Provider]
) -> None:
    """Make the rows of a host what they were before it was taken over.

    :param providers: with one unit each, and one for each resource class
    """
    held = [
        dict(row)
        for row in connection.execute(
            sa.select(_ARQS)
            .where(_ARQS.c.hostname == hostname)
            .order_by(_ARQS.c.device_profile_group_id)
        ).mappings()
    ]
    by_class = {provider.resource_class: provider for provider in providers}
    remove_host(connection, hostname)
    add_host(connection, hostname, by_class.values())
    forget_reports(connection, hostname)
    for position, row in enumerate(held):
        provider = by_class[row['resource_class']]
        connection.execute(
            sa.insert(_ARQS).values(
                {
                    **row,
                    'role': None,
                    'position': position,
                    'device_rp_uuid': provider.uuid,
                }
            )
        )
        connection.execute(
            sa.update(_HANDLES)
            .where(
                _HANDLES.c.deployable_uuid.in_(
                    sa.select(schema.DEPLOYABLES.c.uuid).where(
                        schema.DEPLOYABLES.c.rp_uuid == provider.uuid
                    )
                )
            )
            .values(arq_uuid=row['uuid'])
        )
