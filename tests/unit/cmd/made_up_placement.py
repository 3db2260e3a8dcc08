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

"""A Placement that is made up, as Nova's client calls it."""

from collections.abc import Callable
from collections.abc import Mapping
import copy
import json
import threading
import types
from typing import Any
from urllib import parse

import fixtures
from keystoneauth1 import exceptions as ks_exceptions

_CHANGED = 'placement.concurrent_update'

#: Amounts of resource classes.
Amounts = dict[str, int]


class MadeUpPlacement(fixtures.Fixture):
    """Its generations and refusals are Placement's.

    :ivar inventories: provider uuid -> resource class -> inventory
    :ivar ours: the providers that are ours
    :ivar allocations: consumer -> provider uuid -> amounts
    :ivar changes: method and path of each request that asked for a change
    :ivar meanwhile: calls, of which each is made before another change, as
        if somebody else were first
    :ivar faults: path -> the status that a change of it is answered with
    :ivar lost: whether the answer to the change of this number is lost, or
        the change itself; from then on there is no connection
    """

    def __init__(self) -> None:
        super().__init__()
        self.inventories: dict[str, dict[str, dict[str, Any]]] = {}
        self.ours: set[str] = set()
        self.allocations: dict[str, dict[str, Amounts]] = {}
        self.changes: list[tuple[str, str]] = []
        self.meanwhile: list[Callable[[], None]] = []
        self.faults: dict[str, int] = {}
        self.lost: tuple[int, str] | None = None
        self._generations: dict[str, int] = {}
        self._lock = threading.RLock()

    def _setUp(self) -> None:
        client = types.SimpleNamespace(
            **{
                method: self._caller(method)
                for method in ('get', 'put', 'delete')
            }
        )
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.scheduler.client.report.report_client_singleton',
                lambda: client,
            )
        )
        self.useFixture(fixtures.MonkeyPatch('time.sleep', lambda _s: None))

    def provider(self, rp_uuid: str, **totals: int) -> None:
        """Let there be a provider with so many units of each class."""
        self.inventories[rp_uuid] = {
            name: inventory(total) for name, total in totals.items()
        }

    def allocate(self, consumer: str, rp_uuid: str, **amounts: int) -> None:
        """Let a consumer have so much more, as if another one had done it."""
        self.allocations.setdefault(consumer, {})[rp_uuid] = amounts
        self._count_up(consumer)

    def state(self) -> tuple[Any, Any]:
        """All that it has, apart from generations."""
        return copy.deepcopy((self.inventories, self.allocations))

    def _caller(self, method: str) -> Callable[..., Any]:
        def call(path: str, **further: Any) -> Any:
            with self._lock:
                if method == 'get':
                    self._check_connected()
                    return self._get(path)
                return self._change(method, path, further.get('data'))

        return call

    def _check_connected(self) -> None:
        if self.lost is not None and len(self.changes) > self.lost[0]:
            raise ks_exceptions.ConnectFailure('lost')

    def _get(self, path: str) -> Any:
        parts = parse.urlsplit(path)
        _root, kind, *names = parts.path.split('/')
        if kind == 'allocations':
            return answer(200, self._of_consumer(names[0]))
        if not names:
            return answer(200, {'resource_providers': self._of_tree()})
        if names[0] not in self.inventories:
            return answer(404)
        return answer(200, self._of_provider(*names))

    def _of_tree(self) -> list[dict[str, Any]]:
        return [
            {'uuid': each, 'name': each, 'parent_provider_uuid': 'node'}
            for each in sorted(self.ours & self.inventories.keys())
        ]

    def _of_consumer(self, consumer: str) -> dict[str, Any]:
        held = self.allocations.get(consumer)
        if not held:
            return {'allocations': {}}
        return {
            'allocations': {
                rp_uuid: {'resources': amounts, 'generation': 0}
                for rp_uuid, amounts in held.items()
            },
            'project_id': 'project',
            'user_id': 'user',
            'consumer_generation': self._generations.get(consumer, 0),
        }

    def _of_provider(self, rp_uuid: str, *what: str) -> dict[str, Any]:
        generation = self._generations.get(rp_uuid, 0)
        if what == ('inventories',):
            return {
                'inventories': self.inventories[rp_uuid],
                'resource_provider_generation': generation,
            }
        if what == ('allocations',):
            return {
                'allocations': {
                    consumer: {'resources': held[rp_uuid]}
                    for consumer, held in self.allocations.items()
                    if rp_uuid in held
                }
            }
        return {'uuid': rp_uuid, 'generation': generation}

    def _change(self, method: str, path: str, data: Any) -> Any:
        self._check_connected()
        self.changes.append((method, path))
        number = len(self.changes) - 1
        if self.lost == (number, 'change'):
            raise ks_exceptions.ConnectFailure('lost')
        if self.meanwhile:
            self.meanwhile.pop()()
        answer = self._changed(method, path, data)
        if self.lost == (number, 'answer'):
            raise ks_exceptions.ConnectFailure('lost')
        return answer

    def _changed(self, method: str, path: str, data: Any) -> Any:
        if path in self.faults:
            return answer(self.faults[path], {'errors': [{'code': 'fault'}]})
        _root, kind, name, *_what = path.split('/')
        if method == 'delete':
            return self._delete(name)
        if kind == 'allocations':
            return self._put_allocations(name, data)
        return self._put_inventories(name, data)

    def _delete(self, rp_uuid: str) -> Any:
        if rp_uuid not in self.inventories:
            return answer(404)
        if self._used(rp_uuid):
            return _refusal('in use')
        del self.inventories[rp_uuid]
        return answer(204)

    def _put_allocations(self, consumer: str, data: dict[str, Any]) -> Any:
        if data['consumer_generation'] != self._generations.get(consumer, 0):
            return _refusal('changed', _CHANGED)
        wanted = {
            rp_uuid: of_provider['resources']
            for rp_uuid, of_provider in data['allocations'].items()
        }
        for rp_uuid, amounts in wanted.items():
            if rp_uuid not in self.inventories:
                return answer(
                    400,
                    {'errors': [{'detail': f'{rp_uuid} does not exist'}]},
                )
            if not self._has_room(consumer, rp_uuid, amounts):
                return _refusal(f'no room at {rp_uuid}')
        self.allocations[consumer] = wanted
        self._count_up(consumer)
        return answer(204)

    def _has_room(
        self, consumer: str, rp_uuid: str, amounts: Mapping[str, int]
    ) -> bool:
        others = self._used(rp_uuid, consumer)
        return all(
            amount + others.get(name, 0)
            <= _capacity(self.inventories[rp_uuid].get(name))
            for name, amount in amounts.items()
        )

    def _used(self, rp_uuid: str, without: str | None = None) -> Amounts:
        used: Amounts = {}
        for consumer, held in self.allocations.items():
            if consumer != without:
                for name, amount in held.get(rp_uuid, {}).items():
                    used[name] = used.get(name, 0) + amount
        return used

    def _put_inventories(self, rp_uuid: str, data: dict[str, Any]) -> Any:
        if rp_uuid not in self.inventories:
            return answer(404)
        generation = self._generations.get(rp_uuid, 0)
        if data['resource_provider_generation'] != generation:
            return _refusal('changed', _CHANGED)
        if self._used(rp_uuid).keys() - data['inventories'].keys():
            return _refusal('in use')
        self.inventories[rp_uuid] = data['inventories']
        self._count_up(rp_uuid)
        return answer(200, data)

    def set_inventories(self, rp_uuid: str, **totals: int) -> None:
        """As if somebody else had done it."""
        self.provider(rp_uuid, **totals)
        self._count_up(rp_uuid)

    def _count_up(self, name: str) -> None:
        self._generations[name] = self._generations.get(name, 0) + 1


def inventory(total: int, reserved: int = 0) -> dict[str, Any]:
    """The inventory of a class, as Cyborg writes it."""
    return {
        'total': total,
        'max_unit': total,
        'min_unit': 1,
        'step_size': 1,
        'allocation_ratio': 1.0,
        'reserved': reserved,
    }


def _capacity(found: Mapping[str, Any] | None) -> int:
    return 0 if found is None else int(found['total'] - found['reserved'])


def _refusal(detail: str, code: str = 'placement.undefined_code') -> Any:
    return answer(409, {'errors': [{'code': code, 'detail': detail}]})


def answer(status: int, body: Any = None) -> Any:
    """An answer over HTTP, as keystoneauth has it."""
    text = '' if body is None else json.dumps(body)
    return types.SimpleNamespace(
        status_code=status,
        text=text,
        content=text.encode(),
        json=lambda: json.loads(text),
    )
