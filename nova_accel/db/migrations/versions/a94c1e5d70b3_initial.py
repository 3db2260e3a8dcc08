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

"""The first schema."""

import sqlalchemy as sa

from nova_accel.db.migrations import operations

revision = 'a94c1e5d70b3'
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_hosts()
    _create_devices()
    _create_deployables()
    _create_requests()
    _create_attach_handles()
    _create_bitstreams()
    _create_serializers()
    _create_history()


def _create_hosts() -> None:
    operations.create_table(
        'hosts',
        sa.Column('hostname', sa.String(255), nullable=False),
        sa.Column('node_uuid', sa.String(36), nullable=False),
        sa.Column('service_host', sa.String(255), nullable=False),
        sa.Column('report_digest', sa.String(255), nullable=False),
        sa.Column('reported_at', sa.DateTime, nullable=False),
        sa.Column(
            'found_silent', sa.Integer, nullable=False, server_default='0'
        ),
        sa.Column('contract', sa.Integer, nullable=False, server_default='0'),
        sa.Column('orders', sa.Integer, nullable=False, server_default='0'),
        sa.Column('unpublished', sa.Integer),
        sa.Column(
            'orders_published', sa.Integer, nullable=False, server_default='0'
        ),
        sa.Column('changed_at', sa.DateTime),
        sa.Column('drained_from', sa.DateTime),
        sa.Column('drained_at', sa.DateTime),
        sa.Column('drained_by', sa.String(255)),
        sa.Column('drain_reason', sa.Text),
        sa.Column('drained_until', sa.DateTime),
        operations.unique('hosts', 'hostname'),
    )
    operations.create_index('hosts', 'reported_at')
    operations.create_index('hosts', 'changed_at')
    operations.create_index('hosts', 'unpublished')
    operations.create_table(
        'findings',
        sa.Column('hostname', sa.String(255), nullable=False),
        sa.Column('kind', sa.String(32), nullable=False),
        sa.Column('is_repaired', sa.Boolean, nullable=False),
        sa.Column('instance_uuid', sa.String(36)),
        sa.Column('device', sa.String(255)),
        sa.Column('words', sa.Text, nullable=False),
        sa.Column('found_at', sa.DateTime, nullable=False),
        operations.foreign_key(
            'findings', 'hostname', 'hosts.hostname', ondelete='CASCADE'
        ),
    )
    operations.create_index('findings', 'hostname')


def _create_devices() -> None:
    operations.create_table(
        'devices',
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('hostname', sa.String(255), nullable=False),
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
        sa.Column(
            'status_since', sa.Integer, nullable=False, server_default='0'
        ),
        sa.Column(
            'is_drained', sa.Boolean, nullable=False, server_default='0'
        ),
        sa.Column('fault', sa.Text),
        sa.Column('faulted_at', sa.DateTime),
        sa.Column('attributes', operations.LONG_TEXT, nullable=False),
        sa.Column('link_sets', sa.Text, nullable=False),
        sa.Column('created_at', sa.DateTime, nullable=False),
        sa.Column('updated_at', sa.DateTime),
        operations.unique('devices', 'uuid'),
        operations.foreign_key('devices', 'hostname', 'hosts.hostname'),
    )
    operations.create_index('devices', 'hostname')


def _create_deployables() -> None:
    operations.create_table(
        'deployables',
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('device_uuid', sa.String(36), nullable=False),
        sa.Column('name', sa.String(255), nullable=False),
        sa.Column('rp_uuid', sa.String(36), nullable=False),
        sa.Column('resource_class', sa.String(255), nullable=False),
        sa.Column('traits', operations.LONG_TEXT, nullable=False),
        sa.Column(
            'is_cleaned', sa.Boolean, nullable=False, server_default='0'
        ),
        sa.Column('region', sa.String(255)),
        sa.Column('bitstream_id', sa.String(36)),
        operations.unique('deployables', 'uuid'),
        operations.foreign_key('deployables', 'device_uuid', 'devices.uuid'),
    )
    operations.create_index('deployables', 'device_uuid')
    operations.create_index('deployables', 'rp_uuid')
    operations.create_table(
        'attributes',
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('deployable_uuid', sa.String(36), nullable=False),
        sa.Column('key', sa.String(255), nullable=False),
        sa.Column('value', sa.Text, nullable=False),
        sa.Column('created_at', sa.DateTime, nullable=False),
        sa.Column('updated_at', sa.DateTime),
        operations.unique('attributes', 'uuid'),
        operations.unique('attributes', 'deployable_uuid', 'key'),
        operations.foreign_key(
            'attributes',
            'deployable_uuid',
            'deployables.uuid',
            ondelete='CASCADE',
        ),
    )


