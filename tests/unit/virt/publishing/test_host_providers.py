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

import copy
import dataclasses
import pathlib
import threading

import fixtures
from nova import exception
from nova.compute import provider_tree as nova_tree
import oslo_messaging
import testtools

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import finding
from nova_accel.model import host_findings
from nova_accel.model import host_orders
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.cards import card_slice
from nova_accel.model.devices import hardware
from nova_accel.model.providers import host_view
from nova_accel.model.providers import provider_layout
from nova_accel.state import durable_file
from nova_accel.testing import reports
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import attaching
from nova_accel.virt.holding import holdings
from nova_accel.virt.publishing import host_providers
from nova_accel.virt.publishing import published_traits
from rig import sample_devices
from rig.stubs import nova_records

NODE = 'c1'
NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'
QAT = 'CUSTOM_QAT'


INSTANCE = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
OTHER = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a02'


def a_handle(bus):
    return attach_handle.AttachHandle(
        naming.derived_uuid(NODE_UUID, str(bus)),
        pci_address.PciAddress(0, bus, 0, 0),
    )


def a_device(bus, is_pooled):
    return sample_devices.qat(
        bus,
        [hardware.Deployable('function', QAT, frozenset(), (a_handle(bus),))],
        pooled=is_pooled,
    )


class ProvidersTestCase(testtools.TestCase):
    """A host, and Nova and Placement as far as its providers are concerned.

    The test is its own board and cleaner. ``tree`` is what Placement has, and
    ``nova.allocations`` what of it is allocated.
    """

    def setUp(self):
        super().setUp()
        self.nova = self.useFixture(nova_records.NovaRecords())
        self.log = self.useFixture(fixtures.FakeLogger())
        self.findings = host_findings.Findings()
        self.state = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.orders = host_orders.Orders(1)
        self.uncounted = {}
        self.awaited = frozenset()
        self.published = None
        self.tree = nova_tree.ProviderTree()
        self.tree.new_root(NODE, NODE_UUID)
        self.refused = None
        self.have(0, 1)
        self.start()

    def have(self, *buses, is_pooled=True, faulty=()):
        devices = tuple(
            dataclasses.replace(
                a_device(bus, is_pooled),
                fault=('on fire' if bus in faulty else None),
            )
            for bus in buses
        )
        self.view = host_view.View(
            NODE_UUID,
            devices,
            provider_layout.layout(NODE, NODE_UUID, devices),
        )

    def start(self):
        """Nova-compute, whose first update may reshape."""
        self.journal = attach_journal.AttachJournal(self.state / NODE)
        self.attachments = attaching.Attachments(
            NODE,
            self.journal,
            holdings.Holdings(self.journal),
            None,
            None,
            self,
            self,
            None,
            None,
        )
        self.providers = host_providers.Providers(
            NODE,
            self,
            self,
            self.attachments,
            published_traits.PublishedTraits(self.state / 'traits.json'),
        )
        self.periodic()

    def periodic(self):
        self.providers.begin_update()
        self.update(self.tree)

    def update(self, tree):
        """As Nova's resource tracker does, in its startup too."""
        wanted = copy.deepcopy(tree)
        try:
            self.providers.update(wanted, None)
        except exception.ReshapeNeeded:
            allocations = {
                consumer: {
                    'allocations': {
                        rp_uuid: {'resources': dict(amounts)}
                        for rp_uuid, amounts in resources.items()
                    }
                }
                for consumer, resources in self.nova.allocations.items()
            }
            self.providers.update(wanted, allocations)
            if self.refused is not None:
                raise self.refused from None
            self.assert_fits(wanted, allocations)
            self.nova.allocations = {
                consumer: {
                    rp_uuid: found['resources']
                    for rp_uuid, found in allocation['allocations'].items()
                }
                for consumer, allocation in allocations.items()
            }
        self.flush(wanted)

    def assert_fits(self, tree, allocations):
        """As Placement checks in a reshape."""
        for rp_uuid in tree.get_provider_uuids():
            for resource_class, units in tree.data(rp_uuid).inventory.items():
                self.assertLessEqual(
                    sum(
                        found['allocations']
                        .get(rp_uuid, {})
                        .get('resources', {})
                        .get(resource_class, 0)
                        for found in allocations.values()
                    ),
                    units['total'] - units['reserved'],
                )

    def flush(self, wanted):
        """Placement does not remove what is allocated."""
        for resources in self.nova.allocations.values():
            for rp_uuid, amounts in resources.items():
                self.assertLessEqual(
                    amounts.keys(), wanted.data(rp_uuid).inventory.keys()
                )
        self.tree = wanted

    def hold(
        self,
        bus,
        instance=INSTANCE,
        role=arq_types.Role.ACTIVE,
        consumer=None,
    ):
        place = self.view.layout.places[a_handle(bus).uuid]
        entry = attach_journal.AttachEntry(
            instance,
            role,
            1,
            attach_journal.AttachStep.HELD,
            (
                arq_types.Arq(
                    f'f4ad4b4e-4aeb-4a6a-8a2f-{bus:012x}',
                    arq_types.State.BOUND,
                    'qat',
                    0,
                    {f'resources:{QAT}': '1'},
                    place.rp_uuid,
                    a_handle(bus),
                ),
            ),
        )
        self.journal.write(entry)
        self.nova.allocations[consumer or instance] = {place.rp_uuid: {QAT: 1}}
        return entry

    def release(self, entry):
        self.journal.remove(entry)

    def units(self):
        """Name after the infix -> total and reserved; the free in between."""
        found = {}
        for uuid in self.tree.get_provider_uuids()[1:]:
            data = self.tree.data(uuid)
            found[data.name.removeprefix('c1_accel_')] = {
                resource_class: (units['total'], units['reserved'])
                for resource_class, units in data.inventory.items()
            }
        return found

    def allocations(self, consumer=INSTANCE):
        return {
            self.tree.data(rp_uuid).name.removeprefix('c1_accel_'): amounts[
                QAT
            ]
            for rp_uuid, amounts in self.nova.allocations[consumer].items()
        }

    def held_of(self, bus):
        """The name of the provider that the journal says."""
        (found,) = {
            request.device_rp_uuid
            for request in self.attachments.held.arqs()
            if request.handle == a_handle(bus)
        }
        return self.tree.data(found).name.removeprefix('c1_accel_')


