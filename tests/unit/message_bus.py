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

"""The message buses of Nova's cells, in this process."""

from collections.abc import Callable
import copy
import queue
import socket
from typing import Any

import fixtures
from nova import context as nova_context
from nova import exception as nova_exceptions
from nova import objects
from nova import rpc
from oslo_messaging import conffixture
from oslo_messaging._drivers import impl_fake
from oslo_utils import uuidutils
import testtools

from nova_accel import conf
from nova_accel.model.devices import programmable
from nova_accel.virt import rpc_agent

CONF = conf.CONF


class MessageBus(fixtures.Fixture):
    """Two cells, each with a bus of its own; and that of nova-api."""

    def _setUp(self) -> None:
        objects.register_all()
        bus = self.useFixture(conffixture.ConfFixture(CONF))
        bus.transport_url = 'fake:/'
        bus.response_timeout = 5
        self.addCleanup(impl_fake.FakeExchangeManager._exchanges.clear)
        self._cells = [self._cell(f'cell{number}') for number in range(2)]
        rpc.init(CONF)
        self.addCleanup(rpc.cleanup)
        self._hosts: dict[str, int] = {}
        self.useFixture(
            fixtures.MockPatch(
                'nova.objects.HostMapping.get_by_host', self._mapping
            )
        )
        self.useFixture(
            fixtures.MockPatch('nova.context.set_target_cell', self._target)
        )

    def add_host(
        self,
        name: str,
        programmer: Any = None,
        bitstreams: Any = None,
        cell: int = 0,
    ) -> None:
        """A host of Nova, whose agent serves if it has a programmer."""
        self._hosts[name] = cell
        if programmer is None:
            return
        with fixtures.MonkeyPatch('nova.rpc.TRANSPORT', self.transport(cell)):
            agent = rpc_agent.RpcAgent(
                name,
                rpc_agent.Endpoint(
                    programmer,
                    bitstreams,
                    programmer.replace,
                    programmer.set_profile,
                    programmer.hurry,
                ),
            )
            agent.start()
        self.addCleanup(agent.stop)

    def lose(self, cell: int = 0) -> None:
        """From now on no one listens where the cell's bus was."""
        mapping, _transport = self._cells[cell]
        with socket.create_server(('127.0.0.1', 0)) as closed:
            port = closed.getsockname()[1]
        transport = rpc.create_transport(f'rabbit://127.0.0.1:{port}/')
        self.addCleanup(transport.cleanup)
        self._cells[cell] = mapping, transport

    def cell(self, cell: int = 0) -> Any:
        """A cell, as Nova maps servers and hosts to it."""
        return self._cells[cell][0]

    def transport(self, cell: int = 0) -> Any:
        """A cell's bus."""
        return self._cells[cell][1]

    def _cell(self, exchange: str) -> tuple[Any, Any]:
        CONF.set_override('control_exchange', exchange)
        try:
            transport = rpc.create_transport(None)
        finally:
            CONF.clear_override('control_exchange')
        self.addCleanup(transport.cleanup)
        return (
            objects.CellMapping(uuid=uuidutils.generate_uuid(), name=exchange),
            transport,
        )

    def _mapping(self, context: Any, host: str) -> Any:
        if host not in self._hosts:
            raise nova_exceptions.HostMappingNotFound(name=host)
        return objects.HostMapping(
            host=host, cell_mapping=self._cells[self._hosts[host]][0]
        )

    def _target(self, context: Any, cell: Any) -> None:
        context.cell_uuid = cell.uuid
        [context.mq_connection] = [
            transport
            for mapping, transport in self._cells
            if mapping.uuid == cell.uuid
        ]


class FakeProgrammer:
    """Takes note of what it is asked for, and fails when told so.

    :ivar asked: deployable uuid, what is wanted, asker and project, each time
    :ivar replaced: project, instance uuid and uuids of ARQs, each time
    :ivar profiles: project, instance uuid, device profile and its groups, each
        time
    :ivar effect: is called with the instance's uuid and the device profile, if
        it does not fail
    :ivar fetched: uuids of bitstreams, which come when they do
    :ivar hurried: one thing for each time that it was hurried
    :ivar stocked: deployable and bitstream uuids, likewise
    :ivar fault: what it raises from now on
    :ivar shell_loading: what it was told of that the last time
    :ivar is_shell: whether what it loads is one
    """

    def __init__(self) -> None:
        self.shell_loading: Any = None
        self.is_shell = False
        self.asked: list[tuple[Any, ...]] = []
        self.replaced: list[tuple[Any, ...]] = []
        self.profiles: list[tuple[Any, ...]] = []
        self.effect: Callable[[str, str | None], None] = lambda *_asked: None
        self.fetched: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.hurried: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.stocked: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        self.fault: Exception | None = None

    def program(
        self,
        deployable_uuid: str,
        wanted: Any,
        asker: Any,
        context: Any,
        shell_loading: Any,
    ) -> programmable.Contents:
        self.asked.append((deployable_uuid, wanted, asker, copy.copy(context)))
        self.shell_loading = shell_loading
        self._fail()
        return programmable.Contents(
            wanted.bitstream_id, '', '', is_shell=self.is_shell
        )

    def prefetch(self, bitstream_id: str, context: Any) -> None:
        self.fetched.put(bitstream_id)
        self._fail()

    def stock(self, deployable_uuid: str, bitstream_id: str) -> None:
        self.stocked.put((deployable_uuid, bitstream_id))

    def hurry(self) -> None:
        self.hurried.put(None)

    def replace(
        self, context: Any, instance_uuid: str, arq_uuids: Any
    ) -> None:
        self.replaced.append((context.project_id, instance_uuid, arq_uuids))
        self._fail()

    def set_profile(
        self, context: Any, instance_uuid: str, name: str | None, groups: Any
    ) -> None:
        self.profiles.append((context.project_id, instance_uuid, name, groups))
        self._fail()
        self.effect(instance_uuid, name)

    def _fail(self) -> None:
        if self.fault is not None:
            raise self.fault


class TestCase(testtools.TestCase):
    """Tests that send messages.

    :ivar bus: for them
    :ivar context: of who sends them
    :ivar log: what is logged
    :ivar programmer: for a host
    """

    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        CONF(
            [], project='nova', default_config_files=[], default_config_dirs=[]
        )
        self.addCleanup(CONF.reset)
        self.bus = self.useFixture(MessageBus())
        self.programmer = FakeProgrammer()
        self.context = nova_context.RequestContext(
            'user', 'project', auth_token='token'
        )
