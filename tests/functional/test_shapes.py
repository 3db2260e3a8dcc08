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

"""Cards of many shapes: vGPUs of one size or another, as servers need."""

import itertools
import json
import random

from nova.tests.fixtures import libvirt as fakelibvirt

from functional import base
from functional import test_crowd
from nova_accel.model import naming
from nova_accel.model.cards import card_slice
from nova_accel.model.profiles import device_profile
from nova_accel.testing import devices
from nova_accel.testing import divided_cards

HOST = 'host1'

SMALL = 'vgpu:GRID M60-0B'
LARGE = 'vgpu:GRID M60-1B'
SMALL_CLASS = 'CUSTOM_SHAPE_VGPU_GRID_M60_0B'
LARGE_CLASS = 'CUSTOM_SHAPE_VGPU_GRID_M60_1B'

NAMES = {
    fakelibvirt.NVIDIA_11_VGPU_TYPE: SMALL,
    fakelibvirt.NVIDIA_12_VGPU_TYPE: LARGE,
}


class ShapesMixin:
    """Hosts with cards of two shapes, and a flavor of each shape.

    :cvar cards: how many cards each host has
    """

    hosts = ()
    cards = {HOST: 2}
    shapes = ('vgpu:*',)

    def setUp(self):
        super().setUp()
        spec = {
            'vendor_id': '10de',
            'product_id': '13f2',
            'driver': 'mdev',
            'shapes': list(self.shapes),
        }
        for host, gpus in self.cards.items():
            for bus in range(0x81, 0x81 + gpus):
                for mdev_type, shape in NAMES.items():
                    folder = f'mdev_supported_types__{mdev_type}__'
                    self.sysfs.set(
                        f'0000:{bus:02x}:00.0',
                        **{
                            f'{folder}name': shape.removeprefix('vgpu:'),
                            f'{folder}description': (
                                f'max_instance={devices.VGPU_TYPES[mdev_type]}'
                            ),
                        },
                    )
            self.start_accelerated_compute(
                host,
                devices.pci_info(gpus=gpus, fpgas=0, qats=0),
                [json.dumps(spec)],
            )
        self.flavors = {
            shape: self.make_flavor(name, shape)
            for name, shape in (('small', SMALL), ('large', LARGE))
        }

    def make_flavor(self, name, *shapes):
        self.create_profile(name, [{'accel:shape': each} for each in shapes])
        return self.create_accel_flavor(name)

    def boot_shape(self, shape, **kwargs):
        return self.boot(self.flavors[shape], **kwargs)

    def card_of(self, server):
        [card] = {arq['device_rp_uuid'] for arq in self.arqs(server)}
        return card

    def refuse(self, shape):
        """A server of the shape gets none; the fault's message."""
        failed = self.boot_shape(shape, expected_state='ERROR')
        message = failed['fault']['message']
        self._delete_server(failed)
        return message

    def settle_all(self):
        """Have all hosts report, and Placement learn what is reserved."""
        for host in self.cards:
            self.settle(host)
        self._run_periodics()

    def state_of_cards(self, host=HOST):
        """Provider uuid -> class -> what Placement has left of it."""
        return {
            provider['uuid']: {
                name: total
                - provider['reserved'][name]
                - provider['usage'][name]
                for name, total in provider['inventory'].items()
            }
            for provider in self.accelerator_providers(host)
        }


class ShapesTestCase(ShapesMixin, base.AcceleratorTestCase):
    pass


