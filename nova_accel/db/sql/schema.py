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

"""The tables.

A host has devices, a device has deployables, and a deployable has attach
handles. A row refers to the one above it by a uuid that the host derives.

An attach handle with an ``arq_uuid`` is taken. It has this column once, so it
cannot be handed out twice. The column is unique, so an ARQ cannot have two.
"""

import datetime

from oslo_db.sqlalchemy import types
import sqlalchemy as sa

from nova_accel.db.sql import clock
from nova_accel.db.sql import utc_datetime

METADATA = sa.MetaData(
    naming_convention={
        'ix': 'ix_%(table_name)s_%(column_0_N_name)s',
        'uq': 'uq_%(table_name)s_%(column_0_N_name)s',
        'fk': 'fk_%(table_name)s_%(column_0_N_name)s',
        'pk': 'pk_%(table_name)s',
    }
)

# A binary collation tells names apart by case, as the other databases do.
_TABLE_OPTIONS = {
    'mysql_engine': 'InnoDB',
    'mysql_charset': 'utf8mb4',
    'mysql_collate': 'utf8mb4_bin',
}


def now() -> datetime.datetime:
    """The time to store for a change."""
    return datetime.datetime.now(datetime.UTC)


def _table(name: str, *items: sa.schema.SchemaItem) -> sa.Table:
    return sa.Table(
        name,
        METADATA,
        sa.Column('id', sa.Integer, primary_key=True),
        *items,
        **_TABLE_OPTIONS,  # type: ignore[arg-type]
    )


def _uuid() -> sa.Column[str]:
    return sa.Column('uuid', sa.String(36), nullable=False, unique=True)


def _parent(name: str, column: str) -> sa.Column[str]:
    return sa.Column(
        name, sa.String(36), sa.ForeignKey(column), nullable=False, index=True
    )


def _times() -> tuple[sa.Column[datetime.datetime], ...]:
    return (
        sa.Column('created_at', utc_datetime.UtcDateTime, nullable=False),
        sa.Column('updated_at', utc_datetime.UtcDateTime),
    )


HOSTS = _table(
    'hosts',
    # Nova's nodename; service_host is where its RPC goes.
    sa.Column('hostname', sa.String(255), nullable=False, unique=True),
    sa.Column('node_uuid', sa.String(36), nullable=False),
    sa.Column('service_host', sa.String(255), nullable=False),
    sa.Column('report_digest', sa.String(255), nullable=False),
    sa.Column(
        'reported_at', utc_datetime.UtcDateTime, nullable=False, index=True
    ),
    # How often it was found silent since its last report; see db/silence.py.
    sa.Column('found_silent', sa.Integer, nullable=False, server_default='0'),
    # The contract that its last report kept to: model/host_contract.py.
    sa.Column('contract', sa.Integer, nullable=False, server_default='0'),
    # The revision of the host's orders: which devices are disabled, and which
    # attach handles are unclean.
    sa.Column('orders', sa.Integer, nullable=False, server_default='0'),
    # The largest status_since of its devices, None if Placement has it; and
    # the revision that Placement has, as far as the host knows.
    sa.Column('unpublished', sa.Integer, index=True),
    sa.Column(
        'orders_published', sa.Integer, nullable=False, server_default='0'
    ),
    # When its devices, their contents or their faults, its orders or its
    # absent handles changed. A report that has nothing new leaves it.
    sa.Column('changed_at', utc_datetime.UtcDateTime, index=True),
    # From when it is to be drained, if that was announced.
    sa.Column('drained_from', utc_datetime.UtcDateTime),
    # Since when it is drained, None if it is not; the user id of who has asked
    # for it last, why, and until when, if that is known.
    sa.Column('drained_at', utc_datetime.UtcDateTime),
    sa.Column('drained_by', sa.String(255)),
    sa.Column('drain_reason', sa.Text),
    sa.Column('drained_until', utc_datetime.UtcDateTime),
)

DEVICES = _table(
    'devices',
    _uuid(),
    sa.Column(
        'hostname',
        sa.String(255),
        sa.ForeignKey('hosts.hostname'),
        nullable=False,
        index=True,
    ),
    sa.Column('name', sa.String(255), nullable=False),
    sa.Column('type', sa.String(32), nullable=False),
    sa.Column('vendor_id', sa.String(4), nullable=False),
    sa.Column('vendor', sa.String(255), nullable=False),
    sa.Column('product_id', sa.String(4), nullable=False),
    sa.Column('product', sa.String(255), nullable=False),
    sa.Column('address', sa.String(32), nullable=False),
    sa.Column('driver', sa.String(255), nullable=False),
    sa.Column('numa_node', sa.Integer),
    sa.Column('status', sa.String(16), nullable=False),
    # The revision of the host's orders that brought it.
    sa.Column('status_since', sa.Integer, nullable=False, server_default='0'),
    # Whether it is disabled because its host is drained, and for no other
    # reason.
    sa.Column('is_drained', sa.Boolean, nullable=False, server_default='0'),
    sa.Column('fault', sa.Text),
    # By the database's clock, when the first report had a fault.
    sa.Column('faulted_at', utc_datetime.UtcDateTime),
    sa.Column(
        'attributes',
        types.JsonEncodedDict(mysql_as_medium=True),
        nullable=False,
    ),
    # The sets of joined devices that it is in, the largest first.
    sa.Column('link_sets', types.JsonEncodedList, nullable=False),
    *_times(),
)

