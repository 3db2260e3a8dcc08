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

"""The API of whatever release Python imports, in a process of its own.

It is run by its path, so it may use only what both releases have. Callers are
believed. The only host on its message bus is elsewhere: what is sent to that
host goes to it by HTTP, as it is.
"""

# Before anything else is imported, as Nova's entry points do.
# ruff: noqa: E402
from nova import monkey_patch

monkey_patch.patch(backend='threading')

from collections.abc import Iterable
import socketserver
import sys
from typing import Any
from unittest import mock
from wsgiref import simple_server

from nova import objects
from nova import rpc
from oslo_log import log as logging
import oslo_messaging
from oslo_messaging import conffixture
from oslo_messaging.rpc import server as rpc_server
import requests

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.api import app
from nova_accel.api import context
from nova_accel.model import host_rpc

CONF = conf.CONF


class _Line:
    """Takes the messages to the host there; it is a dispatcher."""

    def __init__(self, url: str) -> None:
        self._url = url

    def dispatch(self, incoming: Any) -> Any:
        told = requests.post(
            self._url,
            json={'context': incoming.ctxt, 'message': incoming.message},
            timeout=60,
        ).json()
        if 'refusal' not in told:
            return told['result']
        try:
            raise exceptions.RefusedByHost(told['refusal'])
        except exceptions.RefusedByHost as error:
            raise oslo_messaging.ExpectedException() from error


def _listen(service_host: str, url: str) -> None:
    """Let the host be in a cell, whose bus is the only one."""
    objects.register_all()
    bus = conffixture.ConfFixture(CONF)
    bus.setUp()
    bus.transport_url = 'fake:/'
    rpc.init(CONF)
    rpc_server.RPCServer(
        rpc.TRANSPORT,
        oslo_messaging.Target(topic=host_rpc.TOPIC, server=service_host),
        _Line(url),
        'threading',
    ).start()
    cell = objects.CellMapping(uuid=objects.CellMapping.CELL0_UUID)
    mock.patch(
        'nova.objects.HostMapping.get_by_host',
        autospec=True,
        return_value=objects.HostMapping(host=service_host, cell_mapping=cell),
    ).start()
    mock.patch('nova.context.set_target_cell', autospec=True).start()


class _Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    """Requests nest: the API calls the host, which calls the API."""

    daemon_threads = True


def main(port: str, database_url: str, service_host: str, url: str) -> None:
    """Serve for ever.

    :param url: of the host's side of the message bus
    """
    logging.register_options(CONF)
    CONF([], project='nova', default_config_files=[], default_config_dirs=[])
    logging.setup(CONF, 'nova')
    CONF.set_override('connection', database_url, 'nova_accel_database')
    _listen(service_host, url)
    application = context.factory({})(app.factory({}))

    def serve(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        environ.update(
            HTTP_X_USER_ID='user',
            HTTP_X_PROJECT_ID='project',
            HTTP_X_ROLES='admin,manager,member,reader,service',
        )
        return application(environ, start_response)

    simple_server.make_server(
        '127.0.0.1', int(port), serve, _Server
    ).serve_forever()


if __name__ == '__main__':
    main(*sys.argv[1:])
