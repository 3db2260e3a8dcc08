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

"""Calls of the accelerator API by an administrator's command.

The API gets the token of the administrator, and its policies decide.
"""

from collections.abc import Callable
from collections.abc import Iterator
import json
import re
from typing import Any
from urllib import parse

from keystoneauth1 import adapter as ks_adapter
from osc_lib import exceptions

from nova_accel import reason

_MICROVERSION = '2.5'

#: A warning in the header of an answer, with its text in quotes.
_WARNING = re.compile(r'299 nova_accel "((?:[^"\\]|\\.)*)"')

#: The most characters of a refusal that are shown.
_MAX_WORDS = 2000


class NotFound(exceptions.CommandError):
    """The API knows no such thing."""


def client_of(app: Any) -> ks_adapter.Adapter:
    """The adapter to the API, with the token of the one who types.

    :param app: the program, of a command
    """
    return app.client_manager.accelerator


def call(
    client: ks_adapter.Adapter,
    method: str,
    path: str,
    warn: Callable[[str], None] = lambda _text: None,
    **arguments: Any,
) -> Any:
    """The JSON of an answer, None if it has none.

    :param client: of the service type ``accelerator``
    :param path: below the version, for example ``/devices``
    :param warn: is told each warning of the answer
    :param arguments: ``json`` for the body, ``params`` for the query
    :raises CommandError: the API refuses it, as :class:`NotFound` with 404;
        the text has its words.
    """
    response = client.request(
        path,
        method,
        microversion=_MICROVERSION,
        raise_exc=False,
        headers={'Accept': 'application/json'},
        **arguments,
    )
    if response.status_code >= 400:
        kind = (
            NotFound
            if response.status_code == 404
            else exceptions.CommandError
        )
        raise kind(
            f'The accelerator API answers {method} {path} with '
            f'{response.status_code}: {_words(response)}'
        )
    for text in _warnings(response):
        warn(text)
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError as error:
        raise exceptions.CommandError(
            f'The accelerator API answers {method} {path} without JSON: '
            f'{error}'
        ) from error


def pages(
    client: ks_adapter.Adapter,
    path: str,
    name: str,
    query: dict[str, str] | None = None,
) -> Iterator[Any]:
    """Read all pages of a list: the values below its name, page by page.

    :param name: of the list in the body
    :param query: the arguments of the first page
    :raises CommandError: the API refuses it, or its pages have no end.
    """
    asked = dict(query or {})
    known = set()
    while True:
        body = call(client, 'GET', path, params=asked)
        try:
            page, marker = body[name], _marker(body.get(f'{name}_links', ()))
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise exceptions.CommandError(
                f'The accelerator API answers GET {path} with no list of '
                f'{name}'
            ) from error
        yield page
        if marker is None:
            return
        if marker in known:
            raise exceptions.CommandError(
                f'The accelerator API repeats the page of {path} after '
                f'{marker}'
            )
        known.add(marker)
        asked['marker'] = marker


def _marker(links: Any) -> str | None:
    """The marker of the next page, None if there is none.

    The address in the link may be one that this machine cannot reach.
    """
    for link in links:
        if link['rel'] == 'next':
            return parse.parse_qs(parse.urlsplit(link['href']).query)[
                'marker'
            ][0]
    return None


def _warnings(response: Any) -> Iterator[str]:
    """The warnings of an answer, which has all of them in one header."""
    for quoted in _WARNING.findall(response.headers.get('Warning', '')):
        yield re.sub(r'\\(.)', r'\1', quoted)


def _words(response: Any) -> str:
    """Why the API refuses: words in JSON in a string of JSON."""
    try:
        fault = json.loads(response.json()['error_message'])
        words = fault.get('faultstring') or fault['description']
    except (ValueError, KeyError, TypeError, AttributeError):
        words = response.text or response.reason
    return reason.printable(str(words)[:_MAX_WORDS])
