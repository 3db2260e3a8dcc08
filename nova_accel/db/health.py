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

"""Whether the database can be used."""

import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.migrations import schema_version
from nova_accel.db.sql import engine


@engine.retried
def check() -> None:
    """Read one row; the waits of any call bound this one, too.

    :raises ServiceUnavailable: the database does not answer, or does not have
        our tables.
    """
    with engine.reader() as connection:
        version = connection.scalar(
            sa.select(schema_version.TABLE.c.version_num)
        )
    if version is None:
        raise exceptions.ServiceUnavailable.for_all(
            'the database of accelerators has no tables: run '
            '"nova-accel-manage db sync"'
        )
