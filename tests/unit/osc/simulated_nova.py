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

"""Nova's API with servers that move, for commands that move them."""

from collections.abc import Callable
import dataclasses
import json
import re
from typing import Any
from urllib import parse

from keystoneauth1 import adapter as ks_adapter
from keystoneauth1 import noauth
from keystoneauth1 import session
import requests
from requests import adapters

_URL = 'http://nova.test'

_MOVED = 'compute-2'

#: The one whose migrations these are.
USER = 'e' * 32


@dataclasses.dataclass
class Server:
    """A server.

    :param refuses: the actions that Nova does not begin, with its words
    :param fails: the actions that fail after they have begun, likewise
    :param leave: called when it has nothing on its first host any more
    :param arrive: called with the host to which it has moved
    """

    uuid: str
    name: str
    leave: Callable[[], None]
    arrive: Callable[[str], None] = lambda _host: None
    status: str = 'ACTIVE'
    task: str | None = None
    host: str = 'compute-1'
    extra_specs: dict[str, str] = dataclasses.field(default_factory=dict)
    refuses: dict[str, str] = dataclasses.field(default_factory=dict)
    fails: dict[str, str] = dataclasses.field(default_factory=dict)
    migrations: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    actions: list[tuple[str, str | None]] = dataclasses.field(
        default_factory=list
    )
    is_locked: bool = False
    metadata: dict[str, str] = dataclasses.field(default_factory=dict)
    begun: str | None = None
    target: str = _MOVED
    before: str = ''

    def shown(self) -> dict[str, Any]:
        return {
            'id': self.uuid,
            'name': self.name,
            'status': self.status,
            'OS-EXT-STS:task_state': self.task,
            'OS-EXT-SRV-ATTR:hypervisor_hostname': self.host,
            'flavor': {'extra_specs': self.extra_specs},
            'locked': self.is_locked,
            'metadata': self.metadata,
        }

    def begin(self, action: str, wanted: dict[str, Any] | None = None) -> None:
        self.target = (wanted or {}).get('host') or _MOVED
        self.begun = action
        self.actions.append((action, None))
        self.before = self.status
        self.task = {
            'os-migrateLive': 'migrating',
            'migrate': 'resize_prep',
        }.get(action)

    def end(self) -> None:
        """What has begun ends, as it is to."""
        action, self.begun, self.task = self.begun, None, None
        if action is None:
            return
        if action in self.fails:
            self.actions[-1] = (action, self.fails[action])
        elif action == 'os-migrateLive':
            self.host = self.target
            self.leave()
            self.arrive(self.host)
        elif action == 'migrate':
            self.add_migration('migration', source=self.host)
            self.host, self.status = self.target, 'VERIFY_RESIZE'
            self.arrive(self.host)
        else:
            self.status = 'SHUTOFF'
            for migration in self.migrations:
                migration['status'] = 'confirmed'
            self.leave()

    def add_migration(
        self,
        kind: str,
        created_at: str = '2120-01-01T00:00:00.000000',
        status: str = 'finished',
        user_id: str = USER,
        source: str = 'compute-1',
    ) -> None:
        self.migrations.append(
            {
                'id': len(self.migrations) + 1,
                'instance_uuid': self.uuid,
                'migration_type': kind,
                'status': status,
                'source_node': source,
                'created_at': created_at,
                'user_id': user_id,
            }
        )


#: Actions as the list of a server's actions calls them.
_CALLED = {'os-migrateLive': 'live-migration', 'migrate': 'migrate'}


