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

"""Databases for many short tests."""

import fixtures

from nova_accel.testing import database
from rig.loopback import kept_connections
from rig.loopback import shared_statements


class QuickDatabases(fixtures.Fixture):
    """Those that are made from now on.

    They keep their connections, and have each statement compiled once.
    """

    def _setUp(self) -> None:
        self.useFixture(kept_connections.KeptConnections())
        self.useFixture(shared_statements.SharedStatements())


class QuickDatabase(database.Database):
    """One of them."""

    def _setUp(self) -> None:
        self.useFixture(QuickDatabases())
        super()._setUp()
