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

"""An index for the ARQs of a host, which asks for them in each cycle.

The release before works with it, too.
"""

from nova_accel.db.migrations import steps

revision = '7b94d2e06f13'
down_revision = '1c86f3a9e74b'
branch_labels = None
depends_on = None


def upgrade() -> None:
    steps.create_index('arqs', 'hostname')
