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

"""Counting the units of a project for one server after the other.

Everything here is a part of its caller's transaction.
"""

from collections.abc import Mapping

import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.rows import fence
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model.profiles import quota

_ARQS = schema.ARQS
_COUNTS = schema.QUOTA_COUNTS


def check(
    connection: sa.Connection,
    project_id: str,
    key: fence.Key,
    limits: Mapping[str, int],
    wanted: Mapping[str, int],
) -> None:
    """Check that a binding may get what it is about to get.

    From here to the end of the transaction no other server of the project is
    counted. Without a limit it takes no statement.

    ARQs without a role are not counted: their server is counted when its host
    adopts them.

    :param key: of the binding, whose own ARQs are replaced
    :param limits: resource class -> how many units the project may have; other
        classes are not limited
    :param wanted: resource class -> how many units the server is to get
    :raises OverQuota: it may not
    """
    counted = limits.keys() & wanted.keys()
    if not counted:
        return
    _wait_for_turn(connection, project_id)
    is_of_server = _ARQS.c.instance_uuid == key[0]
    found = connection.execute(
        sa.select(
            _ARQS.c.resource_class,
            sa.func.count().label('total'),
            sa.func.sum(sa.case((is_of_server, 1), else_=0)).label(
                'by_server'
            ),
        )
        .where(
            _ARQS.c.project_id == project_id,
            _ARQS.c.resource_class.in_(sorted(counted)),
            _ARQS.c.role.is_not(None),
            sa.not_(sa.and_(*fence.where(_ARQS, key))),
        )
        .group_by(_ARQS.c.resource_class)
    )
    quota.check(
        limits,
        {
            row.resource_class: quota.Usage(row.total, int(row.by_server))
            for row in found
        },
        wanted,
    )


def _wait_for_turn(connection: sa.Connection, project_id: str) -> None:
    """Write the project's row, which locks it.

    In a Galera cluster no one waits: of two transactions that have written it,
    one is refused at its end and begins again. So each writes another number.
    """
    written = connection.execute(
        sa.update(_COUNTS)
        .where(_COUNTS.c.project_id == project_id)
        .values(number=_COUNTS.c.number + 1)
    ).rowcount
    if not written:
        with engine.raced(
            exceptions.Conflict(
                f'the accelerators of project {project_id} are being counted'
            )
        ):
            connection.execute(
                sa.insert(_COUNTS).values(project_id=project_id, number=0)
            )