POOL = 'qat_8086_37c9'
FIRST, SECOND = 'pci_0000_00_00_0', 'pci_0000_01_00_0'


class TestFullDisk(ProvidersTestCase):
    """Nova would not survive its error: its resource lock is held then."""

    def refuse(self, *_arguments):
        raise exceptions.DiskError('No space left on device')

    def test_the_tree_is_as_it_should_be(self):
        with fixtures.MonkeyPatch(
            'nova_accel.state.durable_file.write', self.refuse
        ):
            self.have(0, 1, is_pooled=False)
            for _time in range(2):
                self.periodic()
            self.assertEqual((1, 0), self.units()[SECOND][QAT])
            self.assertEqual(
                1, self.log.output.count('No space left on device')
            )
        before = (self.state / 'traits.json').read_text()
        self.periodic()
        self.assertNotEqual(before, (self.state / 'traits.json').read_text())

    def test_a_reshape_that_is_not_journaled(self):
        self.hold(0)
        self.hold(1, OTHER)
        self.have(0, 1, is_pooled=False)
        self.start()
        write = durable_file.write
        first = sorted((self.state / NODE).iterdir())[0]

        def refuse_one(path, text):
            if path == first:
                raise exceptions.DiskError('No space left on device')
            write(path, text)

        with fixtures.MonkeyPatch(
            'nova_accel.state.durable_file.write', refuse_one
        ):
            self.providers.settle()
        # One was refused, the other was not.
        self.assertEqual({POOL, SECOND}, {self.held_of(0), self.held_of(1)})
        self.providers.settle()
        self.assertEqual((FIRST, SECOND), (self.held_of(0), self.held_of(1)))


