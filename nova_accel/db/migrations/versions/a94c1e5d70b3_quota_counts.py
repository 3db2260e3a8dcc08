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

"""By which rows the accelerators of a project are counted one at a time.

A table more: the release before works with it, too.
"""

import sqlalchemy as sa

from nova_accel.db.migrations import steps

revision = 'a94c1e5d70b3'
down_revision = '3f90a6d2c7b5'
branch_labels = None
depends_on = None


def upgrade() -> None:
    steps.create_table(
        'quota_counts',
        sa.Column('project_id', sa.String(255), nullable=False),
        sa.Column('number', sa.BigInteger, nullable=False),
        steps.unique('quota_counts', 'project_id'),
    )
