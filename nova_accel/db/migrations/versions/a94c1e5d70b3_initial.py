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

from nova_accel.db.migrations import steps

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


def _create_hosts() -> None:
    steps.create_table(
        'hosts',
        sa.Column('hostname', sa.String(255), nullable=False),
        sa.Column('node_uuid', sa.String(36), nullable=False),
        sa.Column('service_host', sa.String(255), nullable=False),
        sa.Column('report_digest', sa.String(255), nullable=False),
        sa.Column('reported_at', sa.DateTime, nullable=False),
        sa.Column('contract', sa.Integer, nullable=False, server_default='0'),
        sa.Column('orders', sa.Integer, nullable=False, server_default='0'),
        sa.Column('changed_at', sa.DateTime),
        sa.Column('drained_at', sa.DateTime),
        sa.Column('drained_by', sa.String(255)),
        sa.Column('drain_reason', sa.Text),
        sa.Column('drained_until', sa.DateTime),
        steps.unique('hosts', 'hostname'),
    )
    steps.create_index('hosts', 'reported_at')
    steps.create_index('hosts', 'changed_at')
    steps.create_table(
        'findings',
        sa.Column('hostname', sa.String(255), nullable=False),
        sa.Column('kind', sa.String(32), nullable=False),
        sa.Column('is_repaired', sa.Boolean, nullable=False),
        sa.Column('instance_uuid', sa.String(36)),
        sa.Column('device', sa.String(255)),
        sa.Column('words', sa.Text, nullable=False),
        sa.Column('found_at', sa.DateTime, nullable=False),
        steps.foreign_key(
            'findings', 'hostname', 'hosts.hostname', ondelete='CASCADE'
        ),
    )
    steps.create_index('findings', 'hostname')


def _create_devices() -> None:
    steps.create_table(
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
            'is_drained', sa.Boolean, nullable=False, server_default='0'
        ),
        sa.Column('fault', sa.Text),
        sa.Column('attributes', steps.LONG_TEXT),
        sa.Column('link_sets', sa.Text),
        sa.Column('created_at', sa.DateTime, nullable=False),
        sa.Column('updated_at', sa.DateTime),
        steps.unique('devices', 'uuid'),
        steps.foreign_key('devices', 'hostname', 'hosts.hostname'),
    )
    steps.create_index('devices', 'hostname')


def _create_deployables() -> None:
    steps.create_table(
        'deployables',
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('device_uuid', sa.String(36), nullable=False),
        sa.Column('name', sa.String(255), nullable=False),
        sa.Column('rp_uuid', sa.String(36), nullable=False),
        sa.Column('resource_class', sa.String(255), nullable=False),
        sa.Column('traits', steps.LONG_TEXT, nullable=False),
        sa.Column(
            'is_cleaned', sa.Boolean, nullable=False, server_default='0'
        ),
        sa.Column('region', sa.String(255)),
        sa.Column('bitstream_id', sa.String(36)),
        steps.unique('deployables', 'uuid'),
        steps.foreign_key('deployables', 'device_uuid', 'devices.uuid'),
    )
    steps.create_index('deployables', 'device_uuid')
    steps.create_index('deployables', 'rp_uuid')
    steps.create_table(
        'attributes',
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('deployable_uuid', sa.String(36), nullable=False),
        sa.Column('key', sa.String(255), nullable=False),
        sa.Column('value', sa.Text, nullable=False),
        sa.Column('created_at', sa.DateTime, nullable=False),
        sa.Column('updated_at', sa.DateTime),
        steps.unique('attributes', 'uuid'),
        steps.unique('attributes', 'deployable_uuid', 'key'),
        steps.foreign_key(
            'attributes',
            'deployable_uuid',
            'deployables.uuid',
            ondelete='CASCADE',
        ),
    )


