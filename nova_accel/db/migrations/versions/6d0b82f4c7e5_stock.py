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

"""The demand for bitstreams, and the orders to program idle regions.

Three tables more: the release before works with them, too.
"""

import sqlalchemy as sa

from nova_accel.db.migrations import steps

revision = '6d0b82f4c7e5'
down_revision = 'b60e4d91f7a2'
branch_labels = None
depends_on = None


def upgrade() -> None:
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
    steps.create_table(
        'turns',
        sa.Column('name', sa.String(64), nullable=False),
        sa.Column('taken_at', sa.DateTime, nullable=False),
        steps.unique('turns', 'name'),
    )
