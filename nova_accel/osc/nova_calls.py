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

"""Calls of Nova's API by an administrator's command."""

from collections.abc import Iterator
from typing import Any

from keystoneauth1 import adapter as ks_adapter
from osc_lib import exceptions

from nova_accel import reason

#: With the details of the events of an action, and who has begun a migration.
MICROVERSION = '2.84'

#: Seconds.
_TIMEOUT_S = 60

#: The most characters of Nova's words that are shown.
_MAX_WORDS = 500


class Refused(exceptions.CommandError):
    """Nova does not do what it is asked; the text has its words."""


class NotFound(Refused):
    """Nova has no such thing."""


def client_of(app: Any) -> ks_adapter.Adapter:
    """The adapter to Nova's API, with the token of the one who types.

    :param app: the program, of a command
    """
    return app.client_manager.sdk_connection.compute


def call(
    client: ks_adapter.Adapter, method: str, path: str, **arguments: Any
) -> Any:
    """The JSON of an answer, None if it has none.

    :param client: of the service type ``compute``
    :param path: below the version, for example ``/servers``
    :param arguments: ``json`` for the body, ``params`` for the query
    :raises Refused: it is not possible, with a status from 400 to 499
    :raises CommandError: Nova is in trouble.
    """
    response = client.request(
        path,
        method,
        microversion=MICROVERSION,
        raise_exc=False,
        timeout=_TIMEOUT_S,
        headers={'Accept': 'application/json'},
        **arguments,
    )
    if response.status_code == 404:
        raise NotFound(words(_message(response)))
    if 400 <= response.status_code < 500:
        raise Refused(words(_message(response)))
    if response.status_code >= 500:
        raise exceptions.CommandError(
            f'Nova answers {method} {path} with {response.status_code}: '
            f'{words(_message(response))}'
        )
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError as error:
        raise exceptions.CommandError(
            f'Nova answers {method} {path} without JSON: {error}'
        ) from error


def listed(
    client: ks_adapter.Adapter, path: str, name: str, **query: str
) -> Iterator[Any]:
    """Each thing of a list, page by page.

    :param name: of the list in the body
    :param query: the arguments of all pages
    :raises CommandError: as :func:`call`.
    """
    while True:
        page = call(client, 'GET', path, params=query)[name]
        yield from page
        if not page:
            return
        query['marker'] = page[-1]['id']


def words(text: Any) -> str:
    """Words of Nova or of a tenant for a terminal, which may be any."""
    return reason.printable(' '.join(str(text).split())[:_MAX_WORDS])


def _message(response: Any) -> str:
    """Why Nova refuses: ``{"conflictingRequest": {"message": ...}}``."""
    try:
        [fault] = response.json().values()
        return str(fault['message'])
    except (AttributeError, KeyError, TypeError, ValueError):
        return str(response.text or response.reason)
