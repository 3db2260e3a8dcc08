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

"""Hosts that have fallen silent, of which owners are told.

A host counts when it is found silent twice, with a while in between. So none
does after the API itself was away: all hosts report in that while.
"""

import sqlalchemy as sa

from nova_accel.db.rows import host_rows
from nova_accel.db.rows import judged_arqs
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model.units import unit_health
from nova_accel.model.units import unit_state

_HOSTS = schema.HOSTS


@engine.retried
def find(silence_s: int) -> dict[str, list[judged_arqs.JudgedRow]]:
    """Find the hosts that are silent, and note that.

    It is one statement if no host has fallen silent, and three at most.

    :param silence_s: seconds without a report after which a host is silent
    :returns: what worked until then and guests have, by the hosts that are
        found for the second time
    """
    with engine.writer() as connection:
        silent = connection.execute(
            sa.select(_HOSTS.c.hostname, _HOSTS.c.found_silent)
            .where(
                host_rows.is_silent(silence_s),
                _HOSTS.c.found_silent < host_rows.TOLD_SILENT,
            )
            .order_by(_HOSTS.c.hostname)
            .with_for_update()
        ).all()
        if not silent:
            return {}
        connection.execute(
            sa.update(_HOSTS)
            .where(_HOSTS.c.hostname.in_([host.hostname for host in silent]))
            .values(found_silent=_HOSTS.c.found_silent + 1)
        )
        again = [host.hostname for host in silent if host.found_silent]
        found: dict[str, list[judged_arqs.JudgedRow]] = {}
        for arq in judged_arqs.read_working(connection, again):
            arq['health'] = unit_health.verdict(
                unit_state.UnitState.HOST_SILENT
            )
            found.setdefault(arq['hostname'], []).append(arq)
        return found
