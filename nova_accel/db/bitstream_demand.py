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

"""The demand for bitstreams, by what servers were bound to regions for.

A bitstream counts once for each unit that is bound for a group that names it.
The longer ago, the less it counts.
"""

import sqlalchemy as sa

from nova_accel.db.rows import demand_rows
from nova_accel.db.sql import clock
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema

_TABLE = schema.BITSTREAM_DEMAND

#: A bitstream that is wanted less is wanted no more.
_LEAST = 0.01


@engine.retried
def read() -> dict[str, float]:
    """Bitstream -> the demand for it now."""
    query = sa.select(_TABLE, clock.now().label('now'))
    with engine.reader() as connection:
        weights = {
            row.bitstream_id: demand_rows.weight_now(row)
            for row in connection.execute(query)
        }
    return {
        bitstream_id: weight
        for bitstream_id, weight in weights.items()
        if weight >= _LEAST
    }
