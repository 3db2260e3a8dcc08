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

"""The release after this one, as far as its database goes."""

import pathlib

from alembic import config as alembic_config
import fixtures

from nova_accel.db.migrations import migration
from nova_accel.db.migrations import schema_version

VERSION = 'next'

_STEP = f"""
import sqlalchemy as sa

from nova_accel.db.migrations import operations

revision = '{VERSION}'
down_revision = '{schema_version.NEWEST}'
branch_labels = None
depends_on = None


def upgrade() -> None:
    column = sa.Column(
        'height', sa.Integer, nullable=False, server_default='7'
    )
    operations.add_column('hosts', column)
    operations.create_index('hosts', 'height')
"""


class NextRelease(fixtures.Fixture):
    """This process is of that release: its schema has one step more."""

    def _setUp(self) -> None:
        versions = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (versions / 'height.py').write_text(_STEP)
        of_this = migration._config

        def of_next() -> alembic_config.Config:
            result = of_this()
            result.set_main_option('path_separator', 'newline')
            result.set_main_option(
                'version_locations',
                f'nova_accel.db:migrations/versions\n{versions}',
            )
            return result

        for name, value in (
            ('migrations.migration._config', of_next),
            ('migrations.schema_version.NEWEST', VERSION),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(f'nova_accel.db.{name}', value)
            )
