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

nova-scheduler's claim in Placement comes first. Then nova-compute acquires
the devices. A host that cannot have them leaves the server to another one.
"""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

import collections
from collections.abc import Mapping
import random
import threading
from typing import NamedTuple

from nova import context as nova_context
from nova import objects
from oslo_utils import uuidutils

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import naming
from nova_accel.testing import scheduling
from rig.benchmark import arqs
from rig.benchmark import scale_hosts

#: On how many hosts Nova tries to build a server: [scheduler] max_attempts.
_HOSTS_TRIED = 3

_GROUP = 'device_profile_0'
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

    :param hosts: by the providers of their devices
    :ivar booted: how many servers have got their device
    :ivar failed: how many have got none at any host
    :ivar refused: the class of a refusal -> how often a host got it, though
        Placement had given it a unit. An API that is away refuses nothing
    :ivar rescheduled: how often a server was left to another host
    """

    def __init__(
        self,
        placement: scheduling.Placement,
        hosts: Mapping[str, scale_hosts.Host],
    ) -> None:
        self.booted = self.failed = self.rescheduled = 0
        self.refused: collections.Counter[str] = collections.Counter()
        self.acquired = scale_hosts.Waits()
        self.released = scale_hosts.Waits()
        self._placement = placement
        self._hosts = hosts
        self._context = nova_context.get_admin_context()
        self._lock = threading.Lock()
        self._servers: list[Server] = []
        # The hosts release these again and again, until they have done it.
        self._leaving: set[Server] = set()

    def boot(self) -> None:
        for others in range(_HOSTS_TRIED):
            server = self._claimed()
            if server is None:
                break
            with self._lock:
                self.rescheduled += others > 0
            if self._is_acquired(server):
                with self._lock:
                    self._servers.append(server)
                    self.booted += 1
                return
        with self._lock:
            self.failed += 1

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

    def _claimed(self) -> Server | None:
        """A server with a unit of a host by chance, None if none is free."""
        candidates = self._placement.candidates(
            scheduling.request_spec(
                groups=[
                    objects.RequestGroup(
                        requester_id=_GROUP,
                        resources={'CUSTOM_QAT': 1},
                        required_traits={naming.OWNERSHIP_TRAIT},
                    )
                ]
            )
        )
        random.shuffle(candidates)
        uuid = uuidutils.generate_uuid()
        for candidate in candidates:
            if self._placement.client.claim_resources(
                self._context, uuid, candidate, _PROJECT, 'user', '1.36'
            ):
                [provider] = candidate['mappings'][_GROUP]
                return Server(uuid, self._hosts[provider])
        return None

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
