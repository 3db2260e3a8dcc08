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


"""Indexes for the quota of a project, and for the list of programmings.

The release before works with them, too.
"""

from nova_accel.db.migrations import steps

revision = 'a3f06d58c1e9'
down_revision = '9e3d51b7c04f'
branch_labels = None
depends_on = None


def upgrade() -> None:
    # First, since it replaces the one that is dropped.
    steps.create_index('arqs', 'project_id', 'hostname')
    steps.drop_index('arqs', 'project_id')
    steps.create_index('programmings', 'started_at', 'id')
