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

"""Counters of requests to the accelerator API, its database and Placement."""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

import collections
from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import dataclasses
import sys
from typing import Any

import fixtures
from nova.scheduler.client import report
import requests
import sqlalchemy as sa

from nova_accel.db.sql import engine

# Only SQLite's driver sends these as statements.
_OF_TRANSACTIONS = ('BEGIN', 'BEGIN IMMEDIATE', 'ROLLBACK')


@dataclasses.dataclass
class Calls:
    """The numbers of calls.

    ``api`` counts HTTP requests to the accelerator API. ``statements`` counts
    SQL statements in its database, without the beginnings and ends of
    transactions. ``placement`` counts HTTP requests to Placement by the
    calling module, which is ``ours`` for all of our modules. ``candidates``
    counts those for allocation candidates in the same way.
    """

    api: int = 0
    statements: int = 0
    placement: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter
    )
    candidates: collections.Counter[str] = dataclasses.field(
        default_factory=collections.Counter
    )


@contextlib.contextmanager
def counted() -> Iterator[Calls]:
    """Count the calls of this process, until the context ends."""
    calls = Calls()

    def count_statement(
        _connection: Any, _cursor: Any, statement: str, *_args: Any
    ) -> None:
        calls.statements += statement not in _OF_TRANSACTIONS

    listener = (
        engine.manager().writer.get_engine(),
        'before_cursor_execute',
        count_statement,
    )
    with contextlib.ExitStack() as stack:
        for name in ('get', 'post', 'put', 'delete'):
            _wrap(
                stack,
                report.SchedulerReportClient,
                name,
                lambda _client, path, *_args: _count_call(calls, path),
            )
        _wrap(
            stack,
            requests.Session,
            'send',
            lambda _session, request, *_: _count_request(calls, request),
        )
        sa.event.listen(*listener)
        stack.callback(sa.event.remove, *listener)
        yield calls


def _wrap(
    stack: contextlib.ExitStack,
    target: type,
    name: str,
    before: Callable[..., None],
) -> None:
    """Have a function called before each call of a method."""
    real = getattr(target, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        before(*args)
        return real(*args, **kwargs)

    stack.enter_context(
        fixtures.MonkeyPatch(
            f'{target.__module__}.{target.__name__}.{name}', wrapped
        )
    )


def _count_call(calls: Calls, path: str) -> None:
    name = caller()
    calls.placement[name] += 1
    calls.candidates[name] += path.startswith('/allocation_candidates')


def _count_request(calls: Calls, request: requests.PreparedRequest) -> None:
    calls.api += 'accelerator' in (request.url or '')


def caller() -> str:
    """The module that calls Nova's client of Placement."""
    frame = sys._getframe()
    name = ''
    while frame.f_back is not None:
        frame = frame.f_back
        name = frame.f_globals['__name__']
        if name.startswith('nova_accel.testing.'):
            continue
        if name.startswith('nova_accel.'):
            return 'ours'
        if name.startswith('nova.') and not name.startswith(
            ('nova.scheduler.client.', 'nova.tests.')
        ):
            return name
    return name
