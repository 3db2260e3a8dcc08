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

"""The contract that the report of a host keeps to.

One column with a default: the release before works on it, too.
"""

import sqlalchemy as sa

from nova_accel.db.migrations import steps

revision = '2b7e9c40d1f8'
down_revision = 'f19c7d5a2e84'
branch_labels = None
depends_on = None


def upgrade() -> None:
    steps.add_column(
        'hosts',
        sa.Column('contract', sa.Integer, nullable=False, server_default='0'),
    )
