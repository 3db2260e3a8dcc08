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

"""A real Placement in uWSGI's processes, over MariaDB."""

import pathlib
import sys

import fixtures

from nova_accel.testing import database
from nova_accel.testing import scheduling
from rig.serving import nova_conf
from rig.serving import process
from rig.serving import uwsgi

_PROCESSES = 2


class ServedPlacement(scheduling.Placement):
    """Placement without Keystone, to which Nova's report client talks.

    :raises unittest.SkipTest: there is no MariaDB
    :raises ConfigurationError: it does not start; the text has its output
    """

    def setUp(self) -> None:
        # The skip has to be raised here, see testing.database.
        self._database = database.ForeignDatabase('mysql')
        super().setUp()

    def _setUp(self) -> None:
        self.useFixture(self._database)
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        path = directory / 'placement.conf'
        nova_conf.write(
            path,
            {
                'api': {'auth_strategy': 'noauth2'},
                'placement_database': {
                    'connection': self._database.engine.url.render_as_string(
                        hide_password=False
                    )
                },
            },
        )
        prefix = pathlib.Path(sys.prefix)
        process.run(
            prefix / 'bin/placement-manage',
            '--config-file',
            path,
            'db',
            'sync',
        )
        server = self.useFixture(
            uwsgi.Module(
                prefix,
                'placement.wsgi.api',
                _PROCESSES,
                directory / 'log',
                {'OS_PLACEMENT_CONFIG_DIR': str(directory)},
                options=(
                    '--enable-threads',
                    # Connections to a database do not survive a fork.
                    '--lazy-apps',
                    # A worker closes each connection when it has answered.
                    '--add-header=Connection: close',
                ),
            )
        )
        server.wait('/')
        self.use(f'http://{server.address}:{server.port}')
