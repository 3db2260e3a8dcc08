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


"""Cards that change hands, by every driver that then sees less of them."""

import pathlib
import shutil

import fixtures

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.drivers import nvidia_vfio
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.model.providers import provider_layout
from nova_accel.testing import divided_cards
from nova_accel.testing import pci_functions
from nova_accel.virt.publishing import held_answers
from nova_accel.virt.publishing import last_answers
from unit.virt.publishing import test_discovery

NODE_UUID = test_discovery.NODE_UUID
TYPE, OTHER_TYPE = (
    'ce48969398f05f33946d560708be108a',
    '69528db6eb31577a8c3668f9faa081f6',
)
HOSTS, GUESTS = 'labfpga', 'vfio-pci'


class HandOverTestCase(test_discovery.EmptyHostTestCase):
    CARD = '0000:3e:00.0'
    line = test_discovery.a_line(
        address=CARD, driver='fpga_region', whole=True
    )

    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'answers.json'
        )
        self.restart()
        self.moment(HOSTS, TYPE)

    def moment(self, driver, *types, first=0):
        """The card's driver at a moment, and the regions that it knows."""
        self.add(
            pci_functions.function(self.CARD, '10ee', '5000', driver=driver)
        )
        self.fake.sysfs.set(self.CARD, fpga_region__x='')
        function = self.fake.sysfs.root / 'bus/pci/devices' / self.CARD
        shutil.rmtree(function / 'fpga_region')
        for number, type_ in enumerate(types, first):
            self.fake.sysfs.set(
                self.CARD, **{f'fpga_region__region{number}__compat_id': type_}
            )

    def restart(self):
        """nova-compute, which has only its files afterwards."""
        self.answers = last_answers.LastAnswers(
            held_answers.HeldAnswers(self.path)
        )

    def look(self, *lines):
        return self.discover(*(lines or (self.line,)))

    def hold_all(self, inventory):
        self.holds = {
            handle.uuid
            for device in inventory.devices
            for handle in device.handles
        }
        return inventory

    def as_seen(self, inventory):
        """All by which others find a device, its regions and its units."""
        layout = provider_layout.layout('host1', NODE_UUID, inventory.devices)
        return (
            inventory.refused,
            layout.places,
            [
                (
                    device.name,
                    device.driver,
                    device.fault,
                    [region.name for region in device.regions],
                    [
                        (each.name, each.region, each.handles)
                        for each in device.deployables
                    ],
                )
                for device in inventory.devices
            ],
        )


class TestDead(HandOverTestCase):
    """A card that its driver refuses because it does not answer."""

    def die(self):
        self.moment(None)
        self.config_space().write_bytes(64 * b'\xff')

    def config_space(self):
        function = self.fake.sysfs.root / 'bus/pci/devices' / self.CARD
        return function / 'config'

    def test_it_is_faulty_until_it_answers(self):
        known = self.look()
        self.die()
        for _look in range(2):
            dead = self.look()
            self.assertEqual((), dead.refused)
            self.assertIn('does not answer', dead.devices[0].fault)
            self.assertEqual(
                [list(each.handles) for each in known.devices],
                [list(each.handles) for each in dead.devices],
            )
        self.config_space().unlink()
        self.moment(HOSTS, TYPE)
        self.assertEqual(self.as_seen(known), self.as_seen(self.look()))

    def test_one_that_answers_is_refused(self):
        self.look()
        self.moment(None)
        self.assert_refused(self.look(), 'no fpga_region')

    def test_one_that_was_not_seen_before(self):
        self.die()
        self.assert_refused(
            self.look(), f'{self.CARD} does not answer', 'no fpga_region'
        )