def _create_requests() -> None:
    operations.create_table(
        'device_profiles',
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('name', sa.String(255), nullable=False),
        sa.Column('description', sa.Text),
        sa.Column('groups', operations.LONG_TEXT, nullable=False),
        sa.Column('created_at', sa.DateTime, nullable=False),
        sa.Column('updated_at', sa.DateTime),
        operations.unique('device_profiles', 'uuid'),
        operations.unique('device_profiles', 'name'),
    )
    operations.create_table(
        'bindings',
        sa.Column('instance_uuid', sa.String(36), nullable=False),
        sa.Column('hostname', sa.String(255), nullable=False),
        sa.Column('role', sa.String(16), nullable=False),
        sa.Column('attempt', sa.BigInteger, nullable=False),
        sa.Column('released_at', sa.DateTime),
        operations.unique('bindings', 'instance_uuid', 'hostname', 'role'),
    )
    operations.create_index('bindings', 'hostname', 'released_at')
    operations.create_table(
        'arqs',
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('device_profile_name', sa.String(255), nullable=False),
        sa.Column('device_profile_group_id', sa.Integer, nullable=False),
        sa.Column('group', operations.LONG_TEXT, nullable=False),
        sa.Column('resource_class', sa.String(255), nullable=False),
        sa.Column('project_id', sa.String(255)),
        sa.Column('image_uuid', sa.String(36)),
        sa.Column('hostname', sa.String(255)),
        sa.Column('device_rp_uuid', sa.String(36)),
        sa.Column('instance_uuid', sa.String(36)),
        sa.Column('role', sa.String(16)),
        sa.Column(
            'is_leaving', sa.Boolean, nullable=False, server_default='0'
        ),
        sa.Column('position', sa.Integer),
        sa.Column('reason', sa.Text),
        sa.Column('chosen_because', sa.String(255)),
        sa.Column('bind_ms', sa.Integer),
        sa.Column('created_at', sa.DateTime, nullable=False),
        sa.Column('updated_at', sa.DateTime),
        operations.unique('arqs', 'uuid'),
        operations.unique('arqs', 'instance_uuid', 'position'),
    )
    operations.create_index('arqs', 'hostname')
    operations.create_index('arqs', 'project_id', 'hostname')


def _create_attach_handles() -> None:
    operations.create_table(
        'attach_handles',
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('deployable_uuid', sa.String(36), nullable=False),
        sa.Column('type', sa.String(16), nullable=False),
        sa.Column('info', sa.Text, nullable=False),
        sa.Column('identity', sa.String(255)),
        sa.Column('card_uuid', sa.String(36)),
        sa.Column('slice_mode', sa.String(255)),
        sa.Column('slice_start', sa.Integer),
        sa.Column('slice_end', sa.Integer),
        sa.Column('present', sa.Boolean, nullable=False),
        sa.Column('unclean_since', sa.Integer),
        sa.Column('unclean_reason', sa.Text),
        sa.Column('arq_uuid', sa.String(36)),
        sa.Column('changed_at', sa.DateTime),
        operations.unique('attach_handles', 'uuid'),
        operations.unique('attach_handles', 'arq_uuid'),
        operations.foreign_key(
            'attach_handles', 'deployable_uuid', 'deployables.uuid'
        ),
        operations.foreign_key('attach_handles', 'arq_uuid', 'arqs.uuid'),
    )
    operations.create_index('attach_handles', 'deployable_uuid')
    operations.create_index('attach_handles', 'card_uuid')
    operations.create_index('attach_handles', 'changed_at')


def _create_bitstreams() -> None:
    operations.create_table(
        'programmings',
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('hostname', sa.String(255), nullable=False),
        sa.Column('device_uuid', sa.String(36), nullable=False),
        sa.Column('region', sa.String(255), nullable=False),
        sa.Column('bitstream_id', sa.String(36), nullable=False),
        sa.Column('project_id', sa.String(255)),
        sa.Column('user_id', sa.String(255)),
        sa.Column('instance_uuid', sa.String(36)),
        sa.Column('started_at', sa.DateTime, nullable=False),
        sa.Column('finished_at', sa.DateTime),
        sa.Column('failure', sa.Text),
        operations.unique('programmings', 'uuid'),
    )
    operations.create_index('programmings', 'device_uuid', 'region')
    operations.create_index('programmings', 'started_at', 'id')
    operations.create_table(
        'bitstream_demand',
        sa.Column('bitstream_id', sa.String(36), nullable=False),
        sa.Column('weight', sa.Double, nullable=False),
        sa.Column('counted_at', sa.DateTime, nullable=False),
        operations.unique('bitstream_demand', 'bitstream_id'),
    )
    operations.create_table(
        'stock_orders',
        sa.Column('device_uuid', sa.String(36), nullable=False),
        sa.Column('region', sa.String(255), nullable=False),
        sa.Column('bitstream_id', sa.String(36), nullable=False),
        sa.Column('ordered_at', sa.DateTime, nullable=False),
        operations.unique('stock_orders', 'device_uuid', 'region'),
    )


def _create_serializers() -> None:
    operations.create_table(
        'leases',
        sa.Column('name', sa.String(64), nullable=False),
        sa.Column('taken_at', sa.DateTime, nullable=False),
        operations.unique('leases', 'name'),
    )
    operations.create_table(
        'quota_counts',
        sa.Column('project_id', sa.String(255), nullable=False),
        sa.Column('number', sa.BigInteger, nullable=False),
        operations.unique('quota_counts', 'project_id'),
    )


def _create_history() -> None:
    operations.create_table(
        'held_periods',
        sa.Column('arq_uuid', sa.String(36), nullable=False),
        sa.Column('project_id', sa.String(255)),
        sa.Column('instance_uuid', sa.String(36)),
        sa.Column('resource_class', sa.String(255), nullable=False),
        sa.Column('product', sa.String(255), nullable=False),
        sa.Column('shape', sa.String(255), nullable=False),
        sa.Column('began_at', sa.DateTime, nullable=False),
        sa.Column('ended_at', sa.DateTime),
    )
    operations.create_index('held_periods', 'arq_uuid')
    operations.create_index('held_periods', 'ended_at')
