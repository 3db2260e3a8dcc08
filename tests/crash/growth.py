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

"""What this process uses, and whether that grows with its work."""

from collections.abc import Iterator
import datetime
import gc
import os
import pathlib
import sys
import threading

from oslo_utils import timeutils
import sqlalchemy as sa

from nova_accel.db import usage
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema

#: Longer ago than the database keeps anything.
_LONG_AGO = datetime.timedelta(days=1000)
_KEPT_DAYS = 400

#: What ended then -> when it ended.
_ENDED = (
    (schema.BINDINGS, schema.BINDINGS.c.released_at),
    (schema.HELD_PERIODS, schema.HELD_PERIODS.c.ended_at),
)

#: Caches of libraries fill and empty by as much, however long it works.
_NOISE = {'blocks of memory': 5000, 'kilobytes': 24 * 1024}


class Growth:
    """Compares what is used after each part of the work.

    The first parts fill caches: the others are compared with the lowest of
    the middle ones.

    :ivar samples: what was used after each part, by its name
    """

    def __init__(self) -> None:
        self.samples: list[dict[str, int]] = []

    def sample(self) -> None:
        """Note what is used now, when everything that began has ended."""
        gc.collect()
        self.samples.append(
            {
                'blocks of memory': sys.getallocatedblocks(),
                'kilobytes': _resident_kilobytes(),
                'threads': threading.active_count(),
                'open files': len(os.listdir('/proc/self/fd')),
                **_rows(),
            }
        )

    def findings(self) -> Iterator[str]:
        """What has grown by more than noise; should be empty."""
        middle = len(self.samples) // 3
        for name in self.samples[-1]:
            used = [sample[name] for sample in self.samples[middle:]]
            before, after = (
                min(used[: len(used) // 2]),
                min(used[len(used) // 2 :]),
            )
            if after > before + _NOISE.get(name, 0):
                yield f'{name}: from {before} to {after}: {used}'


def age() -> None:
    """Have all that has ended in the database be from long ago.

    The periods of units are forgotten at once, as each day; bindings with the
    next release.
    """
    with engine.writer() as connection:
        for table, ended_at in _ENDED:
            connection.execute(
                sa.update(table)
                .where(ended_at.is_not(None))
                .values({ended_at: timeutils.utcnow() - _LONG_AGO})
            )
    usage.forget_old(_KEPT_DAYS)


def _rows() -> dict[str, int]:
    with engine.reader() as connection:
        return {
            f'rows of {table.name}': connection.execute(
                sa.select(sa.func.count()).select_from(table)
            ).scalar_one()
            for table in schema.METADATA.sorted_tables
        }


def _resident_kilobytes() -> int:
    pages = pathlib.Path('/proc/self/statm').read_text().split()[1]
    return int(pages) * os.sysconf('SC_PAGE_SIZE') // 1024
