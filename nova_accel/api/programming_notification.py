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

"""Tells of the programming of FPGA regions, when a host has told of it."""

import functools

from nova import context as nova_context

from nova_accel.api import notification
from nova_accel.api import notification_payload
from nova_accel.model import programming

_PROGRAM = 'deployable.program'


def send(context: nova_context.RequestContext, hostname: str,
         record: programming.Record) -> None:
    """Tell of one that has begun or ended. Does not raise."""
    if record.finished_at is None:
        phase = notification.Phase.START
    elif record.failure is None:
        phase = notification.Phase.END
    else:
        phase = notification.Phase.ERROR
    notification.emit(context, _PROGRAM, phase, functools.partial(
        notification_payload.of_programming, hostname, record))
