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

"""What is notified, on a message bus that keeps it."""

import json
import os
import pathlib
from typing import Any

import fixtures
from nova import rpc
from oslo_messaging.notify import _impl_test

from nova_accel import conf
from unit import message_bus

CONF = conf.CONF

SAMPLES = pathlib.Path(__file__).parents[2] / 'doc' / 'notification_samples'


class Notifications(fixtures.Fixture):
    """The operator has them sent.

    :param drivers: by these, of which ``test`` keeps them
    :param options: other values of options in ``[notifications]``
    """

    def __init__(self, *drivers: str, **options: Any) -> None:
        super().__init__()
        self._drivers = list(drivers)
        self._options = {'notification_format': 'versioned', **options}

    def _setUp(self) -> None:
        self.useFixture(message_bus.MessageBus())
        self._set('driver', self._drivers, 'oslo_messaging_notifications')
        self._set('host', 'controller')
        for name, value in self._options.items():
            self._set(name, value, 'notifications')
        # Once more: the first time has the options registered.
        rpc.cleanup()
        rpc.init(CONF)
        _impl_test.reset()
        self.addCleanup(_impl_test.reset)

    def _set(self, *option: Any) -> None:
        CONF.set_override(*option)
        name, _value, *group = option
        self.addCleanup(CONF.clear_override, name, *group)

    def pop(self) -> list[dict[str, Any]]:
        """What was sent since the last time, as the samples have it."""
        sent = [
            {
                name: message[name]
                for name in (
                    'priority',
                    'payload',
                    'event_type',
                    'publisher_id',
                )
            }
            for _, message, *_ in _impl_test.NOTIFICATIONS
        ]
        _impl_test.reset()
        return sent

    def pop_types(self) -> list[str]:
        return [message['event_type'] for message in self.pop()]


def sample_of(message: dict[str, Any]) -> tuple[str, str]:
    """The text of its sample in the manual, and the text that it is.

    NOVA_ACCEL_REWRITE_GOLDEN=1 rewrites the sample.
    """
    name = message['event_type'].replace('.', '-')
    path = SAMPLES / f'{name}.json'
    text = json.dumps(message, indent=4, sort_keys=True) + '\n'
    if os.environ.get('NOVA_ACCEL_REWRITE_GOLDEN'):
        path.write_text(text)
    return path.read_text(), text
