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

import dataclasses
import threading

import fixtures
import sqlalchemy as sa
import testtools

from nova_accel import exceptions
from nova_accel.db import capacity
from nova_accel.db import engine
from nova_accel.db import schema
from nova_accel.db.rows import orders as order_rows
from nova_accel.model import device
from nova_accel.model import orders
from nova_accel.testing import accelerator_api
from nova_accel.testing import calls
from nova_accel.testing import reports
from nova_accel.virt.publishing import discovery
from nova_accel.virt.publishing import publisher

HOST = 'compute-1'
LONG_S = 3600


class TestPublisher(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.api = self.useFixture(accelerator_api.AcceleratorApi())
        self.log = self.useFixture(fixtures.FakeLogger())
        self.have(1)
        self.looks = 0
        self.steps = []
        self.cycles = threading.Semaphore(0)
        self.publisher = self.a_publisher()

    def a_publisher(self, interval_s=LONG_S):
        node = publisher.Node(
            HOST, reports.SimulatedHost(HOST).node_uuid, 'service')
        return publisher.Publisher(
            node, interval_s, self.look, self.api.client(HOST),
            {'Not told': lambda: self.steps.append('before')},
            {'Not ended': self.end})

    def have(self, *regions, refused=()):
        """What discovery finds from now on."""
        self.inventory = discovery.Inventory(tuple(
            reports.SimulatedHost(HOST, regions).devices()), refused)

    def look(self):
        self.looks += 1
        if isinstance(self.inventory, Exception):
            raise self.inventory
        return self.inventory

    def end(self):
        self.steps.append('after')
        self.cycles.release()

    def end_of_cycle(self):
        self.assertTrue(self.cycles.acquire(timeout=10))

    def test_what_is_found_is_published(self):
        self.publisher.start_cycle()
        self.publisher.wait_published(10)
        self.assertEqual({HOST: 1}, capacity.free_by_host())
        self.assertEqual(self.inventory.devices, self.publisher.view.devices)
        self.assertEqual(1, len(self.publisher.view.layout.providers))

    def test_one_device_that_nobody_takes_does_not_hide_the_others(self):
        self.have(1, 1)
        good, bad = self.inventory.devices
        deployables = tuple(
            dataclasses.replace(each, traits=each.traits | {'---'})
            for each in good.deployables)
        self.inventory = dataclasses.replace(self.inventory, devices=(
            dataclasses.replace(good, deployables=deployables),
            dataclasses.replace(bad, name='x' * 300)))
        for _cycle in range(2):
            self.publisher.start_cycle(at_once=True)
            self.end_of_cycle()
        self.publisher.wait_published(10)
        self.assertEqual({HOST: 1}, capacity.free_by_host())
        (device,) = self.publisher.view.devices
        self.assertEqual(good.deployables, device.deployables)
        self.assertIn('not published', device.attributes)
        # Each once.
        self.assertEqual(2, self.log.output.count('Accelerator refused: '))

    def test_the_view_is_there_before_anybody_is_told(self):
        self.api.refuse = True
        self.publisher.refresh()
        self.assertEqual(['fake'], list(
            self.publisher.view.drivers.values()))

    def test_no_answer(self):
        self.api.refuse = True
        error = self.assertRaises(
            exceptions.ServiceUnavailable,
            self.publisher.wait_published, 0.2)
        self.assertIn(HOST, str(error))
        self.api.refuse = False
        self.publisher.wait_published(10)
        self.assertEqual({HOST: 1}, capacity.free_by_host())

    def test_a_new_device_has_to_be_published_first(self):
        self.publisher.wait_published(10)
        self.api.refuse = True
        self.have(1, 1)
        self.publisher.refresh()
        self.assertRaises(exceptions.ServiceUnavailable,
                          self.publisher.wait_published, 0.1)

    def test_the_same_devices_are_not_waited_for(self):
        self.publisher.wait_published(10)
        self.end_of_cycle()
        self.api.refuse = True
        self.publisher.refresh()
        self.publisher.wait_published(0)

    def test_a_cycle_comes_after_its_interval_only(self):
        self.publisher.start_cycle()
        self.end_of_cycle()
        self.publisher.start_cycle()
        self.publisher.wait_published(0)
        self.assertEqual(1, self.looks)
        eager = self.a_publisher(interval_s=0)
        for _cycle in range(2):
            eager.start_cycle()
            self.end_of_cycle()
            eager._cycle.result(10)
        self.assertEqual(3, self.looks)

    def test_one_that_is_asked_for_while_another_runs_follows(self):
        """What it is about may have come too late for that one."""
        may_look = threading.Event()
        self.addCleanup(may_look.set)
        look = self.look

        def wait():
            may_look.wait(10)
            return look()

        self.look = wait
        waiting = self.a_publisher()
        for at_once in (True, True, True, False):
            waiting.start_cycle(at_once)
        may_look.set()
        waiting._cycle.result(10)
        self.assertEqual(2, self.looks)
        waiting.start_cycle()
        self.assertEqual(2, self.looks)

    def test_it_may_run_in_the_thread_that_asks(self):
        """As in Nova's tests, and those of crashes."""
        self.useFixture(fixtures.MonkeyPatch(
            'nova.thread_pool_factory.spawn', lambda work: work()))
        self.publisher.start_cycle()
        self.publisher.wait_published(0)
        self.assertEqual(1, self.looks)

    def test_nova_ends(self):
        """A server that is deleted then does not fail for it."""
        def end(_work):
            raise RuntimeError('shutdown has been started')

        with fixtures.MonkeyPatch('nova.thread_pool_factory.spawn', end):
            self.publisher.start_cycle(at_once=True)
        self.assertIn('shutdown', self.log.output)
        self.publisher.start_cycle(at_once=True)
        self.publisher.wait_published(10)

    def test_orders_are_kept_and_not_sent_again(self):
        self.assertIsNone(self.publisher.orders)
        self.publisher._run()
        first = self.publisher.orders
        self.assertEqual(frozenset(), first.disabled)
        self.publisher._run()
        self.assertIs(first, self.publisher.orders)
        uuid = reports.SimulatedHost(HOST).device_uuid()
        self.disable(uuid)
        self.publisher._run()
        self.assertEqual({uuid}, self.publisher.orders.disabled)
        self.assertGreater(self.publisher.orders.revision, first.revision)

    def disable(self, uuid):
        with engine.writer() as connection:
            connection.execute(sa.update(schema.DEVICES).where(
                schema.DEVICES.c.uuid == uuid).values(
                    status=device.Status.MAINTAINING))
            order_rows.change(connection, schema.HOSTS.c.hostname == HOST)

    def test_a_report_without_change_costs_one_call_and_one_statement(self):
        for regions in ((1,), (8,) * 64):
            self.have(*regions)
            self.publisher._run()
            with calls.counted() as found:
                self.publisher._run()
            self.assertEqual(calls.Calls(api=1, statements=1), found)

    def test_the_order_of_a_cycle(self):
        """How cleaning went is told before the report gives orders."""
        self.api.refuse = True
        self.publisher._run()
        self.assertIsNone(self.publisher.orders)
        self.assertEqual(['before', 'after'], self.steps)
        self.api.refuse = False
        self.publisher._run()
        self.assertIsNotNone(self.publisher.orders)
        self.assertEqual(['before', 'after'] * 2, self.steps)

    def test_each_step_of_a_cycle_is_on_its_own(self):
        done = []

        def failing(name, error):
            def step():
                done.append(name)
                raise error

            return step

        errors = (OSError(28, 'No space left on device'), KeyError('x'),
                  exceptions.ServiceUnavailable('away'))
        names = ('one', 'two', 'three')
        steps = {f'Not {name}': failing(name, error)
                 for name, error in zip(names, errors, strict=True)}
        failing_all = publisher.Publisher(
            publisher.Node(HOST, 'uuid', 'service'), 0,
            failing('look', KeyError('look')), self.api.client(HOST), steps,
            steps)
        self.api.refuse = True
        for _cycle in range(2):
            done.clear()
            failing_all._run()
            self.assertEqual(['look', *names, *names], done)
        for name, error in zip(names, errors, strict=True):
            self.assertIn(f'Not {name}, trying again later',
                          self.log.output)
            self.assertIn(str(error), self.log.output)

    def test_what_ends_a_thread_does_not_end_the_cycles(self):
        self.inventory = SystemExit()

        def look():
            raise self.inventory

        ending = publisher.Publisher(
            publisher.Node(HOST, 'uuid', 'service'), 0, look,
            self.api.client(HOST), {}, {'Not ended': self.end})
        with fixtures.MonkeyPatch(
                'nova.thread_pool_factory.spawn', lambda work: work()):
            self.assertRaises(SystemExit, ending.start_cycle)
            self.assertRaises(SystemExit, ending.start_cycle)

    def test_what_nobody_must_be_given(self):
        (broken, disabled, fine) = (
            each.uuid for each in (next(found.handles) for found in
                                   reports.SimulatedHost(
                                       HOST, (1, 1, 1)).devices()))
        self.inventory = discovery.Inventory(tuple(reports.SimulatedHost(
            HOST, (1, 1, 1), faults=((0, 'on fire'),)).devices()))
        self.publisher.refresh()
        view = self.publisher.view
        self.assertEqual({broken}, view.unusable(None))
        self.assertEqual({broken, disabled, 'elsewhere'}, view.unusable(
            orders.Orders(1, frozenset({
                reports.SimulatedHost(HOST).device_uuid(1)}),
                frozenset({'elsewhere'}))))
        self.assertNotIn(fine, view.unusable(None))
        self.assertEqual(frozenset(), view.cleaned)

    def test_a_reason_is_logged_once(self):
        self.have(1, refused=('0000:01:00.0: broken',))
        for _look in range(2):
            self.publisher.refresh()
        self.assertEqual(1, self.log.output.count('0000:01:00.0: broken'))

    def test_a_failed_look_keeps_the_view(self):
        self.publisher.refresh()
        view = self.publisher.view
        for error in (exceptions.DeviceError('libvirt is away'),
                      ValueError('a bug')):
            self.inventory = error
            self.publisher.start_cycle(at_once=True)
            self.publisher._cycle.result(10)
            self.assertIn(str(error), self.log.output)
        self.assertEqual(view, self.publisher.view)

    def test_the_digest_names_the_content(self):
        """The same host with the same devices says nothing new."""
        node = publisher.Node(HOST, 'uuid', 'service')
        devices = [{'uuid': '1', 'name': 'a'}]
        same = publisher._digest(node, [{'name': 'a', 'uuid': '1'}])
        self.assertEqual(publisher._digest(node, devices), same)
        for other in (
                publisher._digest(node, []),
                publisher._digest(dataclasses.replace(
                    node, service_host='moved'), devices)):
            self.assertNotEqual(same, other)
