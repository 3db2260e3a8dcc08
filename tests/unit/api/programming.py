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

"""A host whose FPGA can be programmed, behind a message bus."""

from typing import Any

from unit import message_bus
from unit.api import base

DEPLOYABLE = base.DEPLOYABLE
BITSTREAM = base.numbered_uuid(77)


class ProgrammingTestCase(base.ApiTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.bus = self.useFixture(message_bus.MessageBus())
        self.host = message_bus.FakeProgrammer()
        self.bus.add_host(base.HOSTNAME, self.host, self.host)
        self.report_host()

    def occupy(self, *instances: str, project: str = base.PROJECT) -> None:
        """Give servers of a project something of the region."""
        self.create_profile()
        for instance in instances:
            self.bind(self.create_arq(project), instance=instance)

    def asked(self) -> Any:
        """The only time that the host was asked: for what, by whom."""
        [(deployable, wanted, asker, _context)] = self.host.asked
        self.host.asked.clear()
        return (
            deployable,
            wanted.bitstream_id,
            asker.project_id,
            asker.instance_uuid,
        )

    def assert_asked(self, instance: str | None) -> None:
        """It was for the region, by the project, for this server of it."""
        self.assertEqual(
            (DEPLOYABLE, BITSTREAM, base.PROJECT, instance), self.asked()
        )

    def be_silent(self) -> None:
        self.useFixture(base.SilentHosts())
