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

"""What is published can be attached, whatever a host looks like."""

import collections
import dataclasses
import json
import pathlib

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.drivers import loading
from nova_accel.host import host_use
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.host import sysfs_tree
from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import device_spec_keys
from nova_accel.testing import fake_fpga
from nova_accel.testing import pci_functions
from nova_accel.virt.publishing import discovery
from nova_accel.virt.publishing import last_answers
from nova_accel.virt.publishing import units_in_use

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'
BUSES = (0x81, 0x82, 0x83, 0x84)
MDEV_TYPES = ('nvidia-11', 'nvidia-12')

#: A host has many sides, of which few are met in one example.
_EXAMPLES = 4 * settings.default.max_examples


@dataclasses.dataclass
class World:
    """A host; ``vgpus`` are functions with a ``current_vgpu_type``."""

    host: libvirt_devices.HostDevices
    lines: list[str]
    in_use: dict[str, str]
    claimed: set
    vgpus: set

    def on_functions(self, addresses, host):
        """As ``NovaClaims``."""
        cards = {
            host.functions[address].card
            for address in addresses
            if address in host.functions
        }
        return '[pci]' if (cards | {*addresses}) & self.claimed else None

    def on_device(self, device, host):
        """As ``NovaClaims``."""
        return self.on_functions(device.addresses, host)

    def look(self):
        """As ``NodeDevices``: what libvirt writes, and we read of it."""
        return dataclasses.replace(
            self.host,
            functions={
                address: pci_function.parse_pci(pci_functions.xml(function))
                for address, function in self.host.functions.items()
            },
        )


class Sysfs(sysfs_tree.Sysfs):
    def __init__(self, world):
        super().__init__(pathlib.Path('/nowhere'))
        self._vgpus = world.vgpus

    def read(self, address, attribute):
        is_vgpu = (
            address in self._vgpus and attribute == 'nvidia/current_vgpu_type'
        )
        return '0' if is_vgpu else None


class Kernel:
    """VFIO, an IOMMU and drivers: what they let a guest have at most."""

    def __init__(self, world):
        self._world = world
        self._functions = world.host.functions
        self._gone = set()
        self._mdevs = collections.Counter(
            {
                (mdev.parent, mdev.type): 1
                for mdev in world.host.mdevs
                if mdev.uuid in world.in_use
            }
        )

    def attach(self, handle):
        if handle.mdev_type is not None:
            self._make_mdev(handle)
            return
        for address in handle.functions:
            assert address not in self._gone, 'another guest has it'
            assert str(address) not in self._world.in_use, 'a guest has it'
            self._gone.add(address)
        for address in handle.functions:
            function = self._functions[address]
            assert function.iommu_group is not None, 'no group'
            for member in function.iommu_members:
                assert member in handle.functions or (
                    member in self._functions
                    and self._functions[member].is_bridge
                ), 'group not viable'
            assert not function.is_bridge
            assert not function.virtual_functions, 'takes them along'
            assert address not in self._world.vgpus, 'no vGPU type'
            assert not self._carved(function), 'of a carved card'

    def _carved(self, function):
        parents = {mdev.parent for mdev in self._world.host.mdevs}
        card = {
            other
            for other, its in self._functions.items()
            if its.card == function.card
        }
        return parents & card or (
            function.parent_address and function.mdev_types
        )

    def _make_mdev(self, handle):
        assert handle.uuid not in self._world.in_use
        there = {mdev.uuid for mdev in self._world.host.mdevs}
        if handle.uuid in there:
            return
        key = handle.address, handle.mdev_type
        self._mdevs[key] += 1
        parent = self._functions[handle.address]
        available = parent.mdev_types[handle.mdev_type]
        made_in_use = sum(
            (mdev.parent, mdev.type) == key and mdev.uuid in self._world.in_use
            for mdev in self._world.host.mdevs
        )
        assert self._mdevs[key] - made_in_use <= available, 'no space left'


def a_card(draw, bus):
    """The functions of one card, or a bridge."""
    kind = draw(st.sampled_from(['plain', 'sriov', 'mdev', 'bridge']))
    name = f'0000:{bus:02x}:00.'
    ids = '10de', draw(st.sampled_from(['13f2', '2235']))
    if kind == 'plain':
        return [
            pci_functions.function(f'{name}{number}', *ids)
            for number in range(draw(st.integers(1, 4)))
        ]
    types = draw(
        st.dictionaries(
            st.sampled_from(MDEV_TYPES), st.integers(0, 3), max_size=2
        )
    )
    if kind == 'mdev':
        return [pci_functions.function(f'{name}0', *ids, mdev_types=types)]
    if kind == 'bridge':
        return [
            pci_functions.function(
                f'{name}0', *ids, class_code='060400', is_bridge=True
            )
        ]
    card = pci_functions.function(f'{name}0', *ids, max_virtual_functions=4)
    count = draw(st.integers(0, 4))
    if not count:
        return [card]
    return pci_functions.virtual_functions(
        card, count, ids[1], mdev_types=types if draw(st.booleans()) else {}
    )


