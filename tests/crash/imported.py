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

"""A host whose guests are another service's, as after an import."""

import datetime
from typing import Any
import uuid

from lxml import etree
import sqlalchemy as sa

from crash import cloud as cloud_module
from crash import imitation
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema

_NEVER = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

_MDEV = """
<device><parent>{parent}</parent><capability type='mdev'>
<type id='{type}'/><uuid>{uuid}</uuid></capability></device>"""


def make(cloud: cloud_module.Cloud, server: imitation.Instance) -> None:
    """Make what a server has on the first host another service's.

    The guest runs on. Its mediated device has another uuid from now on. Only
    the database knows of its ARQs, and no host has adopted them.
    """
    host = cloud.hosts[0]
    journal = host.driver._accelerators.attachments._journal
    for entry in journal.entries():
        journal.remove(entry)
    for before, after in _rename_handles(server).items():
        _rename_mdev(host.connection, server, before, after)


def _rename_handles(server: imitation.Instance) -> dict[str, str]:
    """Rename what it has, as if no host had reported it.

    :returns: uuid before -> uuid now of each mediated device
    """
    handles, arqs = schema.ATTACH_HANDLES, schema.ARQS
    mdevs = {}
    with engine.writer() as connection:
        connection.execute(sa.delete(schema.BINDINGS))
        connection.execute(
            sa.update(schema.HOSTS).values(
                reported_at=_NEVER, report_digest=''
            )
        )
        rows = connection.execute(
            sa.select(handles.c.uuid, handles.c.type, handles.c.arq_uuid)
            .select_from(handles.join(arqs))
            .where(arqs.c.instance_uuid == server.uuid)
        ).all()
        for position, row in enumerate(rows):
            connection.execute(
                sa.update(arqs)
                .where(arqs.c.uuid == row.arq_uuid)
                .values(role=None, position=position)
            )
            renamed = str(uuid.uuid4())
            connection.execute(
                sa.update(handles)
                .where(handles.c.uuid == row.uuid)
                .values(uuid=renamed)
            )
            if row.type == 'MDEV':
                mdevs[row.uuid] = renamed
    return mdevs


def _rename_mdev(
    connection: Any, server: imitation.Instance, before: str, after: str
) -> None:
    domain = connection.lookupByUUIDString(server.uuid)
    xml = domain.XMLDesc(0).replace(before, after)
    domain.destroy()
    domain.undefine()
    (name,) = connection.listDevices('mdev', 0)
    device = connection.nodeDeviceLookupByName(name)
    described = etree.fromstring(device.XMLDesc(0))
    device.destroy()
    connection.nodeDeviceCreateXML(
        _MDEV.format(
            parent=described.findtext('parent'),
            type=described.find('capability/type').get('id'),
            uuid=after,
        ),
        0,
    )
    connection.defineXML(xml).create()
