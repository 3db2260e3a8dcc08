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


import collections

import fixtures
from keystoneauth1 import exceptions as ks_exceptions
import oslo_messaging
from oslo_utils import uuidutils

from nova_accel.model import arq_types
from nova_accel.model import finding
from nova_accel.model.providers import provider_layout
from nova_accel.testing import libvirt
from nova_accel.virt.holding import attach_journal
from unit.virt import planted

Place = provider_layout.Place


class TestOneKind(planted.ReconcileTestCase):
    """Each of them beside a server that is well."""

    def assert_repaired(self, plant):
        well = self.boot()
        before = self.everything()
        server, expected = getattr(self, plant)()
        self.assertNotEqual(before, self.everything())
        self.repair()
        self.assertEqual(expected, self.roles(server))
        self.assertEqual(
            ({arq_types.Role.ACTIVE}, {'active'}), self.roles(well)
        )
        if expected == (set(), set()):
            # But for what the API remembers of late requests.
            (arqs, handles, _fences), *others = self.everything()
            self.assertEqual(before, ([arqs, handles, before[0][2]], *others))
        again = self.everything()
        self.repair()
        self.assertEqual(again, self.everything())


def _test(plant):
    def test(self):
        self.assert_repaired(plant)

    return test


for _plant in planted.ReconcileTestCase.PLANTS:
    setattr(TestOneKind, _plant.replace('plant', 'test', 1), _test(_plant))


class TestAllKinds(planted.ReconcileTestCase):
    """On a host that is full of servers."""

    gpus = 8

    def test_one_pass_repairs_them_and_touches_nothing_else(self):
        servers = [self.boot() for _number in range(100)]
        well = self.everything()
        self.assertGreaterEqual(len(self.PLANTS), 10)
        planted = [getattr(self, plant)() for plant in self.PLANTS]
        destroyed = []
        destroy = libvirt.MediatedDevice.destroy

        def destroy_and_tell(device):
            destroyed.append(device.name())
            return destroy(device)

        made = self.mdevs() - well[1]
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.testing.libvirt.MediatedDevice.destroy',
                destroy_and_tell,
            )
        )
        self.nova.calls.clear()
        self.repair()
        for plant, (server, expected) in zip(
            self.PLANTS, planted, strict=True
        ):
            self.assertEqual(expected, self.roles(server), plant)
        kept = self.mdevs() - well[1]
        # Those of the two whose servers go on.
        self.assertEqual(2, len(kept))
        self.assertEqual(len(made - kept), len(destroyed))
        rows, mdevs, files = self.everything()
        self.assertEqual(well[1], mdevs - kept)
        self.assertLessEqual(well[2].items(), files.items())
        # An ARQ of each, and so many handles more are taken as before.
        (arqs, handles, fences) = map(set, rows)
        self.assertLessEqual(set(well[0][0]), arqs)
        self.assertEqual(2, len(arqs) - len(well[0][0]))
        self.assertEqual(2, len(handles - set(well[0][1])))
        self.assertLessEqual(set(well[0][2]), fences)
        for server in servers:
            self.assertEqual(
                ({arq_types.Role.ACTIVE}, {'active'}), self.roles(server)
            )
        self.assertEqual(
            {
                # Of the host; and which consumers are migrations, because
                # of those whose journal is lost.
                'MigrationList.get_by_filters': 2 + 1,
                'InstanceList.get_by_host': 1,
                'InstanceList.get_by_filters': 1,
                'allocations': len(self.accelerator_providers()),
            },
            dict(collections.Counter(self.nova.calls)),
        )


