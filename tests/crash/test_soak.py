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

"""Servers come and go for long, with faults among them, and nothing grows."""

import contextlib
import os
import random

import fixtures
from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
from nova import exception
from nova.scheduler.client import report
import sqlalchemy as sa
import testtools

from crash import cloud as cloud_module
from crash import effects
from crash import growth
from nova_accel.db.sql import engine
from nova_accel.model.profiles import device_profile
from rig.loopback import board_cloud
from rig.loopback import board_host

_PARTS = 12
_IS_WHOLE = os.environ.get('CRASH_POINTS') == 'all'
#: How many servers each part of the work boots, and schedules.
_BOOTED, _SCHEDULED = (850, 210) if _IS_WHOLE else (5, 5)

#: How many steps of the life of a server are struck.
_STRUCK = 0.1

#: How many GPUs servers have.
_SIZES = '1', '2', '4', '8'

#: The device profile that no host has.
_UNKNOWN = 'unknown'

#: How many servers are deleted when another one comes.
_LEAVES = 0.3

#: Where no one answers.
_NO_ONE = 'http://127.0.0.1:9'


class TestHosts(testtools.TestCase):
    """The pool, and two hosts that are restarted after each fault."""

    def setUp(self):
        super().setUp()
        self.choice = random.Random('soak')
        self.cloud = self.useFixture(cloud_module.Cloud())
        self.growth = growth.Growth()
        with self.cloud.effects.counted() as self.points_of_boot:
            server = self.boot()
        with self.cloud.effects.counted() as self.points_of_delete:
            self.cloud.nova.delete(server)

    def boot(self):
        return self.cloud.nova.boot(
            self.choice.choice(self.cloud.hosts),
            device_profile.FLAVOR_KEY,
            'both',
        )

    def struck(self, points):
        """Have a fault of these in some of the steps, and recover from it."""
        return self._struck(
            self.choice.choice(points)
            if self.choice.random() < _STRUCK
            else None
        )

    @contextlib.contextmanager
    def _struck(self, point):
        with (
            contextlib.suppress(effects.Killed),
            self.cloud.effects.counted(point),
        ):
            yield
        if self.cloud.effects.struck:
            self.faults.add((point.effect, point.fault))
            self.cloud.restart_and_reconcile()

    def live(self):
        """The life of a server.

        :returns: what is wrong after it
        """
        with self.struck(self.points_of_boot):
            self.boot()
        for server in list(self.cloud.nova.instances.values()):
            with self.struck(self.points_of_delete):
                self.cloud.nova.delete(server)
        if not self.cloud.nova.instances:
            return []
        self.cloud.reconcile_placement()
        wrong = self.cloud.drift() + self.cloud.stale_allocations()
        self.cloud.delete_all()
        return wrong

    def rest(self):
        """Come to rest after a part of the work.

        :returns: what is wrong then
        """
        self.cloud.nova.refusals.clear()
        self.cloud.nova.migrations.clear()
        growth.age()
        # What has ended long ago is deleted with the next release.
        for host in self.cloud.hosts:
            self.cloud.nova.delete(
                self.cloud.nova.boot(host, device_profile.FLAVOR_KEY, 'both')
            )
        self.cloud.reconcile()
        wrong = self.cloud.leftovers()
        self.cloud.forget_errors()
        self.growth.sample()
        return wrong

    def test_nothing_grows(self):
        self.faults = set()
        wrong = []
        for _part in range(_PARTS):
            for _server in range(_BOOTED):
                wrong += self.live()
            wrong += self.rest()
        self.assertEqual([], wrong)
        self.assertEqual([], list(self.growth.findings()))
        # Else this would be about nothing.
        self.assertGreater(len(self.faults), 10)


class TestScheduler(testtools.TestCase):
    """nova-scheduler's process: Placement and the database fail at times."""

    def setUp(self):
        super().setUp()
        self.choice = random.Random('soak')
        self.cloud = self.useFixture(
            board_cloud.BoardCloud(
                [board_host.BoardHost(f'board-{name}') for name in 'ab']
            )
        )
        for size in _SIZES:
            link = {} if size == '1' else {'accel:link': 'nvlink'}
            self.cloud.profile(size, {'resources:PGPU': size, **link})
        self.cloud.profile(
            _UNKNOWN, {'resources:PGPU': '1', 'trait:CUSTOM_NO': 'required'}
        )
        self.away = report.SchedulerReportClient(
            adapter.Adapter(
                session.Session(token_endpoint.Token(_NO_ONE, 'admin')),
                service_type='placement',
                raise_exc=False,
            )
        )
        self.growth = growth.Growth()
        self.refused = 0

    def placement_away(self):
        return fixtures.MonkeyPatch(
            'nova.scheduler.client.report.PLACEMENTCLIENT', self.away
        )

    @contextlib.contextmanager
    def database_away(self):
        database = engine.manager().writer.get_engine()
        arguments = database, 'before_cursor_execute', effects.fail_statement
        sa.event.listen(*arguments)
        try:
            yield
        finally:
            sa.event.remove(*arguments)

    def live(self):
        """A server more, if there is room, and less, if there are some."""
        profile = self.choice.choice((*_SIZES, _UNKNOWN))
        if self.choice.random() < _STRUCK:
            away = self.choice.choice(
                (self.placement_away, self.database_away)
            )
            with away(), contextlib.suppress(exception.NovaException):
                self.cloud.request(profile)
        self.refused += self.cloud.is_refused(profile)
        for uuid in list(self.cloud.servers):
            if self.choice.random() < _LEAVES:
                self.cloud.delete(uuid)

    def test_nothing_grows(self):
        for _part in range(_PARTS):
            for _server in range(_SCHEDULED):
                self.live()
            for uuid in list(self.cloud.servers):
                self.cloud.delete(uuid)
            growth.age()
            for name in _SIZES:
                self.cloud.delete(self.cloud.boot(name).uuid)
            self.growth.sample()
        self.assertEqual([], list(self.growth.findings()))
        # Else this would be about nothing.
        self.assertGreater(self.refused, 10)
