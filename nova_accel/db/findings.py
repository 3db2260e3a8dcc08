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

"""The findings of all hosts: :mod:`nova_accel.model.finding`."""

from collections.abc import Collection

import sqlalchemy as sa

from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import finding

_FINDINGS = schema.FINDINGS

_ALL = sa.select(
    *(_FINDINGS.c[name] for name in finding.REPORTED),
    _FINDINGS.c.hostname,
    _FINDINGS.c.found_at,
).order_by(_FINDINGS.c.hostname, _FINDINGS.c.id)


@engine.retried
def left(kinds: Collection[finding.Kind]) -> list[finding.Finding]:
    """The findings of some kinds that hosts have not repaired, as by read."""
    with engine.reader() as connection:
        return read_on(
            connection,
            _FINDINGS.c.kind.in_(kinds),
            _FINDINGS.c.is_repaired.is_(False),
        )


@engine.retried
def read() -> list[finding.Finding]:
    """The findings of all hosts, by one statement.

    They are sorted by the host, and then the ones that matter most are first.
    """
    with engine.reader() as connection:
        return read_on(connection)


def read_on(
    connection: sa.Connection, *where: sa.ColumnElement[bool]
) -> list[finding.Finding]:
    """As :func:`read`, as a part of its caller's transaction.

    :param where: conditions for the findings that are wanted
    """
    return [
        finding.Finding(*row) for row in connection.execute(_ALL.where(*where))
    ]
