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

"""Devices that a host reports under other uuids than before.

A device is its PCI functions. One that an administrator has disabled stays
disabled, also if the host offers its functions as devices of their own now.

Everything here is a part of its caller's transaction.
"""

from collections.abc import Collection
from collections.abc import Mapping

import sqlalchemy as sa

from nova_accel.db.rows import order_rows
from nova_accel.db.rows import reported_rows
from nova_accel.db.sql import schema
from nova_accel.model.devices import hardware

_DEVICES = schema.DEVICES
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES


def disable_heirs(
    connection: sa.Connection,
    hostname: str,
    known: Mapping[sa.Table, reported_rows.Rows],
    gone: Collection[str],
) -> None:
    """Disable the devices that have functions of disabled ones that are gone.

    :param known: the rows of all devices of the host, deployables and handles
    :param gone: the uuids of the devices that the host does not report any
        more
    """
    if not gone:
        return
    disabled = set(
        connection.scalars(
            sa.select(_DEVICES.c.uuid).where(
                _DEVICES.c.uuid.in_(list(gone)),
                _DEVICES.c.status == hardware.Status.MAINTAINING,
                ~_DEVICES.c.is_drained,
            )
        )
    )
    heirs = _heirs(known, disabled, gone) if disabled else {}
    if not heirs:
        return
    for status, uuids in (
        (hardware.Status.MAINTAINING, set[str]().union(*heirs.values())),
        # It goes as soon as no one has a part of it.
        (hardware.Status.ENABLED, heirs.keys()),
    ):
        connection.execute(
            sa.update(_DEVICES)
            .where(_DEVICES.c.uuid.in_(list(uuids)))
            .values(status=status, updated_at=schema.now())
        )
    order_rows.next_revision(connection, hostname)


def _heirs(
    known: Mapping[sa.Table, reported_rows.Rows],
    disabled: Collection[str],
    gone: Collection[str],
) -> dict[str, set[str]]:
    """Disabled device -> the reported devices that have functions of it."""
    addresses = _addresses(known)
    found = {
        uuid: {
            heir
            for heir, functions in addresses.items()
            if heir not in gone and functions & addresses[uuid]
        }
        for uuid in disabled
    }
    return {uuid: heirs for uuid, heirs in found.items() if heirs}


def _addresses(
    known: Mapping[sa.Table, reported_rows.Rows],
) -> dict[str, set[str]]:
    """Device uuid -> its own address, and those of its handles."""
    found = {uuid: {row['address']} for uuid, row in known[_DEVICES].items()}
    for handle in known[_HANDLES].values():
        deployable = known[_DEPLOYABLES][handle['deployable_uuid']]
        found[deployable['device_uuid']].add(
            '{domain}:{bus}:{device}.{function}'.format(**handle['info'])
        )
    return found
