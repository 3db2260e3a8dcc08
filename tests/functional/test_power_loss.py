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

"""A host gets power back before anything else in the cloud does.

What nova-compute reaches over the network is away: the accelerator API and its
Keystone, Placement and Glance. Nova's database and message bus are there,
without which nova-compute starts no guest.
"""

import contextlib
import datetime
import time

from db import relay
import fixtures
from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import loading as ks_loading
from nova import exception
from nova.tests.fixtures import libvirt as fakelibvirt

from functional import base
from functional import board
from nova_accel import conf
from nova_accel.db import host as host_db
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model.profiles import device_profile
from rig.loopback import fpga_cloud

CONF = conf.CONF

_CLIENT = 'nova_accel_client'
_BITS = b'bits'

#: Seconds in which nova-compute starts, with all guests, on a busy machine. It
#: takes one. A call of a silent API takes more than 30.
_SOON_S = 20


def _refuse(*_args, **_kwargs):
    raise ks_exceptions.ConnectFailure('Placement is away')


def _refuse_image(*_args, **_kwargs):
    raise exception.GlanceConnectionFailed(server='glance', reason='away')


class PowerLoss:
    """A mixin: the host reaches Keystone and the API through a relay.

    :ivar relay: that, which can be ended or frozen
    """

    def setUp(self):
        super().setUp()
        self.flags(resume_guests_state_on_host_boot=True)

    def _setup_configuration(self):
        super()._setup_configuration()
        self.relay = self.useFixture(
            relay.Relay('127.0.0.1', int(self.url.rpartition(':')[2]))
        )
        url = f'http://127.0.0.1:{self.relay.port}'
        CONF.register_opts(
            ks_loading.get_auth_plugin_conf_options('password'), _CLIENT
        )
        self.flags(
            auth_url=f'{url}/identity',
            endpoint_override=f'{url}/accelerator/v2',
            group=_CLIENT,
        )

    def power_is_lost(self, host):
        """No guest and no mediated device is left."""
        connection = self.connection(host)
        for domain in connection.listAllDomains(
            fakelibvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE
        ):
            domain.destroy()
        for name in connection.listDevices('mdev', 0):
            connection.nodeDeviceLookupByName(name).destroy()
        self.assertEqual([], list(self.mdevs(host)))

    @contextlib.contextmanager
    def all_away(self, is_silent):
        """Nothing answers; or Keystone and the API accept and are silent."""
        if is_silent:
            self.relay.freeze()
        else:
            self.relay.kill()
        with contextlib.ExitStack() as stack:
            for name in ('get', 'put', 'post', 'delete'):
                stack.enter_context(
                    fixtures.MonkeyPatch(
                        'nova.scheduler.client.report.SchedulerReportClient.'
                        f'{name}',
                        _refuse,
                    )
                )
            for name in ('show', 'detail', 'download'):
                stack.enter_context(
                    fixtures.MockPatchObject(self.glance, name, _refuse_image)
                )
            yield
        if is_silent:
            self.relay.thaw()
        else:
            self.relay.come_back()

    def start_without_anything(self, host, is_silent):
        """Start nova-compute, and look at its guests while all is away."""
        self.power_is_lost(host)
        with self.all_away(is_silent):
            self.silence()
            begin = time.monotonic()
            self.restart_compute_service(host)
            took = time.monotonic() - begin
            self.assert_guests_are_back()
            self.assertTrue(self.is_silent(host))
        self.assertLess(took, _SOON_S)
        # Placement and the API hear of the host again, and lose nothing.
        for _time in range(2):
            self.settle(host)
            self._run_periodics()
        self.assertFalse(self.is_silent(host))
        self.assert_guests_are_back()

    def silence(self):
        """The last reports were long ago."""
        with engine.writer() as connection:
            connection.execute(
                schema.HOSTS.update().values(
                    reported_at=datetime.datetime(2020, 1, 1)
                )
            )

    def is_silent(self, hostname):
        """Whether the API has heard nothing of the host."""
        return {
            found['hostname']: found['is_silent']
            for found in host_db.get_all(CONF.nova_accel.host_silence_s)
        }[hostname]


class TestDevices(PowerLoss, fpga_cloud.FpgaCloud, base.AcceleratorTestCase):
    """A guest with an FPGA that is programmed, and a mediated device."""

    def setUp(self):
        super().setUp()
        region, *_others = self.regions('host1')
        image = self.upload(region, _BITS)
        self.server = self.boot_with(
            self.fpga_group(region, bitstream_id=image), base.VGPU
        )
        self.devices = self.guest_devices(self.server)
        self.programmed = len(self.cards.programmed)
        self.found_by_guests = []
        create = fakelibvirt.Domain.createWithFlags
        connection = self.connection('host1')

        def note(domain, flags):
            self.found_by_guests.append(
                (
                    len(self.cards.programmed),
                    len(connection.listDevices('mdev', 0)),
                )
            )
            create(domain, flags)

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.tests.fixtures.libvirt.Domain.createWithFlags', note
            )
        )

    def power_is_lost(self, host):
        super().power_is_lost(host)
        self.cards.lose_contents()
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.virt.fpga.regions.region_journal.boot_id',
                lambda: 'another boot',
            )
        )

    def assert_guests_are_back(self):
        """The devices were ready when the guest was started."""
        self.assertEqual([(self.programmed + 1, 1)], self.found_by_guests)
        [domain] = self.connection('host1').listAllDomains(
            fakelibvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE
        )
        self.assertEqual(self.server['id'], domain.UUIDString())
        self.assertEqual(self.devices, self.guest_devices(self.server))
        self.assertEqual(
            [f'{self.server["id"]}.active.json'], self.journal_files()
        )

    def assert_nothing_is_lost(self):
        self.assert_guest_has_its_arqs(self.server, (0, 'PCI'), (1, 'MDEV'))
        self.delete(self.server)

    def test_nothing_listens(self):
        self.start_without_anything('host1', is_silent=False)
        self.assert_nothing_is_lost()

    def test_nothing_answers(self):
        self.start_without_anything('host1', is_silent=True)
        self.assert_nothing_is_lost()


class TestDevicesCompat(TestDevices):
    flavor_key = device_profile.CYBORG_FLAVOR_KEY


class TestPartitions(PowerLoss, board.BoardTestCase):
    """Guests whose GPUs need a partition of the NVSwitches."""

    def setUp(self):
        super().setUp()
        self.servers = [self.boot(self.flavors[size]) for size in (4, 2)]
        self.before = self.running()
        self.assertEqual(2, len(self.before))

    def power_is_lost(self, host):
        super().power_is_lost(host)
        self.daemon.reset()
        self.assertEqual({}, self.daemon.active)
        self.boots += 1

    def assert_guests_are_back(self):
        self.assertEqual(self.before, self.running())
        self.assert_as_needed()

    def test_nothing_answers(self):
        self.start_without_anything(board.HOST, is_silent=True)
        self.delete(*self.servers)
        self.assertEqual({}, self.daemon.active)
