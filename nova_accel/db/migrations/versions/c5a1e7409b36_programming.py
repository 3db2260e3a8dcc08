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

"""The contents of FPGA regions, and the history of their programming.

One table more, and columns that may be empty: the release before works on it,
too.
"""

import sqlalchemy as sa

from nova_accel.db.migrations import steps

revision = 'c5a1e7409b36'
down_revision = '8d26b3f05a71'
branch_labels = None
depends_on = None


def upgrade() -> None:
    steps.add_column('deployables', sa.Column('region', sa.String(255)))
    steps.add_column('deployables', sa.Column('bitstream_id', sa.String(36)))
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
