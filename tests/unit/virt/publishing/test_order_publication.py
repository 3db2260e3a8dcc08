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

import types

import testtools

from nova_accel.model import host_orders
from nova_accel.model.providers import host_view
from nova_accel.virt.publishing import order_publication


def orders(revision, *disabled):
    return host_orders.Orders(revision, frozenset(disabled))


class TestOrderPublication(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.current = host_view.CurrentState(host_view.View())
        self.providers = types.SimpleNamespace(may_hurry=True)
        self.done = []
        self.publication = order_publication.OrderPublication(
            self.current,
            self.providers,
            self.update,
            lambda: self.done.append('report'),
        )

    def update(self):
        self.done.append('update')

    def go_on(self, wanted):
        """What is done for these orders."""
        self.done.clear()
        self.current.orders = wanted
        self.publication.go_on()
        return [*self.done]

    def test_a_device_is_disabled_and_enabled(self):
        self.assertEqual([], self.go_on(None))
        self.assertEqual([], self.go_on(orders(1)))
        for wanted in (orders(2, 'a'), orders(3)):
            self.assertEqual(['update', 'report'], self.go_on(wanted))
            self.assertEqual(wanted, self.current.published)
            self.assertEqual([], self.go_on(wanted))

    def test_other_orders_wait_for_nova(self):
        self.go_on(orders(2, 'a'))
        unclean = host_orders.Orders(3, frozenset('a'), frozenset('b'))
        self.assertEqual([], self.go_on(unclean))
        self.assertEqual(2, self.current.published.revision)

    def test_not_while_nova_starts(self):
        self.providers.may_hurry = False
        self.assertEqual([], self.go_on(orders(2, 'a')))
        self.providers.may_hurry = True
        self.assertEqual(['update', 'report'], self.go_on(orders(2, 'a')))

    def test_nova_fails(self):
        """Placement has nothing then, and the next cycle tries again."""

        def fail():
            raise RuntimeError('stuck')

        failing = order_publication.OrderPublication(
            self.current, self.providers, fail, self.update
        )
        self.current.orders = orders(2, 'a')
        self.assertRaises(RuntimeError, failing.go_on)
        self.assertIsNone(self.current.published)
        self.assertEqual(['update', 'report'], self.go_on(orders(2, 'a')))

    def test_nova_places_newer_orders_meanwhile(self):
        newer = orders(3)

        def place():
            self.current.published = newer

        order_publication.OrderPublication(
            self.current, self.providers, place, lambda: None
        ).go_on()
        self.current.orders = orders(2, 'a')
        order_publication.OrderPublication(
            self.current, self.providers, place, lambda: None
        ).go_on()
        self.assertEqual(newer, self.current.published)
