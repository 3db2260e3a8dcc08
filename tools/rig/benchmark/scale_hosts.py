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

"""Hosts that report through the client of nova-compute, in one process."""

from collections.abc import Callable
import hashlib
import threading
import time
from typing import TypeVar

from keystoneauth1 import adapter as ks_adapter
from keystoneauth1 import noauth
from keystoneauth1 import session as ks_session
import requests

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.conf import client as client_conf
from nova_accel.testing import reports

#: How many devices a host has.
DEVICES = 8

_Answer = TypeVar('_Answer')


class Waits:
    """How long calls took that were answered, and how many were not.

    :ivar seconds: of each call that ended without a fault, repeats included
    :ivar failed: how many calls ended with one
    """

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.failed = 0
        self._lock = threading.Lock()

    def time(self, call: Callable[[], _Answer]) -> _Answer:
        """:raises Exception: as the call"""
        begin = time.monotonic()
        try:
            answer = call()
        except Exception:
            with self._lock:
                self.failed += 1
            raise
        self.seconds.append(time.monotonic() - begin)
        return answer


class Host:
    """A host with interchangeable devices.

    :param url: of the API, with its version
    :ivar api: its client, which repeats calls as that of nova-compute does
    """

    def __init__(self, name: str, url: str) -> None:
        self.simulated = reports.SimulatedHost(
            name, regions=(), functions=DEVICES
        )
        self._line = requests.Session()
        # No proxy is looked for in the environment, at each request.
        self._line.trust_env = False
        self.api = accelerator_api.AcceleratorApi(
            _adapter(url, self._line), name
        )
        self._devices = self.simulated.reported()
        self._digest = hashlib.sha256(name.encode()).hexdigest()
        self._revision: int | None = None
        self._reporting = threading.Lock()

    def report(self, waits: Waits) -> None:
        """Report, unless its last report has not ended yet.

        A report that fails is left to the next one.
        """
        if not self._reporting.acquire(blocking=False):
            return
        try:
            waits.time(self._report)
        except exceptions.AcceleratorError:
            pass
        finally:
            # The pool has closed the connection by now. A process may not
            # have as many open files as there are hosts.
            self._line.close()
            self._reporting.release()

    def _report(self) -> None:
        newer = self.api.report(
            self.simulated.node_uuid,
            self.simulated.service_host,
            self._digest,
            self._devices,
            orders_seen=self._revision,
            orders_published=self._revision,
        )
        if newer is not None:
            self._revision = newer.revision


def _adapter(url: str, line: requests.Session) -> ks_adapter.Adapter:
    """As ``accelerator_api.adapter_from_conf`` makes it, without a token."""
    return ks_adapter.Adapter(
        ks_session.Session(
            auth=noauth.NoAuth(),
            session=line,
            timeout=client_conf.TIMEOUT_S,
            additional_headers={
                'X-User-Id': 'nova',
                'X-Project-Id': 'a' * 32,
                'X-Roles': 'service',
                'X-Service-Roles': 'service',
            },
        ),
        service_type=client_conf.SERVICE_TYPE,
        endpoint_override=url,
        connect_retries=client_conf.RETRIES,
        status_code_retries=client_conf.RETRIES,
        raise_exc=False,
    )
