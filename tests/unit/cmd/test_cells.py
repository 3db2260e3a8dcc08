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


import fixtures
from oslo_config import cfg
import testtools

from nova_accel.cmd import cells


class TestConnect(testtools.TestCase):
    def test_the_mapping_of_a_cell_can_be_read(self) -> None:
        """It refers to an option that Nova registers with RPC."""
        configuration = cfg.ConfigOpts()
        configuration([], default_config_files=[], default_config_dirs=[])
        for group in ('api_database', 'database'):
            configuration.register_opt(
                cfg.IntOpt('max_retries', default=10), group
            )
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.cmd.cells.nova_conf.CONF', configuration
            )
        )
        configured = []
        for name in ('main_db', 'api_db'):
            self.useFixture(
                fixtures.MonkeyPatch(
                    f'nova_accel.cmd.cells.{name}.configure', configured.append
                )
            )
        cells.connect()
        self.assertEqual([configuration] * 2, configured)
        self.assertEqual('rabbit://', configuration.transport_url)
        # No one waits 100 seconds to read where a database is that is away.
        self.assertEqual(0, configuration.api_database.max_retries)
        self.assertEqual(0, configuration.database.max_retries)
