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

"""ARQs whose devices the host makes again after its reboot."""

from collections.abc import Collection

import sqlalchemy as sa

from nova_accel.db.rows import arq_rows
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import arq_types

_ARQS = schema.ARQS


@engine.retried
def replace(
    hostname: str, uuids: Collection[str], failed: Collection[str] = ()
) -> list[arq_rows.BoundArqRow]:
    """Set which ARQs of a host are Provisioning: these and no others.

    A Bound ARQ becomes Provisioning, and a Provisioning one that is not named
    becomes Bound. Other ARQs stay as they are. The same again changes nothing.

    :param failed: the ARQs whose device could not be made just now; they stay
        Provisioning
    :returns: the ARQs that became Bound, and the failed ones that are
        Provisioning
    """
    here = _ARQS.c.hostname == hostname
    with engine.writer() as connection:
        made = [
            row['uuid']
            for row in arq_rows.lock(
                connection,
                here,
                _ARQS.c.state == arq_types.State.PROVISIONING,
                _ARQS.c.uuid.not_in(list(uuids)),
            )
        ]
        _move(
            connection,
            made,
            arq_types.State.PROVISIONING,
            arq_types.State.BOUND,
        )
        _move(
            connection,
            uuids,
            arq_types.State.BOUND,
            arq_types.State.PROVISIONING,
            here,
        )
        return arq_rows.read_bound(
            connection,
            sa.or_(
                _ARQS.c.uuid.in_(made),
                sa.and_(
                    here,
                    _ARQS.c.state == arq_types.State.PROVISIONING,
                    _ARQS.c.uuid.in_(list(failed)),
                ),
            ),
        )


def _move(
    connection: sa.Connection,
    uuids: Collection[str],
    present: arq_types.State,
    wanted: arq_types.State,
    *where: sa.ColumnElement[bool],
) -> None:
    connection.execute(
        sa.update(_ARQS)
        .where(_ARQS.c.uuid.in_(list(uuids)), _ARQS.c.state == present, *where)
        .values(state=wanted, updated_at=schema.now())
    )
