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

"""How far an NVMe drive has sanitized itself, by its log.

See :mod:`nova_accel.drivers.nvme_erasure` for the specifications.
"""

import tenacity

#: How long its progress may stay the same, unless the drive itself estimates
#: that the whole takes longer, and the most that such an estimate counts.
STALL_S = 600
LONGEST_STALL_S = 3600

# SANACT -> the offset in the log of the estimate for the whole.
_ESTIMATES = {2: 12, 3: 8, 4: 16}
_NO_ESTIMATE = 0xFFFFFFFF

#: SSTAT, bits 2:0.
COMPLETED = {1, 4}
IN_PROGRESS = 2


class Stall(tenacity.stop.stop_base):
    """Whether a sanitize has not got further for too long.

    The time that was slept counts, not the clock.
    """

    def __init__(self) -> None:
        self._most, self._since_s = -1, 0.0
        self.limit_s = STALL_S
        self.is_over = False

    @property
    def percent(self) -> int:
        return 100 * self._most // 0x10000

    def __call__(self, state: tenacity.RetryCallState) -> bool:
        log: bytes = state.outcome.result()  # type: ignore[union-attr]
        progress = int.from_bytes(log[0:2], 'little')
        if progress > self._most:
            self._most, self._since_s = progress, state.idle_for
        self.limit_s = _limit_s(log)
        self.is_over = state.idle_for - self._since_s >= self.limit_s
        return self.is_over


def _limit_s(log: bytes) -> int:
    """How long the progress in a log may stay the same."""
    offset = _ESTIMATES.get(log[4] & 0b111)
    if offset is None:
        return STALL_S
    estimate_s = int.from_bytes(log[offset : offset + 4], 'little')
    if estimate_s == _NO_ESTIMATE:
        return STALL_S
    return min(max(STALL_S, estimate_s), LONGEST_STALL_S)


def status(log: bytes) -> int:
    """The state of the last sanitize."""
    return int.from_bytes(log[2:4], 'little') & 0b111
