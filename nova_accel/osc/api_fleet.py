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

"""The fleet as the APIs of accelerators, Nova and Placement have it now."""

from collections.abc import Collection
import logging
from typing import Any

from osc_lib import exceptions

from nova_accel.model.fleet import fleet_sources
from nova_accel.model.fleet import fleet_wire
from nova_accel.osc import accelerator_calls
from nova_accel.osc import nova_servers

LOG = logging.getLogger(__name__)

#: The microversion that has the parent of a resource provider.
_PLACEMENT_VERSION = '1.22'


class Sources:
    """The sources that the token of an administrator leads to.

    :param app: the program, of a command
    :param hostname: the only host to read, None for all
    :ivar untold: the servers of which Nova has not told enough to compare them
    """

    def __init__(self, app: Any, hostname: str | None = None) -> None:
        self._app = app
        self.untold: frozenset[str] = frozenset()
        self._query = {} if hostname is None else {'hostname': hostname}

    def ours(self) -> fleet_sources.Ours:
        """The view of the API, page by page.

        :raises CommandError: it has no usable answer.
        """
        hosts = [
            host
            for page in accelerator_calls.pages(
                accelerator_calls.client_of(self._app),
                '/topology',
                'topology',
                self._query,
            )
            for host in page
        ]
        try:
            return fleet_wire.from_json(hosts)
        except ValueError as error:
            raise exceptions.CommandError(
                f'The accelerator API answers GET /topology with {error}'
            ) from error

    def nova(
        self, ours: fleet_sources.Ours, consumers: Collection[str] = ()
    ) -> fleet_sources.NovaReading:
        """Nova's words about the servers of all ARQs.

        :param consumers: further uuids, which may be servers
        """
        of_devices = {device.uuid: device.hostname for device in ours.devices}
        holding = {
            of_devices[unit.device_uuid] for unit in ours.units if unit.arq
        }
        told = nova_servers.read(
            self._app.client_manager.sdk_connection.compute,
            {host.service_host for host in ours.hosts if host.name in holding},
            ours.instance_uuids.union(consumers),
        )
        new = told.untold - self.untold
        if new:
            self.untold |= new
            LOG.warning(
                'Nova tells neither state nor host of %d servers, for example '
                '%s: their cell does not answer, or a policy of Nova hides '
                'it from you. They are not compared.',
                len(new),
                min(new),
            )
        return told.nova

    def placement(self, path: str) -> Any:
        """Placement's JSON of a GET, None if there is no such thing.

        :raises CommandError: it refuses.
        """
        response = self._app.client_manager.sdk_connection.placement.get(
            path, microversion=_PLACEMENT_VERSION, raise_exc=False
        )
        if response.status_code == 404:
            return None
        if response.status_code >= 400:
            raise exceptions.CommandError(
                f'Placement answers GET {path} with {response.status_code}'
            )
        return response.json()