DEPLOYABLES = _table(
    'deployables',
    _uuid(),
    _parent('device_uuid', 'devices.uuid'),
    sa.Column('name', sa.String(255), nullable=False),
    # Not unique: the deployables of pooled devices share a provider.
    sa.Column('rp_uuid', sa.String(36), nullable=False, index=True),
    sa.Column('resource_class', sa.String(255), nullable=False),
    sa.Column(
        'traits', types.JsonEncodedList(mysql_as_medium=True), nullable=False
    ),
    # Whether a guest's handle is cleaned before another guest gets it.
    sa.Column('is_cleaned', sa.Boolean, nullable=False, server_default='0'),
    # The FPGA region that it is in, and the bitstream that this holds.
    sa.Column('region', sa.String(255)),
    sa.Column('bitstream_id', sa.String(36)),
)

#: The attributes that operators note of deployables, and that go with them.
ATTRIBUTES = _table(
    'attributes',
    _uuid(),
    sa.Column(
        'deployable_uuid',
        sa.String(36),
        sa.ForeignKey('deployables.uuid', ondelete='CASCADE'),
        nullable=False,
    ),
    sa.Column('key', sa.String(255), nullable=False),
    sa.Column('value', sa.Text, nullable=False),
    *_times(),
    sa.UniqueConstraint('deployable_uuid', 'key'),
)

ARQS = _table(
    'arqs',
    _uuid(),
    sa.Column('state', sa.String(16), nullable=False),
    sa.Column('device_profile_name', sa.String(255), nullable=False),
    sa.Column('device_profile_group_id', sa.Integer, nullable=False),
    sa.Column(
        'group', types.JsonEncodedDict(mysql_as_medium=True), nullable=False
    ),
    sa.Column('resource_class', sa.String(255), nullable=False),
    sa.Column('project_id', sa.String(255)),
    sa.Column('image_uuid', sa.String(36)),
    sa.Column('hostname', sa.String(255), index=True),
    sa.Column('device_rp_uuid', sa.String(36)),
    sa.Column('instance_uuid', sa.String(36)),
    # None where Nova's own Cyborg client did the binding, until the host
    # adopts it.
    sa.Column('role', sa.String(16)),
    # Whether its guest is to give it back, and has not let go of it yet.
    sa.Column('is_leaving', sa.Boolean, nullable=False, server_default='0'),
    # Counts the ARQs that one such binding gave the instance. It is unique, so
    # that one of two simultaneous bindings of an instance fails.
    sa.Column('position', sa.Integer),
    # Why it is BindFailed.
    sa.Column('reason', sa.Text),
    # Why its attach handle was chosen, for administrators.
    sa.Column('chosen_because', sa.String(255)),
    # How long the call that bound it, or failed to, had taken until then, in
    # milliseconds; None if no call has.
    sa.Column('bind_ms', sa.Integer),
    *_times(),
    sa.UniqueConstraint('instance_uuid', 'position'),
    # By this index the unbound ARQs of a project are counted.
    sa.Index(None, 'project_id', 'hostname'),
)

ATTACH_HANDLES = _table(
    'attach_handles',
    _uuid(),
    _parent('deployable_uuid', 'deployables.uuid'),
    sa.Column('type', sa.String(16), nullable=False),
    sa.Column('info', types.JsonEncodedDict, nullable=False),
    # The identity of its device, None if no report has said it yet.
    sa.Column('identity', sa.String(255)),
    # The device whose units exclude each other, and the slice of it that this
    # one takes, see model/cards/card_slice.py; None for any other handle.
    sa.Column('card_uuid', sa.String(36), index=True),
    sa.Column('slice_mode', sa.String(255)),
    sa.Column('slice_start', sa.Integer),
    sa.Column('slice_end', sa.Integer),
    # False once its host no longer reports it. Then it is still taken or
    # unclean: a free one would be gone.
    sa.Column('present', sa.Boolean, nullable=False),
    # The revision of the host's orders from which on it is to be cleaned, None
    # if it is clean; and why its cleaning has failed.
    sa.Column('unclean_since', sa.Integer),
    sa.Column('unclean_reason', sa.Text),
    sa.Column(
        'arq_uuid', sa.String(36), sa.ForeignKey('arqs.uuid'), unique=True
    ),
    # Every UPDATE sets it. A new row does without, as only a report inserts
    # one, which sets that of the host: PyMySQL would send rows that have an
    # expression one by one.
    sa.Column(
        'changed_at',
        utc_datetime.UtcDateTime,
        index=True,
        onupdate=clock.now(),
    ),
)