class TestReserved(ProvidersTestCase):
    def assert_pool(self, total, reserved):
        self.periodic()
        self.assertEqual({POOL: {QAT: (total, reserved)}}, self.units())

    def test_a_fault_and_its_end(self):
        self.assert_pool(2, 0)
        self.have(0, 1, faulty=[0])
        self.assert_pool(2, 1)
        self.have(0, 1)
        self.assert_pool(2, 0)

    def test_a_disabled_device_and_its_guest(self):
        uuid = naming.derived_uuid(NODE_UUID, FIRST)
        entry = self.hold(0)
        self.orders = host_orders.Orders(2, disabled=frozenset({uuid}))
        self.assert_pool(2, 0)
        self.release(entry)
        self.assert_pool(2, 1)
        self.orders = host_orders.Orders(3)
        self.assert_pool(2, 0)

    def test_what_placement_has(self):
        """Nova may fail to write a change, so only the next update tells."""
        self.assert_pool(2, 0)
        self.assertIs(self.orders, self.published)
        before = self.orders
        uuid = naming.derived_uuid(NODE_UUID, FIRST)
        self.orders = host_orders.Orders(2, disabled=frozenset({uuid}))
        self.periodic()
        self.assertIs(before, self.published)
        self.periodic()
        self.assertIs(self.orders, self.published)

    def test_nova_is_hurried_only_after_its_start(self):
        self.assertFalse(self.providers.may_hurry)
        self.periodic()
        self.assertTrue(self.providers.may_hurry)

    def test_what_is_held_and_not_allocated(self):
        """Also before a nova-compute that starts anew has looked for it."""
        self.hold(0)
        (place,) = set(self.view.layout.places.values())
        self.assert_pool(2, 0)
        self.uncounted = {place: 1}
        self.assert_pool(2, 1)
        self.uncounted = None
        self.start()
        self.assert_pool(2, 1)
        self.uncounted = {}
        self.assert_pool(2, 0)

    def test_what_is_unclean_or_will_be_called_so(self):
        unclean = frozenset({a_handle(0).uuid})
        self.awaited = unclean
        self.assert_pool(2, 1)
        self.awaited, self.orders = (
            frozenset(),
            host_orders.Orders(2, uncleaned=unclean),
        )
        self.assert_pool(2, 1)
        self.orders = host_orders.Orders(3)
        self.assert_pool(2, 0)

    def test_what_is_not_given_back_yet(self):
        entry = dataclasses.replace(
            self.hold(0), step=attach_journal.AttachStep.RELEASING
        )
        self.journal.write(entry)
        self.assert_pool(2, 1)
        self.release(entry)
        self.assert_pool(2, 0)

    def test_what_was_reserved_stays_so_until_the_api_has_said_why(self):
        self.orders = host_orders.Orders(
            2, uncleaned=frozenset({a_handle(0).uuid})
        )
        self.assert_pool(2, 1)
        known, self.orders = self.orders, None
        self.start()
        self.assert_pool(2, 1)
        self.orders = known
        self.assert_pool(2, 1)
        self.orders = host_orders.Orders(3)
        self.assert_pool(2, 0)


class TestSharedCards(ProvidersTestCase):
    """A card that is whole, or two halves, or seven eighths."""

    def setUp(self):
        super().setUp()
        [self.card] = reports.SimulatedHost(regions=(), cards=1).devices()
        devices = (self.card,)
        self.view = host_view.View(
            NODE_UUID,
            devices,
            provider_layout.layout(NODE, NODE_UUID, devices),
        )

    def hold_half(self, step):
        [_whole, half, _eighth] = self.card.deployables
        handle = half.handles[0]
        rp_uuid = self.view.layout.places[handle.uuid].rp_uuid
        entry = attach_journal.AttachEntry(
            INSTANCE,
            arq_types.Role.ACTIVE,
            1,
            step,
            (
                arq_types.Arq(
                    'f4ad4b4e-4aeb-4a6a-8a2f-000000000001',
                    arq_types.State.BOUND,
                    'half',
                    0,
                    {f'resources:{half.resource_class}': '1'},
                    rp_uuid,
                    handle,
                ),
            ),
        )
        self.journal.write(entry)
        return entry

    def assert_reserved(self, whole, half, eighth):
        self.periodic()
        self.assertEqual(
            {
                'CUSTOM_SHAPE_WHOLE': (1, whole),
                'CUSTOM_SHAPE_MIG_3G_40GB': (2, half),
                'CUSTOM_SHAPE_MIG_1G_10GB': (7, eighth),
                naming.CARD_SHARE: (card_slice.WHOLE_CARD, 0),
            },
            self.units()['pci_0002_00_00_0'],
        )

    def test_what_a_guest_leaves_no_room_for_is_reserved(self):
        self.assert_reserved(0, 0, 0)
        entry = self.hold_half(attach_journal.AttachStep.HELD)
        self.assert_reserved(1, 0, 4)
        self.release(entry)
        self.assert_reserved(0, 0, 0)

    def test_what_is_not_given_back_yet(self):
        entry = self.hold_half(attach_journal.AttachStep.RELEASING)
        self.assert_reserved(1, 1, 4)
        self.release(entry)
        self.assert_reserved(0, 0, 0)