class TestStrangers(planted.ReconcileTestCase):
    """What is not ours, or is not leaked."""

    def assert_left(self, times=2):
        before = self.everything()
        for _again in range(times):
            self.repair()
        self.assertEqual(before, self.everything())

    def test_nothing_is_there(self):
        self.assertIn(planted.FOREIGN_MDEV, self.mdevs())
        self.assert_left()
        self.assertEqual(
            '',
            '\n'.join(
                line
                for line in self.log.output.splitlines()
                if 'accelerators of' in line
            ),
        )

    def test_what_is_under_way(self):
        """Each of them would be a leak if its server were idle."""
        for plant, fields in (
            (
                'an_evacuated_server_of_a_host_installed_anew',
                {'task_state': 'deleting'},
            ),
            (
                'an_unshelve_with_cyborgs_key_that_failed',
                {'task_state': 'unshelving'},
            ),
            (
                'an_evacuation_with_cyborgs_key_that_failed',
                {'vm_state': 'building'},
            ),
        ):
            server, _expected = getattr(self, f'plant_{plant}')()
            vars(server).update(fields)
            self.assert_left()

    def test_what_waits_to_be_confirmed(self):
        server, _expected = (
            self.plant_a_resize_that_failed_on_its_destination()
        )
        self.nova.add_migration(
            server, 'finished', planted.HERE, planted.THERE
        )
        self.assert_left()

    def test_a_live_migration_that_is_checked(self):
        """None of the hosts is its destination yet."""
        server, _expected = (
            self.plant_a_live_migration_that_failed_in_its_checks()
        )
        self.nova.add_migration(
            server, 'accepted', planted.THERE, None, 'live-migration'
        )
        self.assert_left()

    def test_a_guest_that_nova_has_not_reaped(self):
        server = self.boot()
        self.delete(server)
        self.assert_left()
        self.domain(server).destroy()
        self.assert_left()
        self.domain(server).undefine()
        self.repair()
        self.assertEqual((set(), set()), self.roles(server))

    def test_an_orphan_that_a_guest_has(self):
        """Whoever gave it to the guest."""
        server = self.boot()
        (found,) = self.arqs(server)
        self.lose_journal(server)
        self.lose_arq(found['uuid'])
        self.assert_left()
        self.lose_guest(server)
        self.repair()
        self.assertEqual({planted.FOREIGN_MDEV}, self.mdevs())

    def test_an_mdev_with_our_uuid_and_another_parent(self):
        handle = next(
            handle
            for device in self.current.view.devices
            for deployable in device.deployables
            for handle in deployable.handles
            if handle.mdev_type
        )
        other = next(
            device.address
            for device in self.current.view.devices
            if device.driver == 'mdev' and device.address != handle.address
        )
        self.connection.nodeDeviceCreateXML(
            f'''
            <device><parent>{other.node_device}</parent>
            <capability type='mdev'><type id='{planted.TYPE}'/>
            <uuid>{handle.uuid}</uuid></capability></device>''',
            0,
        )
        self.assert_left()

    def test_arqs_of_a_port(self):
        server = self.boot()
        self.bind(server)
        self.assert_left()

    def test_a_damaged_journal(self):
        server = self.boot()
        path = next(self.state.glob('nova_accel/*/*.json'))
        before = self.arqs(server)
        path.write_text('{"attem')
        self.start()
        self.host.cycle._idle.wait(30)
        self.repair()
        self.assertEqual(({'active'}, {'active'}), self.roles(server))
        self.assertEqual(
            [arq['attach_handle_uuid'] for arq in before],
            [
                arq.handle.uuid
                for arq in self.attachments.held.arqs_of(server.uuid)
            ],
        )
        self.assert_left()

    def test_what_is_being_acquired(self):
        server = self.nova.add_instance(planted.THERE)
        self.attachments._journal.write(
            attach_journal.AttachEntry(
                server.uuid,
                arq_types.Role.ACTIVE,
                1,
                attach_journal.AttachStep.ACQUIRING,
            )
        )
        self.assert_left()


