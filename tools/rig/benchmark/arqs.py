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

"""Accelerator requests (ARQs) of other projects, for a benchmark."""

from oslo_utils import uuidutils
import sqlalchemy as sa

from nova_accel.db import device_profile
from nova_accel.db.rows import arq_rows
from nova_accel.db.rows import client_bindings
from nova_accel.db.rows import handle_rows
from nova_accel.db.rows import profile_rows
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import arq_types
from nova_accel.model.units import handle_stock
from nova_accel.testing import reports

PROFILE = 'qat'

_PER_HOST = 64

_PROJECT = 'b' * 32


def make_profile() -> None:
    device_profile.create(PROFILE, [{'resources:CUSTOM_QAT': '1'}])


def fill(amount: int, already: int = 0) -> None:
    """Bind ARQs until there are so many, each to a server of its own.

    A host has at most 64 of them.

    :param already: how many of these ARQs exist
    """
    for first in range(already, amount, _PER_HOST):
        _fill_host(first, min(_PER_HOST, amount - first))


def unbind() -> None:
    """Make those ARQs as they are before they are bound."""
    arqs, handles = schema.ARQS, schema.ATTACH_HANDLES
    with engine.writer() as connection:
        connection.execute(sa.update(handles).values(arq_uuid=None))
        connection.execute(
            sa.update(arqs)
            .where(arqs.c.project_id == _PROJECT)
            .values(
                state=arq_types.State.INITIAL,
                position=None,
                **dict.fromkeys(client_bindings.PLACE),
            )
        )


def _fill_host(number: int, functions: int) -> None:
    host = reports.SimulatedHost(
        f'other-{number}', regions=(), functions=functions
    )
    host.report()
    rp_uuid = host.allocated_functions(1).rp_uuid
    handles = [
        handle.uuid
        for device in host.devices()
        for deployable in device.deployables
        for handle in deployable.handles
    ]
    with engine.writer() as connection:
        profile = profile_rows.read_requested(
            connection,
            PROFILE,
            profile_rows.RequestedProfile,
            profile_rows.REQUESTED,
        )
        rows = [
            row
            for _handle in handles
            for row in arq_rows.rows_of_profile(
                profile,
                state=arq_types.State.BOUND,
                project_id=_PROJECT,
                hostname=host.hostname,
                device_rp_uuid=rp_uuid,
                instance_uuid=uuidutils.generate_uuid(),
                position=0,
            )
        ]
        connection.execute(sa.insert(schema.ARQS), rows)
        handle_rows.take(
            connection,
            handle_stock.Allotment(
                {
                    handle: row['uuid']
                    for handle, row in zip(handles, rows, strict=True)
                },
                {},
                {},
            ),
        )
