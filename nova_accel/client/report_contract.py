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

"""The contract by which a host reports, as far as the API's answers tell.

:mod:`nova_accel.model.host_contract` explains contracts.
"""

from collections.abc import Mapping
from typing import Any

from oslo_log import log as logging

from nova_accel.model import host_contract

LOG = logging.getLogger(__name__)

_BAD_REQUEST = 400


class Agreement:
    """The newest contract that this host and the API know.

    It begins with that of this release, so a host of the API's release pays
    nothing. Processes of two releases may serve the API during an upgrade. A
    refusal counts at once, and a newer answer for the next report.

    :param newest: the newest that this host knows
    :param since: its words: :data:`nova_accel.model.host_contract.SINCE`
    :ivar contract: that of the next report
    """

    def __init__(
        self,
        newest: int = host_contract.NEWEST,
        since: host_contract.Since = host_contract.SINCE,
    ) -> None:
        self.contract = self._newest = newest
        self._since = since
        self._silent_of: frozenset[str] = frozenset()

    def request(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """A request for accelerators in the words of the contract."""
        return host_contract.spoken(
            body, host_contract.REQUEST, self.contract, self._since
        )[0]

    def compose(self, report: Mapping[str, Any]) -> Mapping[str, Any]:
        """A report in the words of the contract.

        The log has, once, what the API is not told.
        """
        told, left_out = host_contract.spoken(
            {**report, host_contract.KEY: self.contract},
            host_contract.REPORT,
            self.contract,
            self._since,
        )
        if left_out - self._silent_of:
            self._silent_of |= left_out
            LOG.warning(
                'The accelerator API is older than this host: it knows '
                'contract %d, this host %d. Until it is upgraded, it is not '
                'told: %s',
                self.contract,
                self._newest,
                ', '.join(sorted(self._silent_of)),
            )
        return told

    def note_answer(self, status: int, headers: Mapping[str, str]) -> None:
        """Learn from the answer to a report what the API knows.

        :param status: of HTTP
        """
        known = min(
            host_contract.stated(headers.get(host_contract.HEADER)),
            self._newest,
        )
        if status == _BAD_REQUEST and known < self.contract:
            LOG.info(
                'The accelerator API refuses reports by contract %d, and '
                'knows contract %d',
                self.contract,
                known,
            )
            self.contract = known
        elif status < _BAD_REQUEST and known > self.contract:
            LOG.info('The accelerator API now knows contract %d', known)
            self.contract = known
            if known == self._newest:
                self._silent_of = frozenset()
