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

"""The units that servers have, and what they have asked for."""

import sqlalchemy as sa

from nova_accel.db.rows import unit_states
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model.cards import card_slice
from nova_accel.model.fleet import room_guest

_ARQS = schema.ARQS
_DEPLOYABLES = schema.DEPLOYABLES
_HANDLES = schema.ATTACH_HANDLES

_OF_SERVERS = (
    sa.select(
        _ARQS.c.instance_uuid,
        _ARQS.c.hostname,
        _ARQS.c.role,
        _ARQS.c.device_profile_group_id,
        _ARQS.c.group,
        _DEPLOYABLES.c.rp_uuid,
        _DEPLOYABLES.c.uuid,
        sa.and_(_HANDLES.c.present, unit_states.is_usable()),
        _DEPLOYABLES.c.resource_class,
        _HANDLES.c.slice_mode,
        _HANDLES.c.slice_start,
        _HANDLES.c.slice_end,
    )
    .select_from(_ARQS.join(_HANDLES).join(_DEPLOYABLES).join(schema.DEVICES))
    .where(
        _ARQS.c.instance_uuid.is_not(None),
        _ARQS.c.hostname.is_not(None),
        # A server that moves does not take them along.
        _ARQS.c.is_leaving.is_(False),
    )
    .order_by(_ARQS.c.instance_uuid, _ARQS.c.device_profile_group_id)
)


@engine.retried
def get_all() -> list[room_guest.HeldArq]:
    """Read the units of all servers, by one statement."""
    with engine.reader() as connection:
        return [
            room_guest.HeldArq._make(
                (
                    *row,
                    # Only this process knows of it: the class is the shape.
                    None
                    if mode is None
                    else card_slice.CardSlice(
                        resource_class, mode, start, end - start
                    ),
                    bool(is_usable),
                )
            )
            for (
                *row,
                is_usable,
                resource_class,
                mode,
                start,
                end,
            ) in connection.execute(_OF_SERVERS)
        ]