class TestAllocations(planted.ReconcileTestCase):
    def setUp(self):
        super().setUp()
        (self.allocation,) = self.vgpus(1)
        self.resources = {
            self.allocation.rp_uuid: {'VGPU': 1},
            'compute node': {'VCPU': 1},
        }

    def allocate(self, server):
        self.nova.allocations[server.uuid] = dict(self.resources)

    def test_what_was_left_elsewhere_is_taken_away(self):
        """Only what is ours, and not in the first pass."""
        server = self.nova.add_instance(planted.THERE)
        self.allocate(server)
        self.repair()
        self.assertEqual(self.resources, self.nova.allocations[server.uuid])
        self.repair()
        self.assertEqual(
            {'compute node': {'VCPU': 1}}, self.nova.allocations[server.uuid]
        )

    def test_what_somebody_needs(self):
        """Or no one knows whose it is."""
        for server in (
            self.boot(),
            self.nova.add_instance(None, vm_state='building'),
            self.nova.add_instance(planted.THERE, task_state='resizing'),
        ):
            self.allocate(server)
        self.nova.allocations[uuidutils.generate_uuid()] = self.resources
        for _again in range(2):
            self.repair()
        self.assertNotIn('take away', self.nova.calls)

    def test_not_before_its_devices_are_free(self):
        server, _expected = (
            self.plant_an_evacuated_server_of_a_host_installed_anew()
        )
        self.allocate(server)
        for expected in ([], [], [], ['take away']):
            self.assertEqual(
                expected,
                [call for call in self.nova.calls if call == 'take away'],
            )
            self.repair()

    def test_what_a_migration_left(self):
        """Its server was deleted while it was copied."""
        server = self.nova.add_instance(planted.HERE, deleted=True)
        self.nova.add_migration(
            server, 'migrating', planted.HERE, planted.THERE
        )
        (migration,) = self.nova.migrations
        migration.deleted = True
        consumers = migration, server
        for consumer in consumers:
            self.allocate(consumer)
        self.repair()
        self.assertNotIn('take away', self.nova.calls)
        self.assertTrue(self.reconciler._counting.is_unfinished)
        self.repair()
        for consumer in consumers:
            self.assertEqual(
                {'compute node': {'VCPU': 1}},
                self.nova.allocations[consumer.uuid],
            )
        self.repair()
        self.assertFalse(self.reconciler._counting.is_unfinished)