class TestShapes(ShapesTestCase):
    def test_a_card_is_published_as_all_that_it_can_be(self):
        for left in self.state_of_cards().values():
            self.assertEqual(
                {
                    SMALL_CLASS: 16,
                    LARGE_CLASS: 8,
                    naming.CARD_SHARE: card_slice.WHOLE_CARD,
                },
                left,
            )

    def test_each_card_takes_the_shape_that_is_asked_for(self):
        """And no other one as long as a guest has a unit of it."""
        for shapes in itertools.permutations([SMALL, SMALL, LARGE]):
            servers = {}
            for shape in shapes:
                server = self.boot_shape(shape)
                self.assert_counted(server)
                servers.setdefault(shape, []).append(server)
            cards = {
                shape: {self.card_of(server) for server in some}
                for shape, some in servers.items()
            }
            # A card in use comes before an empty one.
            self.assertEqual([1, 1], list(map(len, cards.values())))
            self.assertEqual(2, len(set.union(*cards.values())))
            self.delete(*servers[SMALL], *servers[LARGE])

    def test_the_guest_gets_what_it_asked_for(self):
        server = self.boot_shape(LARGE)
        self.assert_guest_has_its_arqs(server, (0, 'MDEV'))
        self.assertEqual(
            [fakelibvirt.NVIDIA_12_VGPU_TYPE],
            [mdev_type for _card, mdev_type in self.mdevs(HOST).values()],
        )
        self.delete(server)

    def test_what_is_excluded_is_reserved(self):
        small = self.boot_shape(SMALL)
        self.settle_all()
        card, other = self.card_of(small), None
        for uuid, left in self.state_of_cards().items():
            if uuid == card:
                self.assertEqual(
                    (15, 0), (left[SMALL_CLASS], left[LARGE_CLASS])
                )
            else:
                other = left
        self.assertEqual((16, 8), (other[SMALL_CLASS], other[LARGE_CLASS]))
        self.delete(small)
        self.settle_all()
        for left in self.state_of_cards().values():
            self.assertEqual((16, 8), (left[SMALL_CLASS], left[LARGE_CLASS]))

    def test_a_full_cloud_says_why(self):
        servers = [self.boot_shape(shape) for shape in (SMALL, LARGE)]
        servers += [self.boot_shape(LARGE) for _number in range(7)]
        message = self.refuse(LARGE)
        self.assertIn(f'{LARGE_CLASS}=1): of 16, 8', message)
        self.assertIn(f'8 on cards that are {SMALL}', message)
        # The card of the small one changes without an operator.
        self._delete_server(servers.pop(0))
        servers.append(self.boot_shape(LARGE))
        self.assertIn(
            f'{SMALL_CLASS}=1): all 32 are on cards that are {LARGE}',
            self.refuse(SMALL),
        )
        self.delete(*servers)

    def test_an_unknown_shape_is_named(self):
        unknown = self.make_flavor('unknown', 'vgpu:GRID M60-7B')
        failed = self.boot(unknown, expected_state='ERROR')
        self.assertIn(
            'CUSTOM_SHAPE_VGPU_GRID_M60_7B', failed['fault']['message']
        )


