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

from collections.abc import Callable
import queue
from typing import Any

import fixtures
from nova import rpc
import oslo_messaging

from nova_accel.api.notifications import notifier
from nova_accel.api.notifications import payloads
from unit import notifications
from unit.api import base


def _unwanted() -> payloads.Payload:
    raise AssertionError('nobody is told')


class EmitTest(base.ConfiguredTestCase):
    def emit(
        self,
        payload: Callable[[], payloads.Payload] = _unwanted,
        phase: notifier.Phase | None = notifier.Phase.START,
    ) -> None:
        notifier.emit(base.a_caller(), 'thing.act', phase, payload)

    def test_nothing_is_made_when_no_driver_is_configured(self) -> None:
        for drivers in ((), ('noop',)):
            with notifications.Notifications(*drivers):
                self.assertFalse(notifier.is_enabled())
                self.emit()

    def test_nothing_is_made_for_the_format_that_has_none(self) -> None:
        """Nova's default; our own have no unversioned form."""
        self.useFixture(
            notifications.Notifications(
                'test', notification_format='unversioned'
            )
        )
        self.assertFalse(notifier.is_enabled())
        self.emit()

    def test_nothing_is_made_before_nova_has_a_notifier(self) -> None:
        self.useFixture(fixtures.MonkeyPatch('nova.rpc.NOTIFIER', None))
        self.assertFalse(notifier.is_enabled())
        self.emit()

    def test_priority_and_publisher(self) -> None:
        for format_ in ('versioned', 'both'):
            with notifications.Notifications(
                'test', notification_format=format_
            ) as sent:
                for phase in (*notifier.Phase, None):
                    self.emit(payloads.Payload, phase)
                self.assertEqual(
                    [
                        ('thing.act.start', 'INFO'),
                        ('thing.act.end', 'INFO'),
                        ('thing.act.error', 'ERROR'),
                        ('thing.act', 'INFO'),
                    ],
                    [
                        (message['event_type'], message['priority'])
                        for message in sent.pop()
                    ],
                )

    def test_what_fails_is_logged_and_no_more(self) -> None:
        sent = self.useFixture(notifications.Notifications('test'))
        self.emit()
        self.assertEqual([], sent.pop())
        self.assertIn('thing.act.start is not sent', self.log.output)
        self.useFixture(
            fixtures.MockPatch(
                'nova.rpc.get_versioned_notifier', side_effect=OSError('away')
            )
        )
        self.emit(payloads.Payload)
        self.assertIn('away', self.log.output)

    def test_they_go_where_novas_go(self) -> None:
        self.useFixture(notifications.Notifications('messagingv2'))
        listener = oslo_messaging.get_notification_listener(
            rpc.NOTIFICATION_TRANSPORT,
            [oslo_messaging.Target(topic='versioned_notifications')],
            [self],
        )
        self.heard: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        listener.start()
        try:
            self.emit(payloads.Payload)
            self.assertEqual(
                ('nova-api:controller', 'thing.act.start'),
                self.heard.get(timeout=30),
            )
        finally:
            listener.stop()
            listener.wait()

    def info(
        self,
        _context: Any,
        publisher_id: str,
        event_type: str,
        _payload: Any,
        _metadata: Any,
    ) -> None:
        """As an endpoint of a listener."""
        self.heard.put((publisher_id, event_type))
