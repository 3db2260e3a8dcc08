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

"""Which process of the API does what only one of them does at a time."""

import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db import clock
from nova_accel.db import engine
from nova_accel.db import schema

_TABLE = schema.TURNS


@engine.retried
def take(name: str, interval_s: int) -> bool:
    """Whether it is the caller's turn, which nobody else has meanwhile.

    :param interval_s: seconds from one turn to the next
    """
    with engine.writer() as connection:
        taken = connection.execute(
            sa.update(_TABLE)
            .where(
                _TABLE.c.name == name,
                sa.or_(
                    _TABLE.c.taken_at <= clock.ago(interval_s),
                    # The database's clock was set back.
                    _TABLE.c.taken_at > clock.now(),
                ),
            )
            .values(taken_at=clock.now())
        ).rowcount
        if taken:
            return True
        if connection.scalar(
            sa.select(sa.func.count()).where(_TABLE.c.name == name)
        ):
            return False
        with engine.raced(
            exceptions.Conflict(f'the first turn of {name} is being taken')
        ):
            connection.execute(
                sa.insert(_TABLE).values(name=name, taken_at=clock.now())
            )
        return True