def in_groups(draw, functions):
    """The same functions, some of them together in IOMMU groups."""
    groups = collections.defaultdict(list)
    for function in functions:
        groups[
            draw(
                st.sampled_from(
                    [
                        str(function.address),
                        str(function.address),
                        str(function.address),
                        f'bus {function.address.bus}',
                        'one',
                        None,
                    ]
                )
            )
        ].append(function.address)
    numbers = {
        address: (number, tuple(sorted(members)))
        for number, (name, members) in enumerate(groups.items())
        if name is not None
        for address in members
    }
    return [
        dataclasses.replace(
            function,
            iommu_group=numbers.get(function.address, (None,))[0],
            iommu_members=numbers.get(function.address, (None, ()))[1],
        )
        for function in functions
    ]


def a_line(draw):
    driver = draw(st.sampled_from(['pci', 'pci', 'pci', 'mdev', 'fake']))
    bus = draw(st.sampled_from(['*', *(f'{bus:02x}' for bus in BUSES)]))
    number = draw(st.sampled_from(['*', '*', '0', '1']))
    keys = {
        'vendor_id': '10de',
        'address': f'0000:{bus}:*.{number}',
        'driver': driver,
        'type': 'GPU',
    }
    if driver == 'pci':
        keys['unit'] = draw(st.sampled_from(list(device_spec_keys.UnitKind)))
        if draw(st.booleans()):
            keys['sriov_numvfs'] = draw(st.integers(1, 4))
    if driver == 'mdev':
        keys['mdev_type'] = draw(st.sampled_from(MDEV_TYPES))
    return json.dumps(keys)


def some_mdevs(draw, functions):
    """Of the node's own uuids, or of strangers'."""
    found = []
    for function in functions:
        for type_ in function.mdev_types:
            for index in range(draw(st.integers(0, 2))):
                owner = draw(st.sampled_from([NODE_UUID, 'another']))
                uuid = (
                    naming.derived_uuid(
                        NODE_UUID, function.name, type_, str(index)
                    )
                    if owner == NODE_UUID
                    else naming.derived_uuid(
                        NODE_UUID, 'foreign', function.name, type_, str(index)
                    )
                )
                found.append(pci_function.Mdev(uuid, type_, function.address))
    return tuple(found)


@st.composite
def worlds(draw):
    functions = in_groups(
        draw,
        [
            function
            for bus in draw(
                st.lists(st.sampled_from(BUSES), min_size=1, unique=True)
            )
            for function in a_card(draw, bus)
        ],
    )
    mdevs = some_mdevs(draw, functions) if draw(st.booleans()) else ()
    # Some may be unreadable, or gone.
    known = {
        function.address: function
        for function in functions
        if draw(st.integers(0, 15))
    }
    addresses = sorted(known)

    def few(things):
        return {thing for thing in things if not draw(st.integers(0, 9))}

    lines = [a_line(draw) for _line in range(draw(st.integers(1, 4)))]
    # To the driver for tests any function is a region.
    can_be_vgpus = all(json.loads(line)['driver'] != 'fake' for line in lines)
    return World(
        libvirt_devices.HostDevices(known, mdevs),
        lines,
        dict.fromkeys(
            few([*map(str, addresses), *(mdev.uuid for mdev in mdevs)]),
            'stranger',
        ),
        few(addresses),
        few(addresses) if can_be_vgpus else set(),
    )


class Blind(base.Driver):
    """Another driver, which does not see some of the functions."""

    def __init__(self, driver, blind):
        self._driver = driver
        self._blind = blind
        self.line_keys = driver.line_keys
        self.cleaning_methods = driver.cleaning_methods

    def discover(self, function, spec, host):
        if function.address in self._blind:
            raise exceptions.DeviceError('it is blind')
        return self._driver.discover(function, spec, host)


def discover(world, answers=None, held=(), blind=()):
    """Look once.

    :param held: the attach handles that instances hold
    :param blind: the addresses of functions that no driver sees
    """
    drivers = {
        name: Blind(driver, blind)
        for name, driver in loading.load(None, Sysfs(world), NODE_UUID).items()
    }
    return discovery.discover(
        world,
        drivers,
        device_spec.parse(world.lines, drivers),
        world,
        lambda _mdevs: units_in_use.Found(
            world.in_use,
            tuple(
                pci_function.Mdev(each.uuid, each.mdev_type, each.address)
                for each in held
                if each.mdev_type is not None
            ),
            frozenset(each.uuid for each in held),
        ),
        lambda: host_use.HostUse(Sysfs(world)),
        answers or last_answers.LastAnswers(),
    )


