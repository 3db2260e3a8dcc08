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

from nova_accel import exceptions
from nova_accel.db import engine
from nova_accel.db import imports
from nova_accel.db import schema
from nova_accel.host import all_guests
from nova_accel.host import libvirt_devices
from nova_accel.model import finding
from nova_accel.testing import libvirt
from nova_accel.virt.holding import left_mdevs
from unit.virt import planted


class LeftTestCase(planted.ReconcileTestCase):
    def setUp(self):
        super().setUp()
        self.node_devices = libvirt_devices.NodeDevices(self.libvirt.host)
        self.left = left_mdevs.LeftMdevs(
            self.node_devices,
            all_guests.Guests(self.libvirt.host),
            self.attachments.held,
        )

    def make(self):
        """A mediated device that is not ours."""
        uuid = uuidutils.generate_uuid()
        self.node_devices.create_mdev(uuid, planted.GPU, planted.TYPE)
        return uuid


class TestDestroy(LeftTestCase):
    def test_what_nobody_has(self):
        left, others = self.make(), self.make()
        before = self.mdevs()
        gone = uuidutils.generate_uuid()
        self.assertEqual([], self.left.destroy({left, gone}))
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
        self.assertEqual([], self.left.destroy({uuid}))
        self.assertIn(uuid, self.mdevs())

    def test_what_an_instance_holds(self):
        server = self.boot()
        self.lose_guest(server)
        (arq,) = self.attachments.held.arqs_of(server.uuid)
        self.assertEqual([], self.left.destroy({arq.handle.uuid}))
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
        (amiss,) = self.left.destroy({stuck, other})
        self.assertEqual(
            (finding.Kind.MDEV, stuck, False),
            (amiss.kind, amiss.device, amiss.is_repaired),
        )
        self.assertIn('the device is stuck', amiss.words)
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
        self.assertEqual([], self.left.destroy(frozenset()))
        self.assertRaises(
            exceptions.DeviceError, self.left.destroy, {planted.FOREIGN_MDEV}
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
        self.board.unjournaled = None

    def publish(self):
        self.host.cycle.run()

    def units(self):
        return len(
            [
                handle
                for handle in self.board.view.handles.values()
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
