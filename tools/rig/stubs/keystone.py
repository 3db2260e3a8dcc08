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

"""A stub of Keystone v3: passwords, tokens, a catalog, unified limits.

All is in memory.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import datetime
import hmac
from typing import Any
import uuid

import webob
import webob.dec
import webob.exc

from rig.stubs import keystone_limits

REGION = 'RegionOne'

_LIFETIME = datetime.timedelta(days=1)
_DOMAIN = {'id': 'default', 'name': 'Default'}
#: The scope in a request for a token, and in the token.
_SYSTEM_SCOPE = {'system': {'all': True}}


@dataclasses.dataclass(frozen=True)
class Project:
    """A project of the default domain."""

    id: str
    name: str


@dataclasses.dataclass(frozen=True)
class User:
    """A user of the default domain, and its roles in its one project.

    :param system_roles: its roles on the system as a whole
    """

    id: str
    name: str
    password: str
    project: Project
    roles: tuple[str, ...]
    system_roles: tuple[str, ...] = ()


class Keystone:
    """The WSGI application, mounted at ``url``.

    It answers the requests of one cloud's clients and of
    ``keystonemiddleware``. They are version discovery, password
    authentication scoped to the user's project or to the system, and the
    validation, revocation and catalog of a token. An administrator, and
    whoever reads the system as a whole, gets its services, endpoints, regions
    and projects, and their limits.
    """

    def __init__(self, url: str, users: Iterable[User]) -> None:
        self._url = url
        self._users = {user.name: user for user in users}
        self._tokens: dict[str, dict[str, Any]] = {}
        self._catalog: dict[str, dict[str, Any]] = {}
        self._limits = keystone_limits.Limits()
        self.register('identity', 'keystone', f'{url}/v3')

    def add(self, user: User) -> None:
        """Add a user."""
        self._users[user.name] = user

    def register(self, type_: str, name: str, url: str) -> None:
        """Put a service into the catalog of all tokens made from now on."""
        self._catalog[type_] = {
            'id': name,
            'type': type_,
            'name': name,
            'endpoints': [
                {
                    'id': f'{name}-{interface}',
                    'interface': interface,
                    'region': REGION,
                    'region_id': REGION,
                    'url': url,
                }
                for interface in ('public', 'internal', 'admin')
            ],
        }

    def issue(self, user: User, roles: Iterable[str] | None = None) -> str:
        """Make a token of the user in its project.

        :param roles: of the token, instead of the user's own
        """
        return self._issue(
            user,
            user.roles if roles is None else roles,
            {
                'project': {
                    'id': user.project.id,
                    'name': user.project.name,
                    'domain': _DOMAIN,
                },
                'is_domain': False,
            },
        )

    def _issue(
        self, user: User, roles: Iterable[str], scope: Mapping[str, Any]
    ) -> str:
        now = datetime.datetime.now(datetime.UTC)
        token_id = uuid.uuid4().hex
        self._tokens[token_id] = {
            'methods': ['password'],
            'user': {
                'id': user.id,
                'name': user.name,
                'domain': _DOMAIN,
                'password_expires_at': None,
            },
            **scope,
            'roles': [{'id': role, 'name': role} for role in roles],
            'catalog': list(self._catalog.values()),
            'issued_at': _time(now),
            'expires_at': _time(now + _LIFETIME),
            'audit_ids': [uuid.uuid4().hex],
        }
        return token_id

    @webob.dec.wsgify
    def __call__(self, request: webob.Request) -> webob.Response:
        route = request.method, request.path_info.rstrip('/')
        if route == ('GET', ''):
            return webob.Response(
                status=300, json={'versions': {'values': [self._version()]}}
            )
        if route == ('GET', '/v3'):
            return webob.Response(json={'version': self._version()})
        if route == ('POST', '/v3/auth/tokens'):
            return self._authenticate(request)
        if route == ('GET', '/v3/auth/tokens'):
            token_id = self._subject(request)
            return _token_response(200, token_id, self._tokens[token_id])
        if route == ('DELETE', '/v3/auth/tokens'):
            del self._tokens[self._subject(request)]
            return webob.Response(status=204)
        if route == ('GET', '/v3/auth/catalog'):
            token = self._tokens[self._caller(request)]
            return webob.Response(json={'catalog': token['catalog']})
        place = request.path_info.strip('/').split('/')
        if place[0] == 'v3' and place[1:]:
            answer = self._administered(request, place[1:])
            if answer is not None:
                return answer
        return _error(404, f'the stub of Keystone has no {" ".join(route)}')

    def _administered(
        self, request: webob.Request, place: list[str]
    ) -> webob.Response | None:
        """What an administrator asks for, None if there is no such thing.

        :param place: the parts of the path after the version
        """
        token = self._tokens[self._caller(request)]
        roles = {role['name'] for role in token['roles']}
        reads = request.method == 'GET' and 'system' in token
        if 'admin' not in roles and not reads:
            return _error(403, 'You are not authorized.')
        name, *rest = place
        found = {
            'services': self._services(),
            'endpoints': self._endpoints(),
            'projects': self._projects(),
            'regions': [{'id': REGION}],
        }.get(name)
        if found is None:
            return self._limits.answer(request, place)
        if request.method != 'GET':
            return None
        if not rest:
            return webob.Response(
                json={name: keystone_limits.chosen(found, request.GET)}
            )
        for each in found:
            if [each['id']] == rest:
                return webob.Response(json={name.removesuffix('s'): each})
        return None

    def _services(self) -> list[dict[str, Any]]:
        return [
            {name: service[name] for name in ('id', 'name', 'type')}
            for service in self._catalog.values()
        ]

    def _endpoints(self) -> list[dict[str, Any]]:
        return [
            {**endpoint, 'service_id': service['id'], 'enabled': True}
            for service in self._catalog.values()
            for endpoint in service['endpoints']
        ]

    def _projects(self) -> list[dict[str, Any]]:
        return [
            {
                'id': project.id,
                'name': project.name,
                'domain_id': _DOMAIN['id'],
                'enabled': True,
            }
            for project in {user.project for user in self._users.values()}
        ]

    def _version(self) -> dict[str, Any]:
        return {
            'id': 'v3.14',
            'status': 'stable',
            'updated': '2020-04-07T00:00:00Z',
            'links': [{'rel': 'self', 'href': f'{self._url}/v3/'}],
            'media-types': [
                {
                    'base': 'application/json',
                    'type': 'application/vnd.openstack.identity-v3+json',
                }
            ],
        }

    def _authenticate(self, request: webob.Request) -> webob.Response:
        try:
            auth = request.json['auth']
            given = auth['identity']['password']['user']
            user = self._find(given)
            right = hmac.compare_digest(given['password'], user.password)
            scope = auth.get('scope', {})
            project = scope.get('project', {})
        except (KeyError, TypeError, ValueError, AttributeError):
            return _error(401, 'Unknown user, or not a password request.')
        if right and scope == _SYSTEM_SCOPE and user.system_roles:
            token_id = self._issue(user, user.system_roles, _SYSTEM_SCOPE)
        elif (
            right
            and set(scope) <= {'project'}
            and (
                project.get('id') == user.project.id
                or project.get('name') == user.project.name
                or not project
            )
        ):
            token_id = self.issue(user)
        else:
            return _error(401, 'Wrong password, project or scope.')
        return _token_response(201, token_id, self._tokens[token_id])

    def _find(self, given: Mapping[str, Any]) -> User:
        if 'name' in given:
            return self._users[given['name']]
        return {user.id: user for user in self._users.values()}[given['id']]

    def _caller(self, request: webob.Request) -> str:
        """The request's own token."""
        token_id = request.headers.get('X-Auth-Token', '')
        if token_id not in self._tokens:
            raise webob.exc.HTTPUnauthorized(
                json={
                    'error': {
                        'code': 401,
                        'title': 'Unauthorized',
                        'message': 'A valid token is needed.',
                    }
                }
            )
        return str(token_id)

    def _subject(self, request: webob.Request) -> str:
        """The token that the request is about."""
        self._caller(request)
        token_id = request.headers.get('X-Subject-Token', '')
        if token_id not in self._tokens:
            raise webob.exc.HTTPNotFound(
                json={
                    'error': {
                        'code': 404,
                        'title': 'Not Found',
                        'message': 'No such token.',
                    }
                }
            )
        return str(token_id)


def _time(value: datetime.datetime) -> str:
    return value.strftime('%Y-%m-%dT%H:%M:%S.%fZ')


def _token_response(
    status: int, token_id: str, token: Mapping[str, Any]
) -> webob.Response:
    return webob.Response(
        status=status,
        json={'token': token},
        headers={'X-Subject-Token': token_id},
    )


def _error(status: int, message: str) -> webob.Response:
    return webob.Response(
        status=status,
        json={
            'error': {
                'code': status,
                'message': message,
                'title': webob.exc.status_map[status].title,
            }
        },
    )