class TestTruth(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fake_fpga.Installed())

    @settings(max_examples=_EXAMPLES, deadline=None)
    @given(worlds())
    def test_all_that_is_published_can_be_attached_at_once(self, world):
        kernel = Kernel(world)
        for device in discover(world).devices:
            for handle in device.handles:
                kernel.attach(handle)

    @settings(max_examples=_EXAMPLES, deadline=None)
    @given(worlds())
    def test_nothing_of_novas(self, world):
        for device in discover(world).devices:
            for handle in device.handles:
                for address in (handle.address, *handle.functions):
                    function = world.host.functions[address]
                    self.assertFalse({address, function.card} & world.claimed)

    @settings(max_examples=_EXAMPLES, deadline=None)
    @given(worlds())
    def test_what_nothing_stands_against_is_published(self, world):
        """Else all of the above could be had by publishing nothing."""
        world.lines = [
            json.dumps({'vendor_id': '10de', 'driver': 'pci', 'type': 'GPU'})
        ]
        published = {
            handle.address
            for device in discover(world).devices
            for handle in device.handles
        }
        kernel = Kernel(world)
        for address, function in world.host.functions.items():
            if {address, function.card} & world.claimed:
                continue
            try:
                kernel.attach(attach_handle.AttachHandle('any', address))
            except AssertionError:
                self.assertNotIn(address, published)
            else:
                self.assertIn(address, published)

    @settings(max_examples=_EXAMPLES, deadline=None)
    @given(worlds())
    def test_every_function_of_a_line_is_published_or_explained(self, world):
        inventory = discover(world)
        drivers = loading.names()
        specs = device_spec.parse(world.lines, drivers)
        published = {
            address
            for device in inventory.devices
            for handle in device.handles
            for address in (device.address, handle.address, *handle.functions)
        }
        for address, function in world.host.functions.items():
            spec = device_spec.first_match(specs, function)
            # A card that is one device has its virtual functions.
            if spec is None or {address, function.card} & published:
                continue
            # A card that its line asks to offer as virtual functions.
            if spec.sriov_numvfs and function.virtual_functions:
                continue
            # The parts of a refused device are told of with it.
            together = {
                address,
                *function.iommu_members,
                *(
                    other
                    for other, its in world.host.functions.items()
                    if its.card == function.card
                    or (other.bus, other.slot) == (address.bus, address.slot)
                ),
            }
            self.assertTrue(
                any(
                    reason.startswith((f'{each} ', f'{each},'))
                    for each in together
                    for reason in inventory.refused
                ),
                address,
            )

    @settings(max_examples=_EXAMPLES, deadline=None)
    @given(worlds(), st.data())
    def test_nothing_that_is_held_leaves(self, world, data):
        """Whatever drivers see while it changes hands; nor is it given."""
        answers = last_answers.LastAnswers()
        before = handles_of(discover(world, answers))
        held = [each for each in before.values() if data.draw(st.booleans())]
        for _look in range(data.draw(st.integers(1, 3))):
            blind = {
                address
                for address in world.host.functions
                if data.draw(st.booleans())
            }
            there = changed(world, data.draw)
            inventory = discover(there, answers, held, blind)
            found = handles_of(inventory)
            for each in held:
                is_there = {each.address, *each.functions} <= (
                    there.host.functions.keys()
                )
                self.assertEqual(is_there, each.uuid in found, each)
            self.assertEqual(
                len(found),
                sum(len(list(each.handles)) for each in inventory.devices),
            )
            for device in inventory.devices:
                if device.fault is None and device.address in blind:
                    self.assertLessEqual(
                        {handle.uuid for handle in device.handles},
                        {each.uuid for each in held},
                    )
            # One that is gone may be another one when it is back.
            held = [each for each in held if each.uuid in found]
        self.assertEqual(
            discover(world).devices, discover(world, answers).devices
        )


def handles_of(inventory):
    """Uuid -> attach handle, of all devices."""
    return {
        handle.uuid: handle
        for device in inventory.devices
        for handle in device.handles
    }


def changed(world, draw):
    """The host, of which drivers take types and functions away."""
    return dataclasses.replace(
        world,
        host=dataclasses.replace(
            world.host,
            functions={
                address: dataclasses.replace(
                    function,
                    driver=draw(st.sampled_from([None, 'vfio-pci'])),
                    mdev_types=function.mdev_types
                    if draw(st.booleans())
                    else {},
                )
                for address, function in world.host.functions.items()
                if function.parent_address is None or draw(st.integers(0, 4))
            },
        ),
    )
