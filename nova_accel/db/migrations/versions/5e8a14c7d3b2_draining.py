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

"""Hosts that are drained, and the devices that are disabled for it.

Columns that are empty or have a default: the release before works on them,
too. It knows the devices as disabled.
"""

import sqlalchemy as sa

from nova_accel.db.migrations import steps

revision = '5e8a14c7d3b2'
down_revision = '5ce1a83d7f46'
branch_labels = None
depends_on = None


def upgrade() -> None:
    for column in (
        sa.Column('drained_at', sa.DateTime),
        sa.Column('drained_by', sa.String(255)),
        sa.Column('drain_reason', sa.Text),
        sa.Column('drained_until', sa.DateTime),
    ):
        steps.add_column('hosts', column)
    steps.add_column(
        'devices',
        sa.Column(
            'is_drained', sa.Boolean, nullable=False, server_default='0'
        ),
    )
