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

import contextlib
import dataclasses
import types

from nova.compute import power_state
from nova.tests import fixtures as nova_fixtures
from nova.tests.fixtures import libvirt as fakelibvirt
import testtools

from nova_accel import exceptions
from nova_accel.client import our_allocations
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.model.providers import provider_layout
from nova_accel.testing import fake_sysfs
from nova_accel.virt import hot_plug
from nova_accel.virt import replacing
from unit.model.cards import slices

INSTANCE = types.SimpleNamespace(
    uuid='0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e5f',
    project_id='project',
    user_id='user',
    system_metadata={},
)


def an_arq(uuid, group=0, bus=0x81):
    return arq_types.Arq(
        uuid,
        arq_types.State.BOUND,
        'gpu',
        group,
        {'resources:PGPU': '1'},
        'pool',
        attach_handle.AttachHandle(
            f'handle of {uuid}', pci_address.PciAddress(0, bus, 0, 0)
        ),
    )


FAILED, SPARE = an_arq('failed'), an_arq('spare', bus=0x82)
POOL = provider_layout.Provider(
    'pool',
    'pool',
    None,
    frozenset(),
    {'PGPU': (FAILED.handle, SPARE.handle)},
)


class Host:
    """It is all parts of a host; ``done`` is what was done, in order."""

    def __init__(self):
        self.done = []
        self.spare = SPARE
        self.has_partition = False
        self.is_cleaned = False
        self.attachments = self.current = self.view = self.fabric = self
        self.programmer = self.held = self
        self.layout = provider_layout.Layout((POOL,))
        self.orders = None
        self.leaves_room = True
        self.is_doubtful = False
        self.sysfs = None

    faulty = frozenset({FAILED.handle.uuid})

    @property
    def cleaned(self):
        return self.faulty if self.is_cleaned else frozenset()

    def unusable(self, orders):
        return self.faulty

    def excluded(self, taken):
        if self.leaves_room:
            return frozenset()
        return {SPARE.handle.uuid} if taken == {FAILED.handle.uuid} else None

    def has(self, instance_uuid):
        return self.has_partition

    def arqs(self):
        return [FAILED]

    def left_by(self, instance_uuid):
        return ()

    def arqs_of(self, instance_uuid):
        return (FAILED,)

    def ready(self, arqs, asker, properties, is_new):
        self.done.append('program')

    @contextlib.contextmanager
    def changing(self, instance_uuid):
        try:
            yield
        finally:
            self.done.append('settle')

    def settle(self, instance_uuid):
        return False

    def add(self, instance_uuid, project_id, wanted, claim, kept):
        claim()
        self.done.append('add')
        return (self.spare,)

    def plug_added(self, instance_uuid, added):
        self.done.append('plug')

    def commit(self, instance_uuid, arqs):
        self.done.append('commit')


class Driver(replacing.ReplacementMixin):
    def __init__(self, host, is_running):
        self._accelerators = host
        self._host = self
        self.is_running = is_running

    def get_guest(self, instance):
        return self

    def get_power_state(self, host):
        return power_state.RUNNING if self.is_running else power_state.SHUTDOWN


class TestReplacing(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(nova_fixtures.LibvirtFixture())
        self.host = Host()
        self.host.sysfs = self.useFixture(fake_sysfs.FakeSysfs()).sysfs
        self.fault = None
        self.patch(our_allocations, 'claim', self.claim)
        self.patch(hot_plug, 'take_out', self.take_out)
        self.patch(hot_plug, 'put_in', self.put_in)

    def claim(self, consumer, resources):
        self.assertEqual({'pool': {'PGPU': 1}}, resources)
        self.host.done.append('claim')

    def take_out(self, guest, arqs, timeout_s):
        if self.fault is not None:
            raise self.fault
        self.host.done.append('take out')
        return ['place']

    def put_in(self, guest, arqs, places):
        self.assertEqual(['place'], places)
        self.host.done.append('put in')

    def replace(self, is_running=True):
        Driver(self.host, is_running)._replace(INSTANCE, [FAILED])

    def made_again(self):
        Driver(self.host, False)._made_again(INSTANCE)

    def test_the_order_of_the_steps(self):
        """The guest gets the new one after the journal has it."""
        self.replace()
        self.assertEqual(
            [
                'claim',
                'add',
                'program',
                'plug',
                'take out',
                'commit',
                'put in',
                'settle',
            ],
            self.host.done,
        )
        self.assertTrue(self.host.is_doubtful)

    def test_a_stopped_guest_gets_it_at_its_start(self):
        self.replace(is_running=False)
        self.assertEqual(['claim', 'add', 'commit', 'settle'], self.host.done)

    def test_a_guest_that_holds_on(self):
        self.fault = exceptions.DeviceError.for_all('the guest holds on')
        error = self.assertRaises(exceptions.Conflict, self.replace)
        self.assertEqual(
            'the guest holds on; a hard reboot replaces what has failed',
            error.public,
        )
        self.assertEqual(
            ['claim', 'add', 'program', 'plug', 'settle'], self.host.done
        )

    def test_libvirt_refuses(self):
        self.fault = fakelibvirt.libvirtError('device is busy: 0000:81')
        error = self.assertRaises(exceptions.DeviceError, self.replace)
        self.assertNotIn('0000:81', error.public)
        self.assertIn('0000:81', str(error))

    def test_joined_gpus_of_a_running_guest(self):
        self.host.has_partition = True
        self.assertRaises(exceptions.Conflict, self.replace)
        self.assertEqual([], self.host.done)
        self.replace(is_running=False)

    def test_no_spare_does_not_keep_a_guest_from_its_start(self):
        self.host.layout = provider_layout.Layout()
        self.made_again()
        self.assertEqual([], self.host.done)

    def test_no_spare_that_others_of_its_card_exclude(self):
        self.host.leaves_room = False
        self.made_again()
        self.assertEqual([], self.host.done)

    def test_a_share_of_the_card_is_claimed_too(self):
        half = 'CUSTOM_SHAPE_MIG_3G_40GB'
        failed, spare = (
            dataclasses.replace(
                arq,
                group={'accel:shape': 'mig:3g.40gb', f'resources:{half}': '1'},
                handle=dataclasses.replace(
                    arq.handle, slice=slices.eighths('mig:3g.40gb', start, 4)
                ),
            )
            for arq, start in ((FAILED, 0), (SPARE, 4))
        )
        self.host.layout = provider_layout.Layout(
            (
                dataclasses.replace(
                    POOL, handles={half: (failed.handle, spare.handle)}
                ),
            )
        )
        self.host.spare = spare
        claimed = []
        self.patch(
            our_allocations,
            'claim',
            lambda consumer, resources: claimed.append(resources),
        )
        Driver(self.host, False)._replace(INSTANCE, [failed])
        self.assertEqual(
            [
                {
                    'pool': {
                        half: 1,
                        'CUSTOM_CARD_SHARE': spare.handle.slice.size,
                    }
                }
            ],
            claimed,
        )

    def test_what_may_have_data_of_the_tenant_stays(self):
        self.host.is_cleaned = True
        self.made_again()
        self.assertEqual([], self.host.done)
        self.host.is_cleaned = False
        self.made_again()
        self.assertIn('commit', self.host.done)

    def test_each_group_gets_its_own(self):
        failed = [an_arq('a', 1), an_arq('b', 0), an_arq('c', 1)]
        added = [an_arq('d', 0), an_arq('e', 1), an_arq('f', 1)]
        self.assertEqual(
            ['e', 'd', 'f'],
            [arq.uuid for arq in replacing._in_order(failed, added)],
        )
