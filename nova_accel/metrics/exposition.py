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

"""The metrics as the text that Prometheus reads."""

from collections.abc import Callable
from collections.abc import Iterator
import threading
import time

from oslo_log import log as logging
import prometheus_client
from prometheus_client import core
from prometheus_client import registry

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.db import fleet_numbers
from nova_accel.metrics import families
from nova_accel.metrics import room

CONF = conf.CONF
LOG = logging.getLogger(__name__)

#: The type of :func:`read`. Every Prometheus knows this version.
CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'


class _Collector(registry.Collector):
    """Gives the families of one reading."""

    def __init__(self, found: list[core.GaugeMetricFamily]) -> None:
        self._found = found

    def collect(self) -> Iterator[core.Metric]:
        return iter(self._found)


def read() -> bytes:
    """All metrics, read from the database now.

    :raises ServiceUnavailable: the database cannot be used.
    """
    options = CONF.nova_accel
    began = time.monotonic()
    numbers = fleet_numbers.read(
        options.host_silence_s,
        options.metrics_window_s,
        options.metrics_max_series,
    )
    of_profiles = room.read(options.metrics_device_profiles)
    took = core.GaugeMetricFamily(
        'nova_accel_database_read_seconds',
        'How long reading the database for these metrics took.',
        value=time.monotonic() - began,
    )
    collected = registry.CollectorRegistry()
    collected.register(
        _Collector(
            [
                *families.of(numbers, options.metrics_max_series),
                *families.of_room(of_profiles),
                took,
            ]
        )
    )
    text: bytes = prometheus_client.generate_latest(collected)
    return text


class Kept:
    """The result of a reading, for some seconds; one thread reads at a time.

    A failure is kept, too. So no number of requests loads the database, even
    when it has trouble.

    :param reading: gives the text, or raises AcceleratorError
    :param kept_s: for how long
    :param wait_s: how long other threads wait for the one that reads
    """

    def __init__(
        self, reading: Callable[[], bytes], kept_s: float, wait_s: float
    ) -> None:
        self._reading = reading
        self._kept_s = kept_s
        self._wait_s = wait_s
        self._lock = threading.Lock()
        self._until = 0.0
        self._text = b''
        self._fault: exceptions.AcceleratorError | None = None

    def text(self) -> bytes:
        """:raises ServiceUnavailable: the database cannot be used, or another
        thread has been reading it for too long.
        """
        if not self._lock.acquire(timeout=self._wait_s):
            raise exceptions.ServiceUnavailable.for_all(
                'the metrics are still being read from the database'
            )
        try:
            if time.monotonic() >= self._until:
                self._read()
            if self._fault is not None:
                raise exceptions.ServiceUnavailable.for_all(
                    f'the metrics could not be read: {self._fault.public}'
                )
            return self._text
        finally:
            self._lock.release()

    def _read(self) -> None:
        self._fault = None
        try:
            self._text = self._reading()
        except exceptions.AcceleratorError as fault:
            LOG.error('The metrics could not be read: %s', fault)
            self._fault = fault
        self._until = time.monotonic() + self._kept_s