class TestUncounted(planted.ReconcileTestCase):
    """Units that are held, and whose allocations are lost."""

    def setUp(self):
        super().setUp()
        self.server = self.boot(2)
        (self.rp_uuid,) = self.nova.allocations[self.server.uuid]
        self.node_uuid = self.current.view.node_uuid
        self.nova.inventories = {
            self.rp_uuid: {'VGPU': {'total': 16, 'reserved': 0}},
            self.node_uuid: {'VCPU': {'total': 8, 'reserved': 0}},
        }
        self.repair()
        self.assertEqual({}, self.current.uncounted)
        self.lose_allocations(self.server)

    def kinds(self):
        return {
            (found.kind, found.is_repaired)
            for found in self.current.findings.all()
            if found.kind != finding.Kind.NOT_IN_GUEST
        }

    def assert_reserved(self, amount):
        self.assertEqual(
            {Place(self.rp_uuid, 'VGPU'): amount} if amount else {},
            self.current.uncounted,
        )

    def test_they_are_allocated_again(self):
        """With what the flavor asks of the node, if nothing is left."""
        self.repair()
        self.assertEqual(
            {self.rp_uuid: {'VGPU': 2}, self.node_uuid: {'VCPU': 1}},
            self.nova.allocations[self.server.uuid],
        )
        self.assert_reserved(0)
        self.assertEqual({(finding.Kind.UNCOUNTED, True)}, self.kinds())
        self.repair()
        self.assertEqual(1, self.nova.calls.count('/reshaper'))

    def test_what_is_left_stays(self):
        rest = {'of nova': {'VCPU': 7}, self.rp_uuid: {'VGPU': 1}}
        self.nova.allocations[self.server.uuid] = dict(rest)
        self.repair()
        self.assertEqual(
            {**rest, self.rp_uuid: {'VGPU': 2}},
            self.nova.allocations[self.server.uuid],
        )

    def test_while_nova_works_at_it(self):
        """They are reserved at once, and told only if that lasts."""
        self.server.task_state = 'rebuilding'
        for expected in (set(), {(finding.Kind.UNCOUNTED, False)}):
            self.repair()
            self.assert_reserved(2)
            self.assertEqual(expected, self.kinds())
        self.assertNotIn('/reshaper', self.nova.calls)
        self.server.task_state = None
        self.nova.inventories[self.rp_uuid]['VGPU'] |= {
            'total': 2,
            'reserved': 2,
        }
        self.repair()
        self.assert_reserved(0)
        self.assertEqual(
            0, self.nova.inventories[self.rp_uuid]['VGPU']['reserved']
        )

    def test_others_have_them(self):
        self.nova.allocations['other'] = {self.rp_uuid: {'VGPU': 15}}
        for _again in range(2):
            self.repair()
            self.assert_reserved(2)
            self.assertEqual({(finding.Kind.UNCOUNTED, False)}, self.kinds())
        self.assertNotIn(self.server.uuid, self.nova.allocations)

    def test_those_at_the_provider_of_a_cyborg(self):
        """They are counted, until the import moves them."""
        self.nova.inventories["Cyborg's"] = {}
        self.nova.allocations[self.server.uuid] = {"Cyborg's": {'VGPU': 2}}
        self.repair()
        self.assertNotIn('/reshaper', self.nova.calls)
        self.assert_reserved(0)

    def test_somebody_allocates_meanwhile(self):
        """What was read a moment ago is not written back."""
        post = self.nova.post

        def post_late(*args, **kwargs):
            self.nova.allocations[self.server.uuid] = {'of nova': {'VCPU': 1}}
            return post(*args, **kwargs)

        self.nova.post = post_late
        self.repair()
        self.assertEqual(
            {'of nova': {'VCPU': 1}}, self.nova.allocations[self.server.uuid]
        )
        self.assert_reserved(2)

    def test_an_operation_begins_meanwhile(self):
        """Nova is asked after Placement, so ours does not come too late."""
        read = self.nova.get_allocs_for_consumer

        def read_and_migrate(context, consumer):
            found = read(context, consumer)
            self.server.task_state = 'resize_prep'
            self.nova.allocations['migration'] = {self.rp_uuid: {'VGPU': 2}}
            return found

        self.nova.get_allocs_for_consumer = read_and_migrate
        self.repair()
        self.assertNotIn('/reshaper', self.nova.calls)
        self.assert_reserved(2)

    def test_placement_is_away(self):
        def away(*_args, **_kwargs):
            raise ks_exceptions.ConnectFailure('Placement is away')

        self.nova.get = away
        self.repair()
        self.assert_reserved(2)
        self.nova.get_allocs_for_consumer = away
        self.repair()
        self.assert_reserved(2)
        self.assertEqual(set(), self.kinds())

    def test_one_that_is_released_meanwhile(self):
        look = self.reconciler._counting.look

        def look_and_release():
            seen = look()
            self.attachments.release(self.server.uuid)
            return seen

        self.reconciler._counting.look = look_and_release
        self.repair()
        self.assert_reserved(0)
        self.assertNotIn('/reshaper', self.nova.calls)

    def test_a_start_looks_for_them_before_it_frees_anything(self):
        self.server.task_state = 'rebuilding'
        self.start()
        self.host.cycle._idle.wait(30)
        self.assert_reserved(2)
        self.assertEqual(({'active'}, {'active'}), self.roles(self.server))

    def test_the_next_pass_comes_soon_and_then_later(self):
        self.server.task_state = 'rebuilding'
        waits = []
        for _pass in range(7):
            self.reconciler._compared_at = float('-inf')
            self.reconciler.run()
            waits.append(self.reconciler._wait_s)
        self.assertEqual([10, 20, 40, 80, 160, 300, 300], waits)
        self.server.task_state = None
        self.reconciler._compared_at = float('-inf')
        self.reconciler.run()
        self.assertEqual(300, self.reconciler._wait_s)

    def test_doubt(self):
        self.reconciler.run()
        self.assertNotIn('/reshaper', self.nova.calls)
        self.current.is_doubtful = True
        self.reconciler._compared_at -= 5
        self.reconciler.run()
        self.assertNotIn('/reshaper', self.nova.calls)
        self.reconciler._compared_at -= 5
        self.reconciler.run()
        self.assertIn('/reshaper', self.nova.calls)
        self.assertFalse(self.current.is_doubtful)


