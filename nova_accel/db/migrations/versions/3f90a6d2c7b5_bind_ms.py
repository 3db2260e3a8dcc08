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

"""How long the binding of an ARQ took.

One column that may be empty: the release before works on it, too.
"""

import sqlalchemy as sa

from nova_accel.db.migrations import steps

revision = '3f90a6d2c7b5'
down_revision = '5e8a14c7d3b2'
branch_labels = None
depends_on = None


def upgrade() -> None:
    steps.add_column('arqs', sa.Column('bind_ms', sa.Integer))
