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

"""Health, attributes, cleaning and the orders of a host.

Columns only, each with a default: the release before works on it, too.
"""

import sqlalchemy as sa

from nova_accel.db.migrations import steps

revision = '8d26b3f05a71'
down_revision = '4f1c0a7d9e52'
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table, column in (
        (
            'hosts',
            sa.Column(
                'orders', sa.Integer, nullable=False, server_default='0'
            ),
        ),
        ('devices', sa.Column('fault', sa.Text)),
        ('devices', sa.Column('attributes', steps.LONG_TEXT)),
        (
            'deployables',
            sa.Column(
                'is_cleaned', sa.Boolean, nullable=False, server_default='0'
            ),
        ),
        ('attach_handles', sa.Column('unclean_since', sa.Integer)),
        ('attach_handles', sa.Column('unclean_reason', sa.Text)),
    ):
        steps.add_column(table, column)