class TestVanished(ProvidersTestCase):
    def test_one_that_nobody_has(self):
        self.have(1)
        self.periodic()
        self.assertEqual({POOL: {QAT: (1, 0)}}, self.units())

    def test_one_of_a_pool_that_a_guest_had(self):
        entry = self.hold(0)
        self.have(1)
        self.periodic()
        self.assertEqual({POOL: {QAT: (2, 0)}}, self.units())
        self.release(entry)
        del self.nova.allocations[INSTANCE]
        self.periodic()
        self.assertEqual({POOL: {QAT: (1, 0)}}, self.units())

    def test_a_server_is_deleted_whose_device_is_gone(self):
        """Nova updates its resources before it deletes the allocation."""
        entry = self.hold(0)
        self.have()
        for _period in range(3):
            self.periodic()
            self.providers.settle()
            self.assertEqual({POOL: {QAT: (1, 0)}}, self.units())
        self.release(entry)
        for _period in range(3):
            self.periodic()
            self.providers.settle()
            self.assertEqual({POOL: {QAT: (1, 1)}}, self.units())
        del self.nova.allocations[INSTANCE]
        self.periodic()
        self.providers.settle()
        self.periodic()
        self.assertEqual({}, self.units())

    def test_placement_is_asked_for_nothing_else(self):
        self.periodic()
        self.providers.settle()
        self.assertEqual([], self.nova.calls)
        self.have()
        self.periodic()
        self.periodic()
        self.providers.settle()
        self.assertEqual(['allocations'], self.nova.calls)

    def test_it_goes_later_if_placement_is_away(self):
        self.have()
        self.periodic()
        self.periodic()
        self.nova.fault = exception.NovaException('away')
        self.assertRaises(exceptions.ServiceUnavailable, self.providers.settle)
        self.periodic()
        self.assertEqual({POOL: {QAT: (2, 2)}}, self.units())


class TestStats(ProvidersTestCase):
    def test_what_is_there(self):
        """Whether it is held, or broken, does not matter."""
        self.hold(0)
        self.have(0, 1, 2, faulty=(1,))
        self.assertEqual(
            {'nova_accel_units': '3', f'nova_accel_units:{QAT}': '3'},
            self.providers.stats(),
        )