class TestWhole(base.AcceleratorTestCase):
    """Cards that are a guest's as a whole, or vGPUs, or GPU instances."""

    hosts = ()
    shapes = ('whole', 'vgpu:NVIDIA H100-20C', 'mig:3g.40gb')
    addresses = ('0000:81:00.0', '0000:82:00.0')

    def setUp(self):
        super().setUp()
        info = devices.pci_info(gpus=0, fpgas=0, qats=0)
        self.cards = self.useFixture(
            divided_cards.DividedCards(
                self.sysfs, dict.fromkeys(self.addresses, info), 16
            )
        ).cards
        spec = {
            'vendor_id': '10de',
            'driver': 'nvidia_vfio',
            'shapes': list(self.shapes),
        }
        self.start_accelerated_compute(HOST, info, [json.dumps(spec)])
        self.flavors = {}
        for number, shape in enumerate(self.shapes):
            self.create_profile(str(number), [{'accel:shape': shape}])
            self.flavors[shape] = self.create_accel_flavor(str(number))

    def boot_shape(self, shape, **kwargs):
        return self.boot(self.flavors[shape], **kwargs)

    def assert_is(self, server, shape):
        """Its guest, its card, and Placement have it as this shape."""
        self.assert_counted(server)
        [arq] = self.arqs(server)
        self.assertEqual([self.arq_device(arq)], self.guest_devices(server))
        info = arq['attach_handle_info']
        self.assertEqual(shape, info['slice']['shape'])
        card = self.cards[f'0000:{info["bus"]}:00.0']
        self.assertEqual(
            (shape != 'whole', shape.startswith('mig:')),
            (card.are_functions, card.is_on),
        )
        self.assertEqual(shape != 'whole', self.arq_device(arq) in card.vgpus)

    def assert_empty(self):
        for card in self.cards.values():
            self.assertTrue(card.are_functions)
            self.assertEqual(({}, {}), (card.vgpus, card.instances))

    def test_all_orders(self):
        """Two cards are two of the shapes; no card is another one then."""
        for one, other, third in itertools.permutations(self.shapes):
            servers = [self.boot_shape(one), self.boot_shape(other)]
            self.assert_is(servers[0], one)
            self.assert_is(servers[1], other)
            failed = self.boot_shape(third, expected_state='ERROR')
            self.assertIn('on cards that are', failed['fault']['message'])
            self.delete(*servers, failed)
            self.assert_empty()

    def test_from_one_to_another_and_back(self):
        whole, vgpu, instance = self.shapes
        for shape in (vgpu, whole, instance, whole, vgpu, instance, vgpu):
            servers = [self.boot_shape(shape) for _card in self.cards]
            self.assert_is(servers[0], shape)
            self.delete(*servers)
            self.assert_empty()

    def test_while_it_is_whole_it_stays_as_published(self):
        before = self.inventories()
        server = self.boot_shape('whole')
        for _report in range(2):
            self.settle(HOST)
        self.assertEqual(before, self.inventories())
        self.accelerator.microversion = '2.5'
        [arq] = self.arqs(server)
        self.assertEqual('healthy', arq['health'])
        self.delete(server)

    def inventories(self):
        return [
            sorted(provider['inventory'].items())
            for provider in self.accelerator_providers(HOST)
        ]

    def test_as_many_start_as_availability_says(self):
        self.accelerator.microversion = '2.5'
        self.assertEqual([2, 8, 4], self.availability())
        instance = self.boot_shape('mig:3g.40gb')
        self.assertEqual([1, 4, 3], self.availability())
        servers = [instance, self.boot_shape('whole')]
        self.assertEqual([0, 0, 1], self.availability())
        servers.append(self.boot_shape('mig:3g.40gb'))
        self.assertEqual([0, 0, 0], self.availability())
        for shape in self.shapes:
            servers.append(self.boot_shape(shape, expected_state='ERROR'))
        self.delete(*servers)
        self.assertEqual([2, 8, 4], self.availability())

    def availability(self):
        """How many servers of each shape could start."""
        found = []
        for name in range(len(self.shapes)):
            told = self.accelerator.get(
                f'/device_profiles/{name}/availability'
            )['availability']
            self.assertEqual(
                told['min_servers'],
                sum(host['servers'] for host in told['hosts']),
            )
            found.append(told['min_servers'])
        return found

    def test_it_is_stopped_and_started(self):
        server = self.boot_shape('whole')
        server = self._stop_server(server)
        self.settle(HOST)
        server = self._start_server(server)
        self.assert_is(server, 'whole')
        self.api.post_server_action(server['id'], {'reboot': {'type': 'HARD'}})
        self._wait_for_state_change(server, 'ACTIVE')
        self.assert_is(server, 'whole')
        self.delete(server)
        self.assert_empty()

    def test_the_program_fails(self):
        """Neither a server nor a card is lost to it."""
        for card in self.cards.values():
            card.processes = 1
        failed = self.boot_shape('whole', expected_state='ERROR')
        self.assertIn('set_functions', self.stdlog.logger.output)
        for card in self.cards.values():
            card.processes = 0
        self.delete(failed)
        server = self.boot_shape('whole')
        self.assert_is(server, 'whole')
        self.delete(server)
        self.assert_empty()