class TestWholeFpga(HandOverTestCase):
    #: Into a guest, and back; its regions have other names afterwards.
    moments = (
        (HOSTS,),
        (None,),
        (GUESTS,),
        (None,),
        (HOSTS,),
        (HOSTS, TYPE),
    )

    def test_there_and_back(self):
        known = self.as_seen(self.hold_all(self.look()))
        for _server in range(2):
            for number, moment in enumerate(self.moments):
                self.moment(*moment, first=number)
                self.assertEqual(known, self.as_seen(self.look()), moment)

    def test_there_and_back_with_restarts(self):
        inventory = self.hold_all(self.look())
        known = self.as_seen(inventory)
        self.look()
        for number, moment in enumerate(self.moments):
            self.moment(*moment, first=number)
            self.restart()
            after = self.look()
            self.assertEqual(known, self.as_seen(after), moment)
            self.assertEqual(
                inventory.devices[0].regions, after.devices[0].regions
            )

    def test_a_restart_with_another_line(self):
        """It asks for something else, so the truth counts."""
        self.hold_all(self.look())
        self.look()
        self.moment(GUESTS)
        self.restart()
        line = test_discovery.a_line(
            address=self.CARD,
            driver='fpga_region',
            whole=True,
            traits=['CUSTOM_RACK_7'],
        )
        (device,) = self.look(line).devices
        self.assertEqual(frozenset({'CUSTOM_RACK_7'}), device.operator_traits)

    def test_a_restart_while_it_is_not_held(self):
        self.hold_all(self.look())
        self.look()
        self.holds.clear()
        self.look()
        self.moment(None)
        self.restart()
        self.assert_refused(self.look(), self.CARD, 'no fpga_region')

    def test_the_region_of_a_card_that_has_two(self):
        """Its guest programs it; a region of it is in no view."""
        self.moment(HOSTS, TYPE, OTHER_TYPE)
        known = self.as_seen(self.hold_all(self.look()))
        self.assertIn([], known[-1][0])
        for moment in (
            *self.moments[:-1],
            (HOSTS, TYPE, OTHER_TYPE),
        ):
            self.moment(*moment)
            self.assertEqual(known, self.as_seen(self.look()), moment)

    def test_it_is_not_held(self):
        """Then the truth counts, at once."""
        for held in (False, True):
            self.moment(HOSTS, TYPE)
            inventory = self.look()
            if held:
                self.hold_all(inventory)
                self.moment(None)
                self.look()
                self.holds.clear()
            self.moment(None)
            inventory = self.look()
            self.assertEqual((), inventory.devices)
            self.assert_refused(inventory, self.CARD, 'no fpga_region')

    def test_it_is_pulled_out(self):
        self.hold_all(self.look())
        pulled = self.fake.connection.pci_info.devices.pop(
            pci_address.PciAddress.parse(self.CARD).node_device
        )
        self.assertEqual((), self.look().devices)
        self.fake.connection.pci_info.devices[pulled.name()] = pulled
        self.moment(None)
        # No one knows which card it is.
        self.assert_refused(self.look(), 'no fpga_region')

    def test_another_card_is_in_its_place(self):
        self.hold_all(self.look())
        self.moment(None)
        self.add(pci_functions.function(self.CARD, '10ee', '5004'))
        self.assertEqual((), self.look().devices)

    def test_a_serial_number_is_read_again(self):
        self.hold_all(self.look())
        self.moment(None)
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.host.pci_function.PciFunction.card_serial_number',
                'S2',
            )
        )
        (device,) = self.look().devices
        (handle,) = device.handles
        self.assertEqual('S2', handle.serial_number)


class TestCardOfManyShapes(test_discovery.EmptyHostTestCase):
    """It loses its virtual functions when a guest gets it as a whole."""

    CARD = '0000:3d:00.0'
    line = test_discovery.a_line(
        address=CARD, driver='nvidia_vfio', shapes=['whole', 'mig:*']
    )

    def setUp(self):
        super().setUp()
        self.tool = self.useFixture(
            divided_cards.DividedCards(
                self.fake.sysfs, {self.CARD: self.fake.connection.pci_info}, 8
            )
        )
        self.card = self.tool.cards[self.CARD]
        specs = device_spec.parse([self.line], None)
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.offered._lines', lambda: specs
            )
        )
        self.path = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'answers.json'
        )
        self.restart()
        self.moment(True, 'nvidia')

    def moment(self, are_functions, driver):
        self.card.are_functions = are_functions
        self.tool.bind(self.card, driver)

    def restart(self):
        self.answers = last_answers.LastAnswers(
            held_answers.HeldAnswers(self.path)
        )
        self.drivers['nvidia_vfio'] = nvidia_vfio.NvidiaVfioDriver(
            None, self.fake.sysfs.sysfs, NODE_UUID
        )

    def look(self):
        found = self.discover(self.line)
        self.assertEqual((), found.refused)
        [device] = found.devices
        self.assertIsNone(device.fault)
        return {
            each.name: {handle.uuid for handle in each.handles}
            for each in device.deployables
        }

    def test_there_and_back(self):
        known = self.look()
        self.assertIn('mig:3g.40gb', known)
        self.holds = known['whole']
        for are_functions, driver in (
            (True, 'nvidia'),
            (False, 'nvidia'),
            (False, 'vfio-pci'),
            (False, 'nvidia'),
            (True, 'nvidia'),
        ):
            self.moment(are_functions, driver)
            for _look in range(2):
                self.assertEqual(known, self.look())
            self.restart()
            self.assertEqual(known, self.look())
        self.holds = set()
        self.assertEqual(known, self.look())

    def test_a_process_on_a_card_that_is_divided(self):
        """It was started for vGPUs, and goes with them."""
        known = self.look()
        self.fake.sysfs.set(self.CARD, boot_vga='1')
        [device] = self.discover(self.line).devices
        self.assertNotIn('whole', [each.name for each in device.deployables])
        self.holds = set(list(known['mig:3g.40gb'])[:1])
        self.assertEqual(known, self.look())

    def test_a_guest_of_no_ones_has_a_part(self):
        """No one gets it, though another unit excludes it now."""
        [device] = self.discover(self.line).devices
        held, other = (
            next(
                handle
                for handle in device.handles
                if (handle.slice.shape, handle.slice.start > 0) == unit
            )
            for unit in (('mig:3g.40gb', False), ('mig:1g.10gb', True))
        )
        self.assertNotEqual(held.address, other.address)
        self.holds = {held.uuid}
        self.in_use = {str(other.address): 'a guest that is not of Nova'}
        found = self.discover(self.line)
        self.assert_refused(found, 'a guest that is not of Nova')
        uuids = {handle.uuid for handle in found.devices[0].handles}
        self.assertIn(held.uuid, uuids)
        self.assertNotIn(other.uuid, uuids)

    def test_no_one_knows_what_else_it_can_be(self):
        """It was taken as soon as it was there, or is nobody's."""
        for self.holds, driver in (({'a handle'}, 'vfio-pci'), ({}, 'nvidia')):
            self.moment(False, driver)
            self.restart()
            self.assertEqual(['whole'], list(self.look()))


