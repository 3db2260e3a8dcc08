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

"""The records of programmings, which are told to the API.

A programming does not wait for the API. A record that the API has not heard
is told again with the next report.
"""

from concurrent import futures
import threading

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.model.fpga import programming_record

LOG = logging.getLogger(__name__)


class History:
    """The programmings of one host that the API has not heard of yet."""

    def __init__(self, api: accelerator_api.AcceleratorApi) -> None:
        self._api = api
        self._executor = futures.ThreadPoolExecutor(1)
        self._lock = threading.Lock()
        # By uuid: the record of an end replaces that of the beginning.
        self._untold: dict[str, programming_record.Record] = {}

    def note(self, record: programming_record.Record) -> None:
        """Have a record told soon. Does not raise."""
        with self._lock:
            self._untold[record.uuid] = record
        try:
            self._executor.submit(self._report_soon)
        except RuntimeError as error:
            # nova-compute ends its threads before its last tasks.
            LOG.info('Programming %s is not reported: %s', record.uuid, error)

    def report(self) -> None:
        """Tell the API all records that it has not heard yet.

        :raises ServiceUnavailable: it may not know some; they are kept.
        """
        with self._lock:
            untold = list(self._untold.values())
        for record in untold:
            try:
                self._api.programming(record)
            except exceptions.ServiceUnavailable:
                raise
            except exceptions.AcceleratorError as error:
                LOG.warning(
                    'Programming %s is not noted: %s', record.uuid, error
                )
            with self._lock:
                if self._untold.get(record.uuid) == record:
                    del self._untold[record.uuid]

    def _report_soon(self) -> None:
        try:
            self.report()
        except exceptions.ServiceUnavailable as error:
            LOG.warning(
                'The programming of regions is not reported yet, trying again '
                'later: %s',
                error,
            )
        except Exception:
            LOG.exception('Telling what is programmed failed')