class TestUnadopted(planted.ReconcileTestCase):
    """ARQs that Nova's Cyborg client has bound, and no one has come for."""

    def run_soon(self):
        """A cycle, long before the next pass."""
        self.publisher.report()
        self.nova.calls.clear()
        self.reconciler.run()

    def test_a_server_that_is_deleted_before_it_is_built(self):
        server = self.nova.add_instance(None, vm_state='building')
        self.bind(server)
        for _cycle in range(2):
            self.run_soon()
            self.assertEqual((set(), {None}), self.roles(server))
            self.assertIn('InstanceList.get_by_host', self.nova.calls)
        self.delete(server)
        self.run_soon()
        self.assertEqual((set(), set()), self.roles(server))
        # Perhaps once more, in vain.
        for _cycle in range(2):
            self.run_soon()
        self.assertEqual([], self.nova.calls)

    def test_those_of_a_server_that_stays(self):
        """They wait for the next pass: no one is about to come."""
        server = self.nova.add_instance(planted.HERE)
        self.bind(server)
        for is_asked in (True, False):
            self.run_soon()
            self.assertEqual(is_asked, bool(self.nova.calls))
        other = self.nova.add_instance(None, vm_state='building')
        self.bind(other)
        self.delete(other)
        self.run_soon()
        self.assertEqual((set(), set()), self.roles(other))
        self.assertEqual((set(), {None}), self.roles(server))

    def test_nobody_has_bound_any(self):
        self.boot()
        self.run_soon()
        self.assertEqual([], self.nova.calls)


class TestFaults(planted.ReconcileTestCase):
    def assert_waits(self, text):
        before = self.everything()
        self.reconciler._compared_at = float('-inf')
        self.reconciler.run()
        self.assertEqual(before, self.everything())
        self.assertIn('trying again later', self.log.output)
        self.assertIn(text, self.log.output)

    def test_who_does_not_answer(self):
        server, _expected = (
            self.plant_a_server_deleted_while_nova_compute_was_down()
        )
        for fault in (
            oslo_messaging.MessagingTimeout('nova is away'),
            ks_exceptions.ConnectFailure('nova is away'),
        ):
            self.nova.fault = fault
            self.assert_waits('nova is away')
        self.nova.fault = None
        self.api.refuse = True
        self.assert_waits('cannot be reached')
        self.api.refuse = False
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.virt.libvirt.host.Host.list_guests', self.libvirt_is_away
            )
        )
        self.assert_waits('libvirt does not list its guests')
        self.assertEqual(({'active'}, {'active'}), self.roles(server))

    @staticmethod
    def libvirt_is_away(*_args, **_kwargs):
        raise libvirt.libvirt_error('away')

    def test_one_that_fails_does_not_stop_the_others(self):
        planted = [
            self.plant_a_lost_journal_of_a_server_that_is_gone(),
            self.plant_an_unshelve_with_cyborgs_key_that_failed(),
        ]
        stuck = {
            found['attach_handle_uuid'] for found in self.arqs(planted[0][0])
        }
        destroy = libvirt.MediatedDevice.destroy

        def refuse(device):
            if device._information.uuid in stuck:
                raise libvirt.libvirt_error('the device is stuck')
            return destroy(device)

        with fixtures.MonkeyPatch(
            'nova_accel.testing.libvirt.MediatedDevice.destroy', refuse
        ):
            self.repair()
        self.assertIn('the device is stuck', self.log.output)
        self.assertEqual((set(), {'active'}), self.roles(planted[0][0]))
        self.assertEqual((set(), set()), self.roles(planted[1][0]))
        self.repair()
        self.assertEqual((set(), set()), self.roles(planted[0][0]))

    def test_what_the_api_has_lost_is_told(self):
        server = self.boot()
        (found,) = self.arqs(server)
        self.lose_arq(found['uuid'])
        self.repair()
        self.assertIn('may give its devices away', self.log.output)
        self.assertEqual(({'active'}, set()), self.roles(server))


