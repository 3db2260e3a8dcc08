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

"""Cards whose units exclude each other: cards of many shapes.

Everything here is a part of its caller's transaction.
"""

from collections.abc import Iterable
from collections.abc import Mapping

from oslo_db import exception as db_exc
import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.rows import unit_states
from nova_accel.db.sql import schema
from nova_accel.model.cards import card_slice
from nova_accel.model.cards import shared_card
from nova_accel.model.units import handle_stock

_HANDLES = schema.ATTACH_HANDLES
_DEPLOYABLES = schema.DEPLOYABLES


def read(
    connection: sa.Connection, rp_uuids: Iterable[str]
) -> dict[str, handle_stock.ReadCard]:
    """Provider uuid -> its card, if it is one of many shapes."""
    offered: dict[str, dict[str, list[card_slice.CardSlice]]] = {}
    taken: dict[str, list[card_slice.CardSlice]] = {}
    handles: dict[str, dict[card_slice.CardSlice, str]] = {}
    cards: dict[str, str] = {}
    for row in connection.execute(
        sa.select(
            _DEPLOYABLES.c.rp_uuid,
            _DEPLOYABLES.c.resource_class,
            _HANDLES.c.card_uuid,
            _HANDLES.c.uuid,
            _HANDLES.c.info,
            _HANDLES.c.arq_uuid,
            unit_states.is_unused().label('is_unused'),
        )
        .select_from(_HANDLES.join(_DEPLOYABLES))
        .where(
            _DEPLOYABLES.c.rp_uuid.in_(list(rp_uuids)),
            _HANDLES.c.card_uuid.is_not(None),
        )
    ):
        found = card_slice.from_dict(row.info['slice'])
        of_classes = offered.setdefault(row.rp_uuid, {})
        of_class = of_classes.setdefault(row.resource_class, [])
        if row.arq_uuid is not None:
            taken.setdefault(row.rp_uuid, []).append(found)
        elif row.is_unused:
            of_class.append(found)
        handles.setdefault(row.rp_uuid, {})[found] = row.uuid
        cards[row.rp_uuid] = row.card_uuid
    return {
        rp_uuid: handle_stock.ReadCard(
            cards[rp_uuid],
            shared_card.SharedCard(of_classes, taken.get(rp_uuid, ())),
            handles[rp_uuid],
        )
        for rp_uuid, of_classes in offered.items()
    }


def check_room(connection: sa.Connection, chosen: Mapping[str, str]) -> None:
    """Lock cards, and check that no one has taken what excludes a choice.

    Two transactions may choose different units of a card, which it cannot
    have both. So each locks all units of the card before it takes its own.

    :param chosen: uuid of an attach handle -> that of its card
    :raises RetryRequest: as :func:`nova_accel.db.rows.handle_rows.take`
    """
    if not chosen:
        return
    rows = connection.execute(
        sa.select(
            _HANDLES.c.uuid,
            _HANDLES.c.card_uuid,
            _HANDLES.c.info,
            _HANDLES.c.arq_uuid,
        )
        .where(_HANDLES.c.card_uuid.in_(set(chosen.values())))
        .order_by(_HANDLES.c.uuid)
        .with_for_update()
    ).all()
    slices = {
        row.uuid: card_slice.from_dict(row.info['slice']) for row in rows
    }
    for row in rows:
        if row.arq_uuid is not None and any(
            row.card_uuid == card_uuid
            and slices[row.uuid].excludes(slices[uuid])
            for uuid, card_uuid in chosen.items()
            # One that is gone cannot be taken.
            if uuid in slices
        ):
            raise db_exc.RetryRequest(
                exceptions.AcceleratorsBusy(
                    'other requests took the card in another shape'
                )
            )
