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

"""Notifications of the programming of FPGA regions, as hosts report it."""

import functools

from nova_accel.api.http import caller
from nova_accel.api.notifications import notifier
from nova_accel.model.fpga import programming_record

_PROGRAM = 'deployable.program'


def send(
    context: caller.Caller,
    hostname: str,
    record: programming_record.Record,
) -> None:
    """Notify of a programming that has begun or ended. Does not raise."""
    if not notifier.is_enabled():
        return
    from nova_accel.api.notifications import payloads

    if record.finished_at is None:
        phase = notifier.Phase.START
    elif record.failure is None:
        phase = notifier.Phase.END
    else:
        phase = notifier.Phase.ERROR
    notifier.emit(
        context,
        _PROGRAM,
        phase,
        functools.partial(payloads.of_programming, hostname, record),
    )