class TestParts(HandOverTestCase):
    """Cards of which an instance holds one unit, and others are free."""

    CARD = '0000:3d:00.0'

    def make(self, count=2):
        self.add(
            *pci_functions.virtual_functions(
                self.a_gpu(self.CARD), count, '2236'
            )
        )

    def look_without_the_first(self, line):
        """An instance holds the second of three units; the first is gone."""
        (device,) = self.look(line).devices
        _one, two, three = device.handles
        self.holds = {two.uuid}
        self.fake.connection.pci_info.devices.pop('pci_0000_3d_00_1')
        after = self.look(line)
        (device,) = after.devices
        self.assertEqual([two, three], list(device.handles))
        self.assertIsNone(device.fault)
        return after

    def assert_kept(self, before, after, uuid):
        """The unit is where it was, and no other one can be had."""
        self.assertEqual((), after.refused)
        (was,), (device,) = before.devices, after.devices
        self.assertEqual(
            [
                [handle for handle in each.handles if handle.uuid == uuid]
                for each in was.deployables
            ],
            [
                [handle for handle in each.handles if handle.uuid == uuid]
                for each in device.deployables
            ],
        )
        self.assertIsNotNone(device.fault)

    def test_the_parent_of_a_mediated_device(self):
        """Its driver is loaded anew, and it has no types meanwhile."""
        line = test_discovery.a_line(
            address=self.CARD, driver='mdev', type='VGPU'
        )
        self.add(self.a_gpu(self.CARD, mdev_types={'nvidia-11': 4}))
        before = self.look(line)
        (device,) = before.devices
        uuid = next(iter(device.handles)).uuid
        self.holds = {uuid}
        self.add(self.a_gpu(self.CARD))
        self.assert_kept(before, self.look(line), uuid)
        self.holds.clear()
        self.assert_refused(self.look(line), 'makes no mediated devices')

    def test_a_mediated_device_for_which_others_leave_no_room(self):
        line = test_discovery.a_line(
            address=self.CARD, driver='mdev', type='VGPU'
        )
        self.add(self.a_gpu(self.CARD, mdev_types={'nvidia-11': 2}))
        (device,) = self.look(line).devices
        one, two = device.handles
        self.holds = {two.uuid}
        self.add(self.a_gpu(self.CARD, mdev_types={'nvidia-11': 1}))
        (device,) = self.look(line).devices
        self.assertEqual([one, two], list(device.handles))
        self.assertIsNone(device.fault)

    def test_a_function_of_several_is_gone(self):
        """The others are offered, and the operator is told."""
        line = test_discovery.a_line(
            address=self.CARD, driver='nvidia_vfio', vgpu_types={'558': 3}
        )
        self.make(count=3)
        for number in (1, 2, 3):
            self.fake.sysfs.set(
                f'0000:3d:00.{number}',
                nvidia__current_vgpu_type='0',
                nvidia__creatable_vgpu_types='ID : name\n558 : A16-1Q',
            )
        after = self.look_without_the_first(line)
        gone, missing = after.refused
        self.assertIn('0000:3d:00.1: it is a virtual function', gone)
        self.assertIn('2 of the 3 units of the type 558', missing)

    def test_the_driver_offers_a_function_that_is_gone(self):
        line = test_discovery.a_line(
            address=self.CARD, driver='fake', type='GPU'
        )
        self.make(count=3)
        after = self.look_without_the_first(line)
        self.assert_refused(after, self.CARD, '0000:3d:00.1 is not among')

    def test_functions_that_the_line_of_their_card_offers(self):
        line = test_discovery.a_line(
            address=self.CARD, driver='blind', type='GPU', sriov_numvfs=2
        )
        self.drivers['blind'] = driver = Blind(self.drivers['pci'])
        self.make()
        before = self.look(line)
        self.hold_all(before)
        self.look(line)
        self.restart()
        driver.refused = {self.CARD}
        after = self.look(line)
        self.assertEqual(before.devices, after.devices)
        self.assert_refused(after, self.CARD, 'blind')


class Blind(base.Driver):
    """Another driver, which does not see some functions."""

    line_keys = frozenset({'unit'})

    def __init__(self, driver):
        self._driver = driver
        self.refused = set()

    def discover(self, function, spec, host):
        if str(function.address) in self.refused:
            raise exceptions.DeviceError('it is blind')
        return self._driver.discover(function, spec, host)
