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

"""``GET /metrics``, for monitoring systems that have no token.

Only the API's own process pool has it (``api-paste.ini``). The peer of the
socket must be in ``[nova_accel] metrics_allowed_networks``. There is no filter
in front that reads the headers of proxies, so no client can claim another
address. A request that came through a proxy is refused, as a proxy's own
address says nothing of the client.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import ipaddress
from typing import Any

import webob

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.api.http import errors
from nova_accel.api.http import microversion
from nova_accel.db.sql import engine
from nova_accel.metrics import exposition

CONF = conf.CONF

_OPTION = '[nova_accel] metrics_allowed_networks'

# Keys of WSGI's environment by which proxies name their clients.
_FORWARDED = 'HTTP_X_FORWARDED'
_OF_PROXIES = frozenset(
    {
        'HTTP_CLIENT_IP',
        'HTTP_FORWARDED',
        'HTTP_TRUE_CLIENT_IP',
        'HTTP_VIA',
        'HTTP_X_CLIENT_IP',
        'HTTP_X_REAL_IP',
    }
)

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Scrape:
    """The application behind ``/metrics``.

    :param allowed: the networks whose machines may ask; with none there are
        no metrics
    """

    def __init__(
        self, allowed: Sequence[_Network], kept: exposition.Kept
    ) -> None:
        self._allowed = allowed
        self._kept = kept

    def __call__(
        self, environ: dict[str, Any], start_response: Any
    ) -> Iterable[bytes]:
        answer: Iterable[bytes] = self._answer(environ)(
            environ, start_response
        )
        return answer

    def _answer(self, environ: Mapping[str, Any]) -> webob.Response:
        if not self._allowed or environ.get('PATH_INFO', '') not in ('', '/'):
            return errors.refused(404, 'Not Found', 'There is no such page')
        if not self._is_allowed(environ):
            return errors.refused(
                403, 'Forbidden', 'This address may not read the metrics'
            )
        if environ['REQUEST_METHOD'] not in ('GET', 'HEAD'):
            refusal = errors.refused(405, 'Method Not Allowed', 'Use GET')
            refusal.headers['Allow'] = 'GET, HEAD'
            return refusal
        try:
            text = self._kept.text()
        except exceptions.ServiceUnavailable as fault:
            return errors.refused(503, 'Service Unavailable', fault.public)
        return webob.Response(
            text, headers={'Content-Type': exposition.CONTENT_TYPE}
        )

    def _is_allowed(self, environ: Mapping[str, Any]) -> bool:
        if any(
            name in _OF_PROXIES or name.startswith(_FORWARDED)
            for name in environ
        ):
            return False
        peer = _peer(environ.get('REMOTE_ADDR', ''))
        return peer is not None and any(
            peer in network for network in self._allowed
        )


def _peer(text: str) -> _Address | None:
    """The address of the socket's other end, None for a Unix socket's.

    A socket for both versions of IP tells IPv4 addresses within IPv6.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped
    return address


def networks(texts: Sequence[str]) -> list[_Network]:
    """The networks that the option names.

    :raises ConfigurationError: one is no address and no network.
    """
    found = []
    for text in texts:
        try:
            found.append(ipaddress.ip_network(text))
        except ValueError as error:
            raise exceptions.ConfigurationError(
                f'{_OPTION} has {text!r}: {error}. Write addresses and '
                'networks, such as 192.0.2.7 or 2001:db8::/64'
            ) from error
    return found


def factory(
    global_conf: Mapping[str, str], **local_conf: str
) -> microversion.WSGIApplication:
    """``paste.app_factory`` of ``/metrics``.

    :raises ConfigurationError: the option is wrong, or the database is not
        configured.
    """
    allowed = networks(CONF.nova_accel.metrics_allowed_networks)
    engine.check_configured()
    return Scrape(
        allowed,
        exposition.Kept(
            exposition.read,
            CONF.nova_accel.metrics_kept_s,
            CONF.nova_accel_database.deadline_s,
        ),
    )
