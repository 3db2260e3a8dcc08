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

"""When hosts and attach handles changed, and indexes to find what has.

Columns that may be empty, and indexes: the release before works on them, too.
"""

import sqlalchemy as sa

from nova_accel.db.migrations import steps

revision = 'b60e4d91f7a2'
down_revision = 'a3f06d58c1e9'
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ('hosts', 'attach_handles'):
        steps.add_column(table, sa.Column('changed_at', sa.DateTime))
        steps.create_index(table, 'changed_at')
    steps.create_index('hosts', 'reported_at')