class TestReshape(ProvidersTestCase):
    def change_lines(self, is_pooled=False, buses=(0, 1)):
        """The operator edits the file; nova-compute has not noticed."""
        self.have(*buses, is_pooled=is_pooled)

    def settle(self):
        self.providers.settle()
        self.periodic()

    def test_there_and_back(self):
        self.hold(0)
        self.change_lines()
        self.start()
        self.assertEqual({FIRST: 1}, self.allocations())
        self.assertEqual(
            {POOL: {QAT: (2, 2)}, FIRST: {QAT: (1, 0)}, SECOND: {QAT: (1, 0)}},
            self.units(),
        )
        self.assertEqual(POOL, self.held_of(0))
        self.periodic()
        self.settle()
        self.assertEqual(FIRST, self.held_of(0))
        self.assertEqual(
            {FIRST: {QAT: (1, 0)}, SECOND: {QAT: (1, 0)}}, self.units()
        )
        self.change_lines(is_pooled=True)
        self.start()
        self.assertEqual({POOL: 1}, self.allocations())
        self.periodic()
        self.settle()
        self.assertEqual({POOL: {QAT: (2, 0)}}, self.units())
        self.assertEqual(POOL, self.held_of(0))

    def test_nothing_that_is_held_means_no_reshape(self):
        self.change_lines()
        self.providers.begin_update()
        self.start()
        self.assertEqual(2, self.units()[POOL][QAT][1])
        self.assertEqual((1, 0), self.units()[FIRST][QAT])

    def test_others_allocations_stay_where_they_are(self):
        """And there is room for them, or Placement would refuse all."""
        self.hold(0)
        (pool,) = self.nova.allocations[INSTANCE]
        self.nova.allocations['stranger'] = {pool: {QAT: 1}}
        self.change_lines()
        self.start()
        self.assertEqual({FIRST: 1}, self.allocations())
        self.assertEqual({POOL: 1}, self.allocations('stranger'))
        for _period in range(3):
            self.periodic()
            self.settle()
        self.assertEqual((1, 1), self.units()[POOL][QAT])

    def test_what_the_source_of_a_resize_keeps(self):
        server = self.nova.add_instance('here')
        self.nova.add_migration(server, 'finished', 'here', 'here')
        (migration,) = self.nova.migrations
        self.hold(0, server.uuid)
        self.hold(1, server.uuid, arq_types.Role.OLD, migration.uuid)
        self.change_lines()
        self.start()
        self.assertEqual({FIRST: 1}, self.allocations(server.uuid))
        self.assertEqual({SECOND: 1}, self.allocations(migration.uuid))

    def test_a_refused_one_is_tried_again_at_the_next_start(self):
        self.hold(0)
        before = copy.deepcopy(self.nova.allocations), self.units()
        self.change_lines()
        self.refused = exception.ReshapeFailed(error='refused')
        for _start in range(2):
            self.assertRaises(exception.ReshapeFailed, self.start)
            self.assertEqual(before, (self.nova.allocations, self.units()))
            self.assertEqual(POOL, self.held_of(0))
        self.refused = None
        self.start()
        self.assertEqual({FIRST: 1}, self.allocations())

    def test_a_conflict_is_tried_again_at_once(self):
        self.hold(0)
        self.change_lines()
        self.refused = exception.PlacementReshapeConflict(error='conflict')
        self.assertRaises(exception.PlacementReshapeConflict, self.start)
        self.refused = None
        self.update(self.tree)
        self.assertEqual({FIRST: 1}, self.allocations())

    def test_nova_does_not_say_what_a_migration_is(self):
        self.hold(0)
        self.hold(1, OTHER, consumer='somebody')
        before = copy.deepcopy(self.nova.allocations)
        self.change_lines()
        self.nova.fault = oslo_messaging.MessagingTimeout()
        self.assertRaises(exception.ReshapeFailed, self.start)
        self.assertEqual(before, self.nova.allocations)

    def test_killed_before_the_journal_follows(self):
        self.hold(0)
        self.change_lines()
        for _start in range(2):
            self.start()
            self.assertEqual({FIRST: 1}, self.allocations())
            self.assertEqual((1, 0), self.units()[FIRST][QAT])
        self.settle()
        self.assertEqual(FIRST, self.held_of(0))

    def test_nova_goes_on_without_it(self):
        """Placement was away in the startup, which Nova survives."""
        self.hold(0)
        self.change_lines()
        self.refused = exception.PlacementReshapeConflict(error='conflict')
        self.assertRaises(exception.PlacementReshapeConflict, self.start)
        self.providers.settle()
        self.assertIn('has not moved', self.log.output)
        self.assertEqual(
            [finding.Kind.PROVIDERS],
            [found.kind for found in self.findings.all()],
        )
        for _period in range(2):
            self.periodic()
            self.providers.settle()
            self.assertEqual(
                {POOL: {QAT: (1, 0)}, FIRST: {}, SECOND: {QAT: (1, 0)}},
                self.units(),
            )
        self.assertEqual({POOL: 1}, self.allocations())

    def test_only_the_first_update_of_a_start_may(self):
        """In a claim the exception would put a server into ERROR."""
        self.hold(0)
        self.change_lines()
        self.refused = exception.PlacementReshapeConflict(error='away')
        self.assertRaises(exception.PlacementReshapeConflict, self.start)
        done = []
        claim = threading.Thread(
            target=lambda: done.append(
                self.providers.update(copy.deepcopy(self.tree), None)
            )
        )
        claim.start()
        claim.join(10)
        self.assertEqual([True], done)

    def test_a_release_meanwhile(self):
        entry = self.hold(0)
        self.change_lines()
        self.start()
        self.release(entry)
        del self.nova.allocations[INSTANCE]
        self.periodic()
        self.settle()
        self.assertEqual([], self.attachments.held.arqs())
        for _period in range(2):
            self.settle()
        self.assertEqual(
            {FIRST: {QAT: (1, 0)}, SECOND: {QAT: (1, 0)}}, self.units()
        )