class TestMoves(ShapesTestCase):
    """A server takes its shape along, or gets another one."""

    cards = {HOST: 2, 'host2': 1}

    def setUp(self):
        super().setUp()
        self.flags(allow_resize_to_same_host=True)

    def assert_has(self, server, shape, host):
        server = self.api.get_server(server['id'])
        self.assertEqual(host, server['OS-EXT-SRV-ATTR:host'])
        [arq] = self.arqs(server)
        self.assertEqual([self.arq_device(arq)], self.guest_devices(server))
        self.assert_counted(server)
        self.assertEqual(shape, arq['attach_handle_info']['slice']['shape'])
        return server

    def confirm(self, server, source):
        # Nova's driver looks at the one option that all computes here share.
        self.flags(host=source)
        return self._confirm_resize(server)

    def test_resize_to_another_shape(self):
        server = self.boot_shape(SMALL, host=HOST)
        other = self.boot_shape(LARGE, host='host2')
        self.api.post_server_action(
            server['id'], {'resize': {'flavorRef': self.flavors[LARGE]}}
        )
        server = self._wait_for_state_change(server, 'VERIFY_RESIZE')
        target = server['OS-EXT-SRV-ATTR:host']
        # The card that is in use as such comes before one that is empty.
        self.assertEqual('host2', target)
        self.confirm(server, HOST)
        self.assert_has(server, LARGE, target)
        self.delete(server, other)

    def test_a_resize_is_reverted(self):
        server = self.boot_shape(SMALL, host=HOST)
        self.api.post_server_action(
            server['id'], {'resize': {'flavorRef': self.flavors[LARGE]}}
        )
        server = self._wait_for_state_change(server, 'VERIFY_RESIZE')
        self.api.post_server_action(server['id'], {'revertResize': None})
        server = self._wait_for_state_change(server, 'ACTIVE')
        self.assert_has(server, SMALL, HOST)
        self.delete(server)

    def test_cold_migration(self):
        server = self.boot_shape(SMALL, host='host2')
        self.api.post_server_action(server['id'], {'migrate': None})
        server = self._wait_for_state_change(server, 'VERIFY_RESIZE')
        self.confirm(server, 'host2')
        self.assert_has(server, SMALL, HOST)
        self.delete(server)

    def test_shelve_and_unshelve(self):
        server = self.boot_shape(LARGE, host='host2')
        self._shelve_server(server)
        server = self._unshelve_server(server)
        self.assert_has(server, LARGE, server['OS-EXT-SRV-ATTR:host'])
        self.delete(server)

    def test_another_profile_in_place(self):
        """Of the card that is left, as long as the guest has the other."""
        self.accelerator.microversion = '2.5'
        server = self._stop_server(self.boot_shape(SMALL, host=HOST))
        for name, shape in (('large', LARGE), ('small', SMALL)):
            answer = self.accelerator.request(
                'PUT',
                f'/servers/{server["id"]}/accelerators',
                json={'device_profile': name},
            )
            self.assertEqual(200, answer.status_code, answer.text)
            self._start_server(server)
            self.assert_has(server, shape, HOST)
            self._stop_server(server)
        self.delete(server)

    def test_no_card_for_another_profile_in_place(self):
        self.accelerator.microversion = '2.5'
        server = self.boot_shape(SMALL, host='host2')
        answer = self.accelerator.request(
            'PUT',
            f'/servers/{server["id"]}/accelerators',
            json={'device_profile': 'large'},
        )
        self.assertEqual(409, answer.status_code, answer.text)
        self.assert_has(server, SMALL, 'host2')
        self.delete(server)

    def test_what_placement_lost_is_allocated_again(self):
        server = self.boot_shape(LARGE, host=HOST)
        before = self.allocated(server)
        self.placement.delete(f'/allocations/{server["id"]}')
        self.assert_counted(server)
        self.assertEqual(before, self.allocated(server))
        self.delete(server)


class TestOneServerOfTwoShapes(ShapesTestCase):
    def test_of_two_cards(self):
        server = self.boot(self.make_flavor('both', SMALL, LARGE))
        cards = {arq['device_rp_uuid'] for arq in self.arqs(server)}
        self.assertEqual(2, len(cards))
        self.assert_guest_has_its_arqs(server, (0, 'MDEV'), (1, 'MDEV'))
        self.delete(server)

    def test_of_one_card(self):
        server = self.boot(self.make_flavor('two', LARGE, LARGE))
        self.assertEqual(
            1, len({arq['device_rp_uuid'] for arq in self.arqs(server)})
        )
        self.assert_guest_has_its_arqs(server, (0, 'MDEV'), (1, 'MDEV'))
        self.delete(server)


class TestShapesCompat(TestShapes):
    flavor_key = device_profile.CYBORG_FLAVOR_KEY


class TestShapesCrowd(ShapesMixin, test_crowd.CrowdTestCase):
    """Servers of both shapes that are scheduled at the same moment."""

    cards = {f'host{number}': 1 for number in range(4)}

    def test_none_is_refused_while_a_card_fits(self):
        wanted = [SMALL] * 30 + [LARGE] * 12
        random.Random(7).shuffle(wanted)
        active, refused = self.boot_all(
            [self.flavors[shape] for shape in wanted]
        )
        self.assertEqual([], [each['fault'] for each in refused])
        modes = {}
        for server in active:
            self.assert_counted(server)
            [arq] = self.arqs(server)
            modes.setdefault(arq['device_rp_uuid'], set()).add(
                arq['attach_handle_info']['slice']['mode']
            )
        self.assertEqual({1}, set(map(len, modes.values())))
        self.delete(*active)