def _create_requests() -> None:
    steps.create_table(
        'device_profiles',
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('name', sa.String(255), nullable=False),
        sa.Column('description', sa.Text),
        sa.Column('groups', steps.LONG_TEXT, nullable=False),
        sa.Column('created_at', sa.DateTime, nullable=False),
        sa.Column('updated_at', sa.DateTime),
        steps.unique('device_profiles', 'uuid'),
        steps.unique('device_profiles', 'name'),
    )
    steps.create_table(
        'bindings',
        sa.Column('instance_uuid', sa.String(36), nullable=False),
        sa.Column('hostname', sa.String(255), nullable=False),
        sa.Column('role', sa.String(16), nullable=False),
        sa.Column('attempt', sa.BigInteger, nullable=False),
        sa.Column('released_at', sa.DateTime),
        steps.unique('bindings', 'instance_uuid', 'hostname', 'role'),
    )
    steps.create_index('bindings', 'hostname', 'released_at')
    steps.create_table(
        'arqs',
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('device_profile_name', sa.String(255), nullable=False),
        sa.Column('device_profile_group_id', sa.Integer, nullable=False),
        sa.Column('group', steps.LONG_TEXT, nullable=False),
        sa.Column('resource_class', sa.String(255), nullable=False),
        sa.Column('project_id', sa.String(255)),
        sa.Column('image_uuid', sa.String(36)),
        sa.Column('hostname', sa.String(255)),
        sa.Column('device_rp_uuid', sa.String(36)),
        sa.Column('instance_uuid', sa.String(36)),
        sa.Column('role', sa.String(16)),
        sa.Column('position', sa.Integer),
        sa.Column('reason', sa.Text),
        sa.Column('chosen_because', sa.String(255)),
        sa.Column('bind_ms', sa.Integer),
        sa.Column('created_at', sa.DateTime, nullable=False),
        sa.Column('updated_at', sa.DateTime),
        steps.unique('arqs', 'uuid'),
        steps.unique('arqs', 'instance_uuid', 'position'),
    )
    steps.create_index('arqs', 'hostname')
    steps.create_index('arqs', 'project_id', 'hostname')


def _create_attach_handles() -> None:
    steps.create_table(
        'attach_handles',
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('deployable_uuid', sa.String(36), nullable=False),
        sa.Column('type', sa.String(16), nullable=False),
        sa.Column('info', sa.Text, nullable=False),
        sa.Column('identity', sa.String(255)),
        sa.Column('present', sa.Boolean, nullable=False),
        sa.Column('unclean_since', sa.Integer),
        sa.Column('unclean_reason', sa.Text),
        sa.Column('arq_uuid', sa.String(36)),
        sa.Column('changed_at', sa.DateTime),
        steps.unique('attach_handles', 'uuid'),
        steps.unique('attach_handles', 'arq_uuid'),
        steps.foreign_key(
            'attach_handles', 'deployable_uuid', 'deployables.uuid'
        ),
        steps.foreign_key('attach_handles', 'arq_uuid', 'arqs.uuid'),
    )
    steps.create_index('attach_handles', 'deployable_uuid')
    steps.create_index('attach_handles', 'changed_at')


def _create_bitstreams() -> None:
    steps.create_table(
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
        steps.unique('programmings', 'uuid'),
    )
    steps.create_index('programmings', 'device_uuid', 'region')
    steps.create_index('programmings', 'started_at', 'id')
    steps.create_table(
        'bitstream_demand',
        sa.Column('bitstream_id', sa.String(36), nullable=False),
        sa.Column('weight', sa.Double, nullable=False),
        sa.Column('counted_at', sa.DateTime, nullable=False),
        steps.unique('bitstream_demand', 'bitstream_id'),
    )
    steps.create_table(
        'stock_orders',
        sa.Column('device_uuid', sa.String(36), nullable=False),
        sa.Column('region', sa.String(255), nullable=False),
        sa.Column('bitstream_id', sa.String(36), nullable=False),
        sa.Column('ordered_at', sa.DateTime, nullable=False),
        steps.unique('stock_orders', 'device_uuid', 'region'),
    )


def _create_serializers() -> None:
    steps.create_table(
        'turns',
        sa.Column('name', sa.String(64), nullable=False),
        sa.Column('taken_at', sa.DateTime, nullable=False),
        steps.unique('turns', 'name'),
    )
    steps.create_table(
        'quota_counts',
        sa.Column('project_id', sa.String(255), nullable=False),
        sa.Column('number', sa.BigInteger, nullable=False),
        steps.unique('quota_counts', 'project_id'),
    )
