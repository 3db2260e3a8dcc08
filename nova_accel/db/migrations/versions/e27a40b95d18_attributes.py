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


"""The attributes that operators note of deployables.

One table more: the release before works on it, too.
"""

import sqlalchemy as sa

from nova_accel.db.migrations import steps

revision = 'e27a40b95d18'
down_revision = 'c5a1e7409b36'
branch_labels = None
depends_on = None


def upgrade() -> None:
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
