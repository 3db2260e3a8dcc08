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

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '4f1c0a7d9e52'
down_revision = None
branch_labels = None
depends_on = None

_LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql')


def _create_table(name: str, *items: sa.schema.SchemaItem) -> None:
    op.create_table(
        name, sa.Column('id', sa.Integer, nullable=False), *items,
        sa.PrimaryKeyConstraint('id', name=f'pk_{name}'),
        mysql_engine='InnoDB', mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin')


def _unique(table: str, *columns: str) -> sa.UniqueConstraint:
    return sa.UniqueConstraint(
        *columns, name=f'uq_{table}_{"_".join(columns)}')


def _foreign_key(table: str, column: str,
                 target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column], [target], name=f'fk_{table}_{column}')


def upgrade() -> None:
    _create_inventory()
    _create_requests()
    _create_attach_handles()


def _create_inventory() -> None:
    _create_table(
        'hosts',
        sa.Column('hostname', sa.String(255), nullable=False),
        sa.Column('node_uuid', sa.String(36), nullable=False),
        sa.Column('service_host', sa.String(255), nullable=False),
        sa.Column('report_digest', sa.String(255), nullable=False),
        sa.Column('reported_at', sa.DateTime, nullable=False),
        _unique('hosts', 'hostname'))
    _create_table(
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
        sa.Column('created_at', sa.DateTime, nullable=False),
        sa.Column('updated_at', sa.DateTime),
        _unique('devices', 'uuid'),
        _foreign_key('devices', 'hostname', 'hosts.hostname'))
    op.create_index('ix_devices_hostname', 'devices', ['hostname'])
    _create_table(
        'deployables',
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('device_uuid', sa.String(36), nullable=False),
        sa.Column('name', sa.String(255), nullable=False),
        sa.Column('rp_uuid', sa.String(36), nullable=False),
        sa.Column('resource_class', sa.String(255), nullable=False),
        sa.Column('traits', _LONG_TEXT, nullable=False),
        _unique('deployables', 'uuid'),
        _foreign_key('deployables', 'device_uuid', 'devices.uuid'))
    op.create_index(
        'ix_deployables_device_uuid', 'deployables', ['device_uuid'])
    op.create_index('ix_deployables_rp_uuid', 'deployables', ['rp_uuid'])


def _create_requests() -> None:
    _create_table(
        'device_profiles',
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('name', sa.String(255), nullable=False),
        sa.Column('description', sa.Text),
        sa.Column('groups', _LONG_TEXT, nullable=False),
        sa.Column('created_at', sa.DateTime, nullable=False),
        sa.Column('updated_at', sa.DateTime),
        _unique('device_profiles', 'uuid'),
        _unique('device_profiles', 'name'))
    _create_table(
        'bindings',
        sa.Column('instance_uuid', sa.String(36), nullable=False),
        sa.Column('hostname', sa.String(255), nullable=False),
        sa.Column('role', sa.String(16), nullable=False),
        sa.Column('attempt', sa.BigInteger, nullable=False),
        sa.Column('released_at', sa.DateTime),
        _unique('bindings', 'instance_uuid', 'hostname', 'role'))
    op.create_index('ix_bindings_hostname_released_at', 'bindings',
                    ['hostname', 'released_at'])
    _create_table(
        'arqs',
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('state', sa.String(16), nullable=False),
        sa.Column('device_profile_name', sa.String(255), nullable=False),
        sa.Column('device_profile_group_id', sa.Integer, nullable=False),
        sa.Column('group', _LONG_TEXT, nullable=False),
        sa.Column('resource_class', sa.String(255), nullable=False),
        sa.Column('project_id', sa.String(255)),
        sa.Column('image_uuid', sa.String(36)),
        sa.Column('hostname', sa.String(255)),
        sa.Column('device_rp_uuid', sa.String(36)),
        sa.Column('instance_uuid', sa.String(36)),
        sa.Column('role', sa.String(16)),
        sa.Column('position', sa.Integer),
        sa.Column('created_at', sa.DateTime, nullable=False),
        sa.Column('updated_at', sa.DateTime),
        _unique('arqs', 'uuid'),
        _unique('arqs', 'instance_uuid', 'position'))
    op.create_index('ix_arqs_project_id', 'arqs', ['project_id'])


def _create_attach_handles() -> None:
    _create_table(
        'attach_handles',
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('deployable_uuid', sa.String(36), nullable=False),
        sa.Column('type', sa.String(16), nullable=False),
        sa.Column('info', sa.Text, nullable=False),
        sa.Column('present', sa.Boolean, nullable=False),
        sa.Column('arq_uuid', sa.String(36)),
        _unique('attach_handles', 'uuid'),
        _unique('attach_handles', 'arq_uuid'),
        _foreign_key('attach_handles', 'deployable_uuid', 'deployables.uuid'),
        _foreign_key('attach_handles', 'arq_uuid', 'arqs.uuid'))
    op.create_index('ix_attach_handles_deployable_uuid', 'attach_handles',
                    ['deployable_uuid'])
