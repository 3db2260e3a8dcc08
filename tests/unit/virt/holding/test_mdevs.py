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

import datetime

import fixtures
from nova.tests.fixtures import libvirt as fakelibvirt
from oslo_utils import uuidutils
import sqlalchemy as sa
import testtools

from nova_accel import exceptions
from nova_accel.db import imports
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.host import all_guests
from nova_accel.host import libvirt_devices
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import finding
from nova_accel.model import host_binding
from nova_accel.model import host_findings
from nova_accel.model import pci_address
from nova_accel.testing import libvirt
from nova_accel.virt.holding import mdevs
from unit.virt import planted


def an_arq(name, mdev_type='nvidia-11'):
    return arq_types.Arq(
        f'arq-{name}',
        arq_types.State.BOUND,
        'profile',
        0,
        {},
        'rp',
        attach_handle.AttachHandle(
            name, pci_address.PciAddress(0, 0x81, 0, 0), mdev_type
        ),
    )


class Attachments:
    """Instance -> what it holds; ``made`` are handles."""

    def __init__(self, **held):
        self.roles = held
        self.held = self
        self.made = set()
        self.stuck = set()

    def bindings(self):
        return [
            host_binding.Binding(
                instance_uuid,
                role,
                1,
                tuple(request.uuid for request in arqs),
                arqs,
            )
            for instance_uuid, arqs in self.roles.items()
            for role in (arq_types.Role.ACTIVE, arq_types.Role.OLD)
        ]

    def plug(self, instance_uuid):
        if instance_uuid in self.stuck:
            raise exceptions.DeviceError('the card is stuck')
        self.made.update(
            request.handle.uuid
            for request in self.roles.get(instance_uuid, ())
        )


class Api:
    """Remembers what it is told; may be away."""

    away = False

    def __init__(self):
        self.told = []
        self.failed = []

    def provisioning(self, arq_uuids, failed):
        if self.away:
            raise exceptions.ServiceUnavailable('away')
        self.told.append(sorted(arq_uuids))
        self.failed.append(sorted(failed))


