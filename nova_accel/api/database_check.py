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

"""The database of accelerators in oslo.middleware's health check."""

import threading
import time
from typing import Any

from oslo_config import cfg
from oslo_middleware.healthcheck import pluginbase

from nova_accel import exceptions
from nova_accel.db import health

#: For how long an answer is given again. No one needs a token for the health
#: check, so no number of requests may load the database.
KEPT_S = 5

#: How long a request waits for another one that asks the database.
_WAIT_S = 30


class DatabaseCheck(pluginbase.HealthcheckBaseExtension):
    """Whether the database answers, and has our tables.

    The reason names no host and no user, as anybody may read it.
    """

    def __init__(
        self, oslo_conf: cfg.ConfigOpts, conf: dict[str, Any]
    ) -> None:
        super().__init__(oslo_conf, conf)
        self._lock = threading.Lock()
        self._until = 0.0
        self._result = pluginbase.HealthcheckResult(False, 'not asked yet')

    def healthcheck(self, server_port: int) -> pluginbase.HealthcheckResult:
        if not self._lock.acquire(timeout=_WAIT_S):
            return pluginbase.HealthcheckResult(
                False, 'the database of accelerators does not answer'
            )
        try:
            if time.monotonic() >= self._until:
                self._result = _ask()
                self._until = time.monotonic() + KEPT_S
            return self._result
        finally:
            self._lock.release()


def _ask() -> pluginbase.HealthcheckResult:
    try:
        health.check()
    except exceptions.ServiceUnavailable as fault:
        return pluginbase.HealthcheckResult(False, fault.public, str(fault))
    return pluginbase.HealthcheckResult(
        True, 'the database of accelerators answers'
    )