DEVICE_PROFILES = _table(
    'device_profiles',
    _uuid(),
    sa.Column('name', sa.String(255), nullable=False, unique=True),
    sa.Column('description', sa.Text),
    sa.Column(
        'groups', types.JsonEncodedList(mysql_as_medium=True), nullable=False
    ),
    *_times(),
)

#: The fence of each (instance, host, role): the newest attempt known.
BINDINGS = _table(
    'bindings',
    sa.Column('instance_uuid', sa.String(36), nullable=False),
    sa.Column('hostname', sa.String(255), nullable=False),
    sa.Column('role', sa.String(16), nullable=False),
    sa.Column('attempt', sa.BigInteger, nullable=False),
    sa.Column('released_at', utc_datetime.UtcDateTime),
    sa.UniqueConstraint('instance_uuid', 'hostname', 'role'),
    sa.Index(None, 'hostname', 'released_at'),
)

#: The programmings of regions, also of devices that are gone.
PROGRAMMINGS = _table(
    'programmings',
    _uuid(),
    sa.Column('hostname', sa.String(255), nullable=False),
    sa.Column('device_uuid', sa.String(36), nullable=False),
    sa.Column('region', sa.String(255), nullable=False),
    sa.Column('bitstream_id', sa.String(36), nullable=False),
    # The owner of the server, or the caller of the API who asked for it.
    sa.Column('project_id', sa.String(255)),
    sa.Column('user_id', sa.String(255)),
    sa.Column('instance_uuid', sa.String(36)),
    sa.Column('started_at', utc_datetime.UtcDateTime, nullable=False),
    # None while it goes on.
    sa.Column('finished_at', utc_datetime.UtcDateTime),
    # Why it failed, None if it did not.
    sa.Column('failure', sa.Text),
    sa.Index(None, 'device_uuid', 'region'),
    # The index for the order of the list.
    sa.Index(None, 'started_at', 'id'),
)

#: How much each bitstream is wanted, as of ``counted_at`` by the database's
#: clock; the rows of those wanted longest ago are deleted.
BITSTREAM_DEMAND = _table(
    'bitstream_demand',
    sa.Column('bitstream_id', sa.String(36), nullable=False, unique=True),
    sa.Column('weight', sa.Double, nullable=False),
    sa.Column('counted_at', utc_datetime.UtcDateTime, nullable=False),
)

#: The last order to program an idle region, for as long as it matters.
STOCK_ORDERS = _table(
    'stock_orders',
    sa.Column('device_uuid', sa.String(36), nullable=False),
    sa.Column('region', sa.String(255), nullable=False),
    sa.Column('bitstream_id', sa.String(36), nullable=False),
    # By the database's clock.
    sa.Column('ordered_at', utc_datetime.UtcDateTime, nullable=False),
    sa.UniqueConstraint('device_uuid', 'region'),
)

#: When one of the API's processes last did what only one of them does at a
#: time, by the database's clock.
LEASES = _table(
    'leases',
    sa.Column('name', sa.String(64), nullable=False, unique=True),
    sa.Column('taken_at', utc_datetime.UtcDateTime, nullable=False),
)

#: How often the accelerators of a project were counted for its limits. Each
#: count changes the row, so that no two are made at once.
QUOTA_COUNTS = _table(
    'quota_counts',
    sa.Column('project_id', sa.String(255), nullable=False, unique=True),
    sa.Column('number', sa.BigInteger, nullable=False),
)

#: The findings of all hosts: model/finding.py.
FINDINGS = _table(
    'findings',
    sa.Column(
        'hostname',
        sa.String(255),
        sa.ForeignKey('hosts.hostname', ondelete='CASCADE'),
        nullable=False,
        index=True,
    ),
    sa.Column('kind', sa.String(32), nullable=False),
    sa.Column('is_repaired', sa.Boolean, nullable=False),
    sa.Column('instance_uuid', sa.String(36)),
    sa.Column('device', sa.String(255)),
    sa.Column('words', sa.Text, nullable=False),
    # By the database's clock, when the first report had it.
    sa.Column('found_at', utc_datetime.UtcDateTime, nullable=False),
)

#: The periods in which ARQs held units, by the database's clock: a bill is
#: made of them. They outlive the ARQs.
HELD_PERIODS = _table(
    'held_periods',
    sa.Column('arq_uuid', sa.String(36), nullable=False, index=True),
    sa.Column('project_id', sa.String(255)),
    sa.Column('instance_uuid', sa.String(36)),
    sa.Column('resource_class', sa.String(255), nullable=False),
    sa.Column('product', sa.String(255), nullable=False),
    # Empty for a unit that is a whole device or function.
    sa.Column('shape', sa.String(255), nullable=False),
    sa.Column('began_at', utc_datetime.UtcDateTime, nullable=False),
    # None while it goes on.
    sa.Column('ended_at', utc_datetime.UtcDateTime, index=True),
)