class TestLostMdevs(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.api = Api()
        self.findings = host_findings.Findings()
        self.attachments = Attachments(
            first=(an_arq('a'), an_arq('b'), an_arq('c', None)),
            second=(an_arq('d'),),
            third=(an_arq('e', None),),
        )

    def start(self, *existing):
        return mdevs.LostMdevs(
            self.api, self.attachments, existing, self.findings
        )

    def test_what_is_missing_is_made(self):
        found = self.start('a')
        found.go_on()
        self.assertEqual([['arq-b', 'arq-d']], self.api.told)
        self.assertEqual(set(), self.attachments.made)
        for _time in range(2):
            found.go_on()
        self.assertEqual([['arq-b', 'arq-d'], []], self.api.told)
        self.assertLessEqual({'b', 'd'}, self.attachments.made)

    def test_nothing_is_missing(self):
        """What an earlier nova-compute left unsaid is said once."""
        found = self.start('a', 'b', 'd')
        for _time in range(2):
            found.go_on()
        self.assertEqual([[]], self.api.told)
        self.assertEqual(set(), self.attachments.made)

    def test_a_card_that_is_stuck_is_tried_again(self):
        self.attachments.stuck.add('first')
        found = self.start()
        for _time in range(3):
            found.go_on()
        self.assertIn('the card is stuck', self.log.output)
        self.assertEqual(
            [(finding.Kind.NOT_MADE, 'first')],
            [
                (found.kind, found.instance_uuid)
                for found in self.findings.all()
            ],
        )
        self.assertEqual(
            [['arq-a', 'arq-b', 'arq-d'], ['arq-a', 'arq-b']], self.api.told
        )
        self.attachments.stuck.clear()
        found.go_on()
        self.assertEqual([], self.api.told[-1])
        self.assertEqual(frozenset(), self.findings.all())

    def test_a_failure_is_told_once(self):
        """Also to an API that was away when it was found."""
        self.attachments.stuck = {'first', 'second'}
        found = self.start()
        found.go_on()
        self.api.away = True
        self.assertRaises(exceptions.ServiceUnavailable, found.go_on)
        self.api.away = False
        for _time in range(3):
            found.go_on()
        missing = ['arq-a', 'arq-b', 'arq-d']
        self.assertEqual([missing, missing], self.api.told)
        self.assertEqual([[], missing], self.api.failed)
        self.attachments.stuck.clear()
        for _time in range(2):
            found.go_on()
        self.assertEqual([missing, missing, []], self.api.told)
        self.assertEqual([[], missing, []], self.api.failed)

    def test_an_api_that_is_away_hears_of_it_later(self):
        self.api.away = True
        found = self.start()
        self.assertRaises(exceptions.ServiceUnavailable, found.go_on)
        self.api.away = False
        found.go_on()
        self.api.away = True
        self.assertRaises(exceptions.ServiceUnavailable, found.go_on)
        self.api.away = False
        found.go_on()
        self.assertEqual([['arq-a', 'arq-b', 'arq-d'], []], self.api.told)

    def test_what_is_given_back_meanwhile_is_not_missed(self):
        found = self.start()
        self.attachments.roles.clear()
        for _time in range(2):
            found.go_on()
        self.assertEqual([], self.api.told[-1])


class LeftTestCase(planted.ReconcileTestCase):
    def setUp(self):
        super().setUp()
        self.node_devices = libvirt_devices.NodeDevices(self.libvirt.host)
        self.unused = mdevs.UnusedMdevs(
            self.node_devices,
            all_guests.AllGuests(self.libvirt.host),
            self.attachments,
        )

    def make(self):
        """A mediated device that is not ours."""
        uuid = uuidutils.generate_uuid()
        self.node_devices.create_mdev(uuid, planted.GPU, planted.TYPE)
        return uuid


class TestDestroyLeft(LeftTestCase):
    def test_what_nobody_has(self):
        left, others = self.make(), self.make()
        before = self.mdevs()
        gone = uuidutils.generate_uuid()
        self.assertEqual([], self.unused.destroy_left({left, gone}))
        self.assertEqual(before - {left}, self.mdevs())
        self.assertIn(others, self.mdevs())
        self.assertIn(f'{left} of {planted.GPU} is destroyed', self.log.output)
        self.assertNotIn(gone, self.log.output)

    def test_what_a_guest_has(self):
        """Also one that does not run."""
        uuid = self.make()
        self.connection.defineXML(
            planted.DOMAIN.substitute(
                uuid=uuidutils.generate_uuid(), mdev=uuid
            )
        )
        self.assertEqual([], self.unused.destroy_left({uuid}))
        self.assertIn(uuid, self.mdevs())

    def test_what_an_instance_holds(self):
        server = self.boot()
        self.lose_guest(server)
        (arq,) = self.attachments.held.arqs_of(server.uuid)
        self.assertEqual([], self.unused.destroy_left({arq.handle.uuid}))
        self.assertIn(arq.handle.uuid, self.mdevs())

    def test_one_that_is_stuck(self):
        stuck, other = sorted([self.make(), self.make()])
        destroy = libvirt.MediatedDevice.destroy

        def refuse(device):
            if device._information.uuid == stuck:
                raise libvirt.libvirt_error('the device is stuck')
            destroy(device)

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.testing.libvirt.MediatedDevice.destroy', refuse
            )
        )
        (wrong,) = self.unused.destroy_left({stuck, other})
        self.assertEqual(
            (finding.Kind.MDEV, stuck, False),
            (wrong.kind, wrong.device, wrong.is_repaired),
        )
        self.assertIn('the device is stuck', wrong.words)
        self.assertIn(stuck, self.mdevs())
        self.assertNotIn(other, self.mdevs())

    def test_libvirt_is_asked_only_if_there_may_be_some(self):
        def fail(*_args, **_kwargs):
            raise libvirt.libvirt_error('libvirtd is away')

        self.useFixture(
            fixtures.MonkeyPatch(
                f'{fakelibvirt.__name__}.Connection.listDevices', fail
            )
        )
        self.assertEqual([], self.unused.destroy_left(frozenset()))
        self.assertRaises(
            exceptions.DeviceError,
            self.unused.destroy_left,
            {planted.FOREIGN_MDEV},
        )


class TestFirstReport(LeftTestCase):
    """A host whose database was imported from a Cyborg."""

    def be_imported(self, mdev_uuid):
        """Cyborg's unit is free, and no host has reported it."""
        self.publish()
        handles = schema.ATTACH_HANDLES
        with engine.writer() as connection:
            handle = connection.scalar(
                sa.select(handles.c.uuid)
                .where(handles.c.type == 'MDEV')
                .limit(1)
            )
            connection.execute(
                sa.update(handles)
                .where(handles.c.uuid == handle)
                .values(uuid=mdev_uuid)
            )
            connection.execute(
                sa.update(schema.HOSTS).values(
                    reported_at=imports.NEVER, report_digest=''
                )
            )
        self.current.unjournaled = None

    def publish(self):
        self.host.cycle.run()

    def units(self):
        return len(
            [
                handle
                for handle in self.current.view.handles.values()
                if handle.mdev_type
            ]
        )

    def test_its_units_are_ours_then(self):
        self.publish()
        units = self.units()
        left = self.make()
        self.publish()
        self.assertEqual(units - 1, self.units())
        self.be_imported(left)
        self.publish()
        self.assertNotIn(left, self.mdevs())
        self.assertEqual(units, self.units())
        self.assertTrue(imports.get_hosts()[self.nodename])
        self.assertEqual([], imports.get_left_mdevs(self.nodename))

    def test_what_others_have_made_later_stays(self):
        left = self.make()
        self.be_imported(uuidutils.generate_uuid())
        self.publish()
        self.assertIn(left, self.mdevs())

    def test_it_reported_before(self):
        left = self.make()
        self.be_imported(left)
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.HOSTS).values(
                    reported_at=schema.now() - datetime.timedelta(days=1)
                )
            )
        self.publish()
        self.assertIn(left, self.mdevs())
