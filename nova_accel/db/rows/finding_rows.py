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

"""The findings of a host, replaced by those in its report.

Everything here is a part of its caller's transaction.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import datetime
from typing import Any

import sqlalchemy as sa

from nova_accel.db.sql import clock
from nova_accel.db.sql import schema
from nova_accel.model import finding

_FINDINGS = schema.FINDINGS

#: Two findings are the same if these are, whatever their words.
_SAME = ('kind', 'instance_uuid', 'device')


def replace(
    connection: sa.Connection,
    hostname: str,
    findings: Sequence[Mapping[str, Any]],
) -> None:
    """Make the rows of a locked host match its report.

    A finding that the report before had, too, keeps its time, also where its
    words differ. It takes one statement if nothing has changed, four at most.

    :param findings: in the form of
        :meth:`nova_accel.model.finding.Finding.to_dict`
    """
    wanted = [
        {name: value[name] for name in finding.REPORTED} for value in findings
    ]
    present = connection.execute(
        sa.select(_FINDINGS)
        .where(_FINDINGS.c.hostname == hostname)
        .order_by(_FINDINGS.c.id)
    ).all()
    if wanted == [
        {name: getattr(row, name) for name in finding.REPORTED}
        for row in present
    ]:
        return
    since: dict[tuple[Any, ...], datetime.datetime] = {
        tuple(getattr(row, name) for name in _SAME): row.found_at
        for row in present
    }
    if present:
        connection.execute(
            sa.delete(_FINDINGS).where(_FINDINGS.c.hostname == hostname)
        )
    if wanted:
        now = connection.scalar(sa.select(clock.now()))
        connection.execute(
            sa.insert(_FINDINGS),
            [
                {
                    'hostname': hostname,
                    **value,
                    'found_at': since.get(
                        tuple(value[name] for name in _SAME), now
                    ),
                }
                for value in wanted
            ],
        )
