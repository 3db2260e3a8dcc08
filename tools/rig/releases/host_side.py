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

"""The compute plane of whatever release Python imports, in its own process.

It is run by its path, so it may use only what both releases have. It takes its
steps when it is told, by HTTP. Its devices are simulated. What it says to the
API and how it serves the API's calls is the release's own.
"""

# Before anything else is imported, as Nova's entry points do.
# ruff: noqa: E402
from nova import monkey_patch

monkey_patch.patch(backend='threading')

from collections.abc import Callable
from collections.abc import Iterable
import dataclasses
import datetime
import inspect
import json
import socketserver
import sys
import types
from typing import Any
from wsgiref import simple_server

from keystoneauth1 import adapter
from keystoneauth1 import noauth
from keystoneauth1 import session
from nova import rpc
from oslo_log import log as logging
import oslo_messaging

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.model import arq_types
from nova_accel.model import programmable
from nova_accel.model import programming_record
from nova_accel.testing import reports
from nova_accel.virt.fpga import rpc_agent

CONF = conf.CONF

_ACTIVE = arq_types.Role.ACTIVE

_FINDING = {
    'kind': 'refused',
    'words': 'the device is too hot',
    'is_repaired': False,
    'instance_uuid': None,
    'device': None,
}


class _Host:
    """A host with one FPGA, whose region can be programmed."""

    def __init__(self, api_url: str) -> None:
        self._simulated = reports.SimulatedHost()
        self._api = accelerator_api.AcceleratorApi(
            adapter.Adapter(
                session.Session(auth=noauth.NoAuth()),
                endpoint_override=api_url,
                raise_exc=False,
            ),
            self._simulated.hostname,
        )
        # The release before has one part less.
        parts = inspect.signature(rpc_agent.Endpoint).parameters
        make: Any = rpc_agent.Endpoint
        self._dispatcher = oslo_messaging.RPCDispatcher(
            [make(self, *[None] * (len(parts) - 1))],
            rpc.RequestContextSerializer(None),
            oslo_messaging.DefaultRPCAccessPolicy,
        )

    def report(self) -> str:
        """Report devices with all that this release can say of them."""
        host = self._simulated
        devices = [
            self._in_a_set(each).to_report(
                host.node_uuid, host.layout().rp_uuids
            )
            for each in host.devices()
        ]
        # The release before finds nothing.
        parts = inspect.signature(self._api.report).parameters
        found: dict[str, Any] = (
            {'findings': [_FINDING]} if 'findings' in parts else {}
        )
        return str(
            self._api.report(
                host.node_uuid, host.service_host, 'digest', devices, **found
            )
        )

    @staticmethod
    def _in_a_set(device: Any) -> Any:
        known = {field.name for field in dataclasses.fields(device)}
        return (
            dataclasses.replace(device, link_sets=('numa:0',))
            if 'link_sets' in known
            else device
        )

    def boot(self, instance_uuid: str) -> list[str]:
        """The uuids of what the instance gets, wherever its cells are."""
        parts = inspect.signature(self._api.acquire).parameters
        near: dict[str, Any] = (
            {'numa_nodes': frozenset({0})} if 'numa_nodes' in parts else {}
        )
        return [
            arq.uuid
            for arq in self._api.acquire(
                instance_uuid,
                _ACTIVE,
                1,
                'project',
                'fpga',
                [self._simulated.allocated()],
                **near,
            )
        ]

    def bound(self) -> list[str]:
        """The uuids of instances that have something of this host."""
        return [each.instance_uuid for each in self._api.bindings()]

    def delete(self, instance_uuid: str) -> None:
        self._api.release(instance_uuid, _ACTIVE, 1)

    def program(
        self,
        deployable_uuid: str,
        wanted: Any,
        asker: Any,
        context: Any,
        shell_loading: Any,
    ) -> programmable.Contents:
        """Say that it is done, as a programmer does."""
        now = datetime.datetime.now(datetime.UTC)
        self._api.programming(
            programming_record.Record(
                self._simulated.device_uuid(),
                wanted.bitstream_id,
                'region0',
                wanted.bitstream_id,
                asker,
                now,
                finished_at=now,
            )
        )
        return programmable.Contents(wanted.bitstream_id, '', '')

    def take(self, context: Any, message: Any) -> dict[str, Any]:
        """A message of the bus, and what is answered."""
        incoming = types.SimpleNamespace(
            ctxt=context, message=message, client_timeout=None
        )
        try:
            return {'result': self._dispatcher.dispatch(incoming)}
        except oslo_messaging.ExpectedException as error:
            return {'refusal': str(error.exc_info[1])}


class _Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    """Requests nest: the API calls the host, which calls the API."""

    daemon_threads = True


def main(port: str, api_url: str) -> None:
    """Serve for ever: each path is a method, and the body its arguments."""
    logging.register_options(CONF)
    CONF([], project='nova', default_config_files=[], default_config_dirs=[])
    logging.setup(CONF, 'nova')
    host = _Host(api_url)

    def serve(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        length = int(environ['CONTENT_LENGTH'])
        arguments = json.loads(environ['wsgi.input'].read(length))
        step: Callable[..., Any] = getattr(host, environ['PATH_INFO'][1:])
        try:
            answer = {'answer': step(**arguments)}
            if environ['PATH_INFO'] == '/take':
                answer = answer['answer']
        except exceptions.AcceleratorError as error:
            answer = {'fault': f'{type(error).__name__}: {error}'}
        start_response('200 OK', [('Content-Type', 'application/json')])
        return [json.dumps(answer).encode()]

    simple_server.make_server(
        '127.0.0.1', int(port), serve, _Server
    ).serve_forever()


if __name__ == '__main__':
    main(*sys.argv[1:])