class SimulatedNova:
    """The API, and an adapter to it.

    :ivar servers: uuid -> server
    :ivar asked: the actions that were asked for: server's name, action
    :ivar most_moving: how many servers have moved at a time
    :ivar answers: path -> what is answered to a GET, if it is no server's
    :ivar away: how many of the next requests are answered with 503
    :ivar before_each: called before each action that is asked for
    """

    def __init__(self) -> None:
        self.servers: dict[str, Server] = {}
        self.asked: list[tuple[str, str]] = []
        self.most_moving = 0
        self.away = 0
        self.answers: dict[str, dict[str, Any]] = {
            '/os-hypervisors/detail': {
                'hypervisors': [
                    {
                        'id': f'id-{number}',
                        'hypervisor_hostname': f'compute-{number}',
                        'service': {'host': f'compute-{number}.service'},
                    }
                    for number in range(1, 5)
                ]
            }
        }
        self.before_each: Callable[[Server, str], None] = (
            lambda _server, _action: None
        )
        line = requests.Session()
        line.mount(_URL, _Line(self))
        self.adapter = _Adapter(
            session.Session(auth=_User(), session=line),
            service_type='compute',
            endpoint_override=_URL,
        )

    def pass_time(self, _seconds: float = 0) -> None:
        """All that has begun comes to its end."""
        for server in self.servers.values():
            server.end()

    def answer(
        self, method: str, path: str, body: Any
    ) -> tuple[int, dict[str, Any] | None]:
        if self.away:
            self.away -= 1
            return 503, {'overLimit': {'message': 'too busy'}}
        path, _mark, query = path.partition('?')
        if path == '/os-migrations':
            return 200, {'migrations': self._migrations(query)}
        if path in self.answers:
            # A list ends with an empty page.
            return 200, (
                {name: [] for name in self.answers[path]}
                if 'marker' in query
                else self.answers[path]
            )
        if path == '/servers/detail':
            return 200, {'servers': self._servers(query)}
        match = re.fullmatch('/servers/([^/]+)(/.*)?', path)
        assert match is not None, path
        server = self.servers.get(match[1])
        if server is None:
            return 404, {
                'itemNotFound': {'message': 'Instance could not be found.'}
            }
        if match[2] is None:
            return 200, {'server': server.shown()}
        if method == 'POST':
            [(action, wanted)] = body.items()
            return self._act(server, action, wanted)
        return self._actions(server, match[2])

    def _migrations(self, query: str) -> list[dict[str, Any]]:
        wanted = dict(parse.parse_qsl(query))
        return [
            migration
            for server in self.servers.values()
            for migration in server.migrations
            if wanted.items() <= migration.items()
        ]

    def _servers(self, query: str) -> list[dict[str, Any]]:
        """Those of a host, one on each page; all of a service host."""
        wanted = dict(parse.parse_qsl(query))
        if 'host' in wanted:
            return [
                server.shown()
                for server in self.servers.values()
                if f'{server.host}.service' == wanted['host']
            ]
        assert wanted['all_tenants'] == '1'
        here = sorted(
            server.uuid
            for server in self.servers.values()
            if server.host == wanted['node']
            and server.uuid > wanted.get('marker', '')
        )
        return [self.servers[uuid].shown() for uuid in here[:1]]

    def _act(
        self, server: Server, action: str, wanted: dict[str, Any] | None
    ) -> tuple[int, dict[str, Any] | None]:
        self.asked.append((server.name, action))
        self.before_each(server, action)
        if server.task is not None:
            return 409, {
                'conflictingRequest': {
                    'message': f"Cannot '{action}' instance {server.uuid} "
                    f'while it is in task_state {server.task}'
                }
            }
        if action in server.refuses:
            return 409, {
                'conflictingRequest': {'message': server.refuses[action]}
            }
        server.begin(action, wanted)
        self.most_moving = max(
            self.most_moving,
            sum(each.task is not None for each in self.servers.values()),
        )
        return 202, None

    @staticmethod
    def _actions(server: Server, path: str) -> tuple[int, dict[str, Any]]:
        if path == '/os-instance-actions':
            return 200, {
                'instanceActions': [
                    {
                        'action': _CALLED.get(action, action),
                        'request_id': f'req-{number}',
                        'start_time': f'2026-11-24T00:00:{number:02}.000000',
                    }
                    for number, (action, _why) in enumerate(server.actions)
                ]
            }
        number = int(path.rpartition('-')[2])
        why = server.actions[number][1]
        return 200, {
            'instanceAction': {
                'events': [
                    {
                        'event': 'conductor_migrate_server',
                        'result': 'Error',
                        'details': 'No valid host was found.',
                    },
                    {
                        'event': 'compute_prep_resize',
                        'result': 'Success' if why is None else 'Error',
                        'details': why,
                    },
                ]
            }
        }


class _Adapter(ks_adapter.Adapter):
    def _get_connection(self) -> None:
        """Resources of openstacksdk ask for one, and do without it."""


class _User(noauth.NoAuth):
    def get_user_id(self, *_args: Any, **_kwargs: Any) -> str:
        return USER


class _Line(adapters.BaseAdapter):
    """The network between a client and the API."""

    def __init__(self, nova: SimulatedNova) -> None:
        super().__init__()
        self._nova = nova

    def send(
        self, request: requests.PreparedRequest, **_kwargs: Any
    ) -> requests.Response:
        assert request.url is not None and request.method is not None
        status, body = self._nova.answer(
            request.method,
            request.url.removeprefix(_URL),
            json.loads(request.body) if request.body else None,
        )
        response = requests.Response()
        response.status_code = status
        response.request = request
        response.url = request.url
        response._content = b'' if body is None else json.dumps(body).encode()
        return response

    def close(self) -> None:
        """There is nothing to close."""
