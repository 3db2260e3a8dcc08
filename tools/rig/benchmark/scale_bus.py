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

"""The message bus of ``tools/bench scale``, and who listens to it."""

import collections
import socket
import threading
import time
from typing import Any

import fixtures
from oslo_config import cfg
import oslo_messaging
from oslo_utils import uuidutils

from nova_accel import exceptions
from rig.serving import nova_conf

#: Seconds without a message after which no more are on their way.
_QUIET_S = 1

_HOST, _PORT = '127.0.0.1', 5672
_URL = f'rabbit://guest:guest@{_HOST}:{_PORT}/'


class Bus(fixtures.Fixture):
    """A RabbitMQ, to which the pool sends its notifications.

    :ivar received: how many of each type of event have arrived
    :ivar sections: those of the pool's ``nova.conf``
    """

    def __init__(self) -> None:
        super().__init__()
        self.received: collections.Counter[str] = collections.Counter()
        self._lock = threading.Lock()
        self._topic = f'scale-{uuidutils.generate_uuid()}'
        self.sections: nova_conf.Sections = {
            'DEFAULT': {'transport_url': _URL},
            'notifications': {
                'notification_format': 'versioned',
                'versioned_notifications_topics': self._topic,
            },
            'oslo_messaging_notifications': {
                'driver': 'messagingv2',
                'retry': '1',
            },
            # The queue goes when no one listens any more.
            'oslo_messaging_rabbit': {'amqp_auto_delete': 'true'},
        }

    def _setUp(self) -> None:
        conf = cfg.ConfigOpts()
        conf([])
        transport = oslo_messaging.get_notification_transport(conf, _URL)
        conf.set_override('amqp_auto_delete', True, 'oslo_messaging_rabbit')
        listener = oslo_messaging.get_notification_listener(
            transport,
            [oslo_messaging.Target(topic=self._topic)],
            [self],
            executor='threading',
        )
        listener.start()
        self.addCleanup(transport.cleanup)
        self.addCleanup(listener.wait)
        self.addCleanup(listener.stop)

    def info(
        self, _context: Any, _publisher: str, event: str, *_rest: Any
    ) -> None:
        with self._lock:
            self.received[event] += 1

    error = info

    def all_received(self) -> dict[str, int]:
        """What has arrived, when nothing more has come for a moment."""
        before = None
        while before != (found := dict(self.received)):
            before = found
            time.sleep(_QUIET_S)
        return found


def check() -> None:
    """:raises ConfigurationError: there is no RabbitMQ"""
    try:
        socket.create_connection((_HOST, _PORT), timeout=5).close()
    except OSError as fault:
        raise exceptions.ConfigurationError(
            f'no RabbitMQ answers at {_HOST}, port {_PORT}: {fault}; start '
            'one that has the user guest'
        ) from fault
