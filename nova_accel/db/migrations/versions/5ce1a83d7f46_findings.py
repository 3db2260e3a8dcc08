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

"""The findings of all hosts.

One table more: the release before works with it, too. It does not know that a
host has findings, so they go with the row of the host.
"""

import sqlalchemy as sa

from nova_accel.db.migrations import steps

revision = '5ce1a83d7f46'
down_revision = '2b7e9c40d1f8'
branch_labels = None
depends_on = None


def upgrade() -> None:
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
