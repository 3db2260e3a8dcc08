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

"""Versioned notifications, sent as Nova sends its own.

They go to the topics of Nova's versioned notifications through Nova's own
notifier, so the same options rule them: ``[oslo_messaging_notifications]``
and ``[notifications]``.
"""

from collections.abc import Callable
import enum
from typing import TYPE_CHECKING

from oslo_log import log as logging

from nova_accel import conf
from nova_accel.api.http import caller

if TYPE_CHECKING:
    from nova_accel.api.notifications import payloads

CONF = conf.CONF
LOG = logging.getLogger(__name__)


class Phase(enum.StrEnum):
    """The last word of an event type; errors have a priority of their own."""

    START = 'start'
    END = 'end'
    ERROR = 'error'


def is_enabled() -> bool:
    """Whether notifications are sent: a driver and the format are configured.

    The notifier's own ``is_enabled()`` says yes when there is no driver.
    """
    if not is_format_sent():
        return False
    from nova import rpc

    return rpc.NOTIFIER is not None and any(
        driver != 'noop' for driver in CONF.oslo_messaging_notifications.driver
    )


def is_format_sent() -> bool:
    """Whether Nova's notifier is asked at all: by default it is not."""
    return CONF.notifications.notification_format in ('versioned', 'both')


def emit(
    context: caller.Caller,
    action: str,
    phase: Phase | None,
    payload: 'Callable[[], payloads.Payload]',
) -> None:
    """Send a notification; a failure is logged and does not fail the request.

    :param action: such as ``accelerator_request.bind``
    :param phase: None for what has no length
    :param payload: makes the payload; not called if nothing is sent
    """
    if not is_enabled():
        return
    from nova import rpc

    from nova_accel.api.notifications import payloads

    event_type = f'{action}.{phase}' if phase else action
    try:
        notifier = rpc.get_versioned_notifier(f'nova-api:{CONF.host}')
        send = notifier.error if phase is Phase.ERROR else notifier.info
        send(context.for_nova(), event_type, payloads.to_wire(payload()))
    except Exception:
        LOG.exception('The notification %s is not sent', event_type)