class TestFindings(planted.ReconcileTestCase):
    def setUp(self):
        super().setUp()
        self.findings = self.current.findings

    def found(self):
        """The kind of each finding, and whether the host has repaired it."""
        return {
            (found.kind, found.instance_uuid): found.is_repaired
            for found in self.findings.all()
        }

    def words(self):
        return '\n'.join(found.words for found in self.findings.all())

    def run_anew(self):
        self.reconciler._compared_at = float('-inf')
        self.reconciler.run()

    def test_all_is_well(self):
        for _number in range(3):
            self.boot()
        self.nova.calls.clear()
        self.repair()
        self.assertEqual({}, self.found())
        # A second look at Nova is for what seems to be wrong.
        self.assertEqual(1, self.nova.calls.count('InstanceList.get_by_host'))

    def test_a_guest_that_is_gone_until_it_is_back(self):
        well, server = self.boot(), self.boot()
        definition = self.domain(server).XMLDesc(0)
        self.lose_guest(server)
        before = self.everything()
        self.repair()
        told = {(finding.Kind.GUEST_GONE, server.uuid): False}
        self.assertEqual(told, self.found())
        self.assertIn(server.uuid, self.log.output)
        self.assertNotIn(f'guest of instance {well.uuid}', self.log.output)
        for _again in range(2):
            self.reconciler.run()
        self.assertEqual(told, self.found())
        self.assertEqual(1, self.log.output.count('is wrong'))
        self.assertEqual(before, self.everything())
        self.connection.defineXML(definition).create()
        # Each cycle looks at it, and the next pass is far away.
        self.reconciler.run()
        self.assertEqual({}, self.found())
        self.nova.calls.clear()
        self.reconciler.run()
        self.assertEqual([], self.nova.calls)

    def test_a_guest_that_has_just_stopped(self):
        """Nova stops its server soon; if not, it is told."""
        for is_told in (False, True):
            server = self.boot()
            self.domain(server).destroy()
            self.repair()
            self.assertEqual({}, self.found())
            if not is_told:
                server.vm_state = 'stopped'
            self.reconciler.run()
            self.assertEqual(
                {(finding.Kind.GUEST_STOPPED, server.uuid): False}
                if is_told
                else {},
                self.found(),
            )

    def test_an_operation_that_begins_meanwhile(self):
        """Nova had the server idle, and then destroyed its guest."""
        server = self.boot()
        look = self.reconciler._bindings._look

        def look_and_stop(consumers):
            host = look(consumers)
            self.lose_guest(server)
            server.task_state = 'rebooting_hard'
            return host

        self.reconciler._bindings._look = look_and_stop
        self.repair()
        self.assertEqual({}, self.found())

    def test_a_device_that_the_guest_lacks(self):
        server = self.boot(2)
        self.repair()
        self.assertEqual({}, self.found())
        self.reconciler.run()
        self.assertEqual(
            {(finding.Kind.NOT_IN_GUEST, server.uuid): False}, self.found()
        )

    def test_a_guest_that_nova_does_not_know(self):
        server = self.boot()
        self.delete(server)
        self.repair()
        self.assertEqual(
            {(finding.Kind.GUEST_WITHOUT_SERVER, server.uuid): False},
            self.found(),
        )
        self.lose_guest(server)
        self.repair()
        self.assertEqual(
            {(finding.Kind.BINDING, server.uuid): True}, self.found()
        )

    def test_what_is_repaired_is_told_until_the_next_pass_ends(self):
        for plant in self.PLANTS:
            getattr(self, plant)()
        self.repair()
        told = self.found()
        self.assertEqual({True}, set(told.values()))
        self.assertIn((finding.Kind.MDEV, None), told)
        self.assertEqual(
            len(self.PLANTS) - 1,
            len([1 for kind, _uuid in told if kind == finding.Kind.BINDING]),
        )
        # On a full card a mediated device is known as ours only when others
        # are gone, so a later pass may find some.
        for _pass in self.PLANTS:
            self.repair()
            self.assertLessEqual({*self.found()}, {(finding.Kind.MDEV, None)})
        self.assertEqual({}, self.found())

    def test_what_the_api_has_lost(self):
        server = self.boot()
        self.lose_arq(self.arqs(server)[0]['uuid'])
        for _again in range(2):
            self.repair()
            self.assertEqual(
                {(finding.Kind.NOT_IN_API, server.uuid): False}, self.found()
            )

    def test_a_damaged_journal(self):
        server = self.boot()
        path = next(self.state.glob('nova_accel/*/*.json'))
        path.write_text('{"attem')
        self.start()
        self.host.cycle._idle.wait(30)
        told = dict(
            zip(
                (
                    (found.kind, found.instance_uuid)
                    for found in self.current.findings.all()
                ),
                (found.words for found in self.current.findings.all()),
                strict=True,
            )
        )
        self.assertIn(str(path), told[finding.Kind.JOURNAL, server.uuid])

    def test_a_stale_allocation(self):
        server = self.nova.add_instance(planted.THERE)
        (allocation,) = self.vgpus(1)
        self.nova.allocations[server.uuid] = {allocation.rp_uuid: {'VGPU': 1}}
        self.repair()
        self.assertEqual({}, self.found())
        self.repair()
        self.assertEqual(
            {(finding.Kind.ALLOCATION, server.uuid): True}, self.found()
        )

    def test_what_fails(self):
        self.plant_a_mediated_device_that_nobody_has()

        def refuse(_device):
            raise libvirt.libvirt_error('the device is stuck')

        with fixtures.MonkeyPatch(
            'nova_accel.testing.libvirt.MediatedDevice.destroy', refuse
        ):
            self.repair()
        self.assertEqual({(finding.Kind.MDEV, None): False}, self.found())
        self.assertIn('the device is stuck', self.words())
        self.repair()
        self.assertEqual({(finding.Kind.MDEV, None): True}, self.found())

    def test_a_comparison_that_fails(self):
        with fixtures.MonkeyPatch(
            'nova.virt.libvirt.host.Host.list_guests',
            TestFaults.libvirt_is_away,
        ):
            self.run_anew()
        self.assertEqual({(finding.Kind.NOT_DONE, None): False}, self.found())
        self.assertIn('libvirt does not list its guests', self.words())
        self.run_anew()
        self.assertEqual({}, self.found())

    def test_a_service_that_does_not_answer_is_no_finding(self):
        server = self.boot()
        self.lose_guest(server)
        self.repair()
        told = self.found()
        self.nova.fault = oslo_messaging.MessagingTimeout('nova is away')
        self.run_anew()
        self.nova.fault = None
        self.api.refuse = True
        self.run_anew()
        self.assertEqual(told, self.found())

    def test_nova_does_not_answer_the_second_question(self):
        """What was found before stays, and is looked at again."""
        server = self.boot()
        self.lose_guest(server)
        self.repair()
        told = self.found()
        self.assertEqual({(finding.Kind.GUEST_GONE, server.uuid): False}, told)

        def away(*_arguments):
            raise oslo_messaging.MessagingTimeout('nova is away')

        with fixtures.MonkeyPatch(
            'nova_accel.virt.holding.reconcile.Reconciler._look_again', away
        ):
            self.repair()
        self.assertIn('nova is away', self.log.output)
        self.assertEqual(told, self.found())
        server.vm_state = 'stopped'
        self.reconciler.run()
        self.assertEqual({}, self.found())

    def test_news_are_reported_at_once(self):
        hurried = []
        self.reconciler._hurry = lambda: hurried.append(True)
        self.run_anew()
        self.assertEqual([], hurried)
        self.lose_guest(self.boot())
        for _again in range(2):
            self.run_anew()
            self.reconciler.run()
        self.assertEqual([True], hurried)


class TestRun(planted.ReconcileTestCase):
    def test_only_when_it_is_time(self):
        server, _expected = (
            self.plant_an_evacuated_server_of_a_host_installed_anew()
        )
        self.nova.calls.clear()
        self.reconciler.run()
        self.assertEqual([], self.nova.calls)
        self.reconciler._compared_at = float('-inf')
        self.reconciler.run()
        self.assertEqual((set(), set()), self.roles(server))
        self.nova.calls.clear()
        self.reconciler.run()
        self.assertEqual([], self.nova.calls)

    def test_what_a_move_left_is_not_waited_for(self):
        server, _expected = (
            self.plant_a_resize_that_failed_on_its_destination()
        )
        self.nova.calls.clear()
        self.reconciler.run()
        self.assertEqual((set(), set()), self.roles(server))
        self.assertNotIn('allocations', self.nova.calls)
