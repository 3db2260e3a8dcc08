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

"""Servers that are booted and deleted, with the calls of Nova's services.

nova-scheduler's part comes first: our request filters, Nova's
SchedulerManager with our filter and weigher, and the claim in Placement. Then
nova-compute acquires the devices. A host that cannot have them leaves the
server to another one.
"""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

import collections
from collections.abc import Sequence
import random
import threading
from typing import NamedTuple

from nova import context as nova_context
from nova import exception

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model.profiles import device_profile
from nova_accel.scheduler import request_filter
from nova_accel.testing import scheduling
from rig.benchmark import arqs
from rig.benchmark import scale_hosts
from rig.loopback import bare_scheduler

#: On how many hosts Nova tries to build a server: [scheduler] max_attempts.
_HOSTS_TRIED = 3

_PROJECT = 'a' * 32
_ACTIVE = arq_types.Role.ACTIVE

#: A server is made once on a host, so its host's attempts never differ.
_ATTEMPT = 1


class Server(NamedTuple):
    """A server, and the host that has it."""

    uuid: str
    host: scale_hosts.Host


class Boots:
    """Servers that come and go.

    :ivar booted: how many servers have got their device
    :ivar failed: why servers have got none -> how many
    :ivar refused: the class of a refusal -> how often a host got it, though
        Placement had given it a unit. An API that is away refuses nothing
    :ivar rescheduled: how often a server was left to another host
    """

    def __init__(
        self,
        placement: scheduling.Placement,
        hosts: Sequence[scale_hosts.Host],
    ) -> None:
        self.booted = self.rescheduled = 0
        self.failed: collections.Counter[str] = collections.Counter()
        self.refused: collections.Counter[str] = collections.Counter()
        self.scheduled = scale_hosts.Waits()
        self.acquired = scale_hosts.Waits()
        self.released = scale_hosts.Waits()
        self._placement = placement
        self._hosts = {host.simulated.hostname: host for host in hosts}
        self._scheduler = bare_scheduler.BareScheduler(
            {
                name: host.simulated.node_uuid
                for name, host in self._hosts.items()
            }
        )
        self._context = nova_context.get_admin_context()
        self._lock = threading.Lock()
        self._servers: list[Server] = []
        # The hosts release these again and again, until they have done it.
        self._leaving: set[Server] = set()

    def boot(self) -> None:
        why = f'no host of {_HOSTS_TRIED} has acquired it'
        for others in range(_HOSTS_TRIED):
            try:
                server = self.scheduled.time(self._scheduled)
            except exception.NovaException as fault:
                why = type(fault).__name__
                break
            with self._lock:
                self.rescheduled += others > 0
            if self._is_acquired(server):
                with self._lock:
                    self._servers.append(server)
                    self.booted += 1
                return
        with self._lock:
            self.failed[why] += 1

    def delete(self, at_least: int = 0) -> None:
        """Delete one server by chance, if there are more than so many.

        What could not be released before is tried again.
        """
        with self._lock:
            if len(self._servers) > at_least:
                random.shuffle(self._servers)
                self._leaving.add(self._servers.pop())
            leaving, self._leaving = self._leaving, set()
        for server in leaving:
            self._release(server)

    def delete_all(self) -> None:
        """:raises RuntimeError: hosts cannot release what servers had"""
        for _time in range(len(self._servers) + 1):
            self.delete()
        if self._leaving:
            raise RuntimeError(f'{len(self._leaving)} servers are not deleted')

    def _scheduled(self) -> Server:
        """A server on a host that has a unit for it, which is claimed.

        :raises NovaException: no host has, or the scheduler cannot ask
        """
        spec = scheduling.request_spec(
            {device_profile.FLAVOR_KEY: arqs.PROFILE}
        )
        request_filter.merge_device_profile(self._context, spec)
        request_filter.check_accelerators(self._context, spec)
        [[selected]] = self._scheduler.select(
            spec, bare_scheduler.Answer(spec), [spec.instance_uuid]
        )
        return Server(spec.instance_uuid, self._hosts[selected.nodename])

    def _is_acquired(self, server: Server) -> bool:
        try:
            self.acquired.time(
                lambda: server.host.api.acquire(
                    server.uuid,
                    _ACTIVE,
                    _ATTEMPT,
                    _PROJECT,
                    arqs.PROFILE,
                    [server.host.simulated.allocated_functions(1)],
                    is_new=True,
                )
            )
        except exceptions.AcceleratorError as error:
            with self._lock:
                if not isinstance(error, exceptions.ServiceUnavailable):
                    self.refused[type(error).__name__] += 1
            # It may have them: it is not known.
            self._release(server)
            return False
        return True

    def _release(self, server: Server) -> None:
        """Release what a server has, or leave that to the next time."""
        try:
            self.released.time(
                lambda: server.host.api.release(server.uuid, _ACTIVE, _ATTEMPT)
            )
        except exceptions.AcceleratorError:
            with self._lock:
                self._leaving.add(server)
        # Nova does not wait for the host.
        self._placement.client.delete_allocation_for_instance(
            self._context, server.uuid, force=True
        )
