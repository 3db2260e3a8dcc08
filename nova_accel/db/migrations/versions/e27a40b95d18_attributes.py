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


"""What operators note of deployables.

One table more: the release before works on it, too.
"""

from alembic import op
import sqlalchemy as sa

revision = 'e27a40b95d18'
down_revision = 'c5a1e7409b36'
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        'attributes',
        sa.Column('id', sa.Integer, nullable=False),
        sa.Column('uuid', sa.String(36), nullable=False),
        sa.Column('deployable_uuid', sa.String(36), nullable=False),
        sa.Column('key', sa.String(255), nullable=False),
        sa.Column('value', sa.Text, nullable=False),
        sa.Column('created_at', sa.DateTime, nullable=False),
        sa.Column('updated_at', sa.DateTime),
        sa.PrimaryKeyConstraint('id', name='pk_attributes'),
        sa.UniqueConstraint('uuid', name='uq_attributes_uuid'),
        sa.UniqueConstraint('deployable_uuid', 'key',
                            name='uq_attributes_deployable_uuid_key'),
        sa.ForeignKeyConstraint(
            ['deployable_uuid'], ['deployables.uuid'], ondelete='CASCADE',
            name='fk_attributes_deployable_uuid'),
        mysql_engine='InnoDB', mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin')
