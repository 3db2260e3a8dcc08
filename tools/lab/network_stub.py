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

"""The smallest network service that Nova works with.

Nova cannot be told that there is none: to show a server it asks for its ports
and security groups. Collections are empty, and all else is refused, so that
whatever really touches the network fails.
"""

from collections.abc import Callable
from collections.abc import Iterable
import json
from typing import Any

_COLLECTIONS = {
    'extensions': 'extensions',
    'floatingips': 'floatingips',
    'networks': 'networks',
    'ports': 'ports',
    'quotas': 'quotas',
    'routers': 'routers',
    'security-groups': 'security_groups',
    'subnets': 'subnets',
}


def application(
    environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    status, body = _answer(environ)
    document = json.dumps(body).encode()
    start_response(
        status,
        [
            ('Content-Type', 'application/json'),
            ('Content-Length', str(len(document))),
        ],
    )
    return [document]


def _answer(environ: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    parts = [part for part in environ['PATH_INFO'].split('/') if part]
    if environ['REQUEST_METHOD'] == 'GET':
        match parts:
            case []:
                return '200 OK', {
                    'versions': [
                        {
                            'id': 'v2.0',
                            'status': 'CURRENT',
                            'links': [{'rel': 'self', 'href': _base(environ)}],
                        }
                    ]
                }
            case ['v2.0']:
                return '200 OK', {'resources': []}
            case ['v2.0', name] if name in _COLLECTIONS:
                return '200 OK', {_COLLECTIONS[name]: []}
    return '404 Not Found', {
        'NeutronError': {
            'type': 'NotFound',
            'detail': '',
            'message': f'not here: {environ["PATH_INFO"]}',
        }
    }


def _base(environ: dict[str, Any]) -> str:
    return f'{environ["wsgi.url_scheme"]}://{environ["HTTP_HOST"]}/v2.0/'
