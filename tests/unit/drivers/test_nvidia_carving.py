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

import dataclasses
import random

import fixtures

from nova_accel import exceptions
from nova_accel.host import vfio_vgpu
from nova_accel.host import whole_card
from nova_accel.model import pci_address
from nova_accel.model.cards import card_slice
from nova_accel.testing import nvidia_cards
from nova_accel.testing import nvidia_smi
from unit.drivers import divided_card

_IN_USE = 'In use by another client'


class QuickSysfs:
    """What a card's carver needs of its sysfs, without files."""

    def __init__(self, card, write):
        self.card = card
        self._write = write

    def names(self, _address, directory='.'):
        return [
            f'virtfn{number}'
            for number in range(len(self.card.functions))
            if self.card.are_functions and directory == '.'
        ]

    def link(self, _address, name):
        if name == 'driver':
            return self.card.driver
        if name == 'physfn':
            return self.card.address if self.card.are_functions else None
        return self.card.functions[int(name.removeprefix('virtfn'))]

    def read(self, address, attribute):
        if attribute == 'sriov_totalvfs':
            return str(len(self.card.functions))
        if not self.card.are_functions:
            return None
        if attribute == vfio_vgpu.CURRENT and str(address) not in (
            self.card.vgpus
        ):
            return vfio_vgpu.NO_TYPE
        return self.card.attributes(str(address)).get(
            attribute.replace('/', '__')
        )

    def write(self, address, attribute, value):
        if attribute == vfio_vgpu.CURRENT:
            try:
                self._write(address, value)
            except OSError as error:
                raise exceptions.DeviceError(str(error)) from error


class NobodysUse:
    """No process of the host uses a card."""

    def __init__(self, _sysfs):
        pass

    def reason(self, _address):
        return None


class Killed(BaseException):
    """nova-compute dies here."""


class TestCarving(divided_card.CardTestCase):
    def setUp(self):
        super().setUp()
        self.driver = self.a_driver()
        self.shapes = self.units()
        self.low, self.high = self.shapes['mig:3g.40gb']

    def assert_refused(self, call, handle, *texts):
        error = self.assertRaises(exceptions.DeviceError, call, handle)
        for text in texts:
            self.assertIn(text, str(error))

    def changes(self):
        return [
            call
            for call in self.tool.calls
            if {'-mig', '-cgi', '-dci', '-dgi'} & set(call)
        ]

    def test_an_instance(self):
        self.driver.plug(self.high)
        self.assertTrue(self.card.is_on)
        self.assertEqual({str(self.high.address): 4}, self.made())
        self.assertEqual(
            [
                ('-i', divided_card.CARD, '-mig', '1'),
                ('mig', '-i', divided_card.CARD, '-cgi', '9:4', '-C'),
            ],
            self.changes(),
        )
        self.driver.plug(self.high)
        self.driver.plug(self.low)
        self.assertEqual(
            {str(self.low.address): 0, str(self.high.address): 4}, self.made()
        )
        self.assertEqual(3, len(self.changes()))
        for _time in range(2):
            self.driver.unplug(self.high)
            self.assertEqual({str(self.low.address): 0}, self.made())
        self.driver.unplug(self.low)
        self.assertEqual({}, self.card.instances)
        self.assertTrue(self.card.is_on)

    def test_all_of_a_card(self):
        for shape, handles in self.shapes.items():
            for handle in handles:
                self.driver.plug(handle)
            self.assertEqual(
                {str(each.address) for each in handles}, set(self.card.vgpus)
            )
            self.assertEqual('mig:' in shape, self.card.is_on)
            self.assertEqual(
                len(handles) if self.card.is_on else 0,
                len(self.card.instances),
            )
            for handle in handles:
                self.driver.unplug(handle)
            self.assertEqual(({}, {}), (self.card.vgpus, self.card.instances))

    def test_a_vgpu_turns_the_mode_off(self):
        self.driver.plug(self.low)
        (vgpu, *_others) = self.shapes['vgpu:NVIDIA H100-20C']
        self.assert_refused(
            self.driver.plug, vgpu, 'is on', str(self.low.address)
        )
        self.driver.unplug(self.low)
        self.driver.plug(vgpu)
        self.assertFalse(self.card.is_on)
        self.assert_refused(
            self.driver.plug, self.low, 'is off', str(vgpu.address)
        )
        self.driver.unplug(vgpu)
        self.driver.plug(self.low)
        self.assertEqual({str(self.low.address): 0}, self.made())

    def test_after_a_reboot(self):
        for keeps_mode in (False, True):
            self.card.keeps_mode = keeps_mode
            self.driver.plug(self.high)
            self.tool.reboot(self.card)
            self.assertEqual(keeps_mode, self.card.is_on)
            self.driver.plug(self.high)
            self.assertEqual({str(self.high.address): 4}, self.made())
            self.tool.reboot(self.card)
            self.driver.unplug(self.high)
            self.assertEqual({}, self.card.instances)

    def test_parameters(self):
        handle = dataclasses.replace(self.low, vgpu_params='enable_uvm=1')
        self.driver.plug(handle)
        path = self.sysfs.root.joinpath(
            'bus/pci/devices', str(handle.address), 'nvidia/vgpu_params'
        )
        self.assertEqual('enable_uvm=1\n', path.read_text())
        self.driver.unplug(handle)
        self.assertEqual('', path.read_text().strip())

    def test_what_uses_the_card_is_told(self):
        self.card.processes = 1
        information = self.sysfs.proc.joinpath(
            'driver/nvidia/gpus', divided_card.CARD, 'information'
        )
        information.parent.mkdir(parents=True)
        information.write_text('Device Minor:    0\n')
        self.patch(
            'nova_accel.privileged.gpu_nodes.opened',
            lambda: {'nvidia0': [(4711, 'dcgm')]},
        )
        self.assert_refused(
            self.driver.plug, self.low, 'pending enable', '4711', 'dcgm'
        )
        # A later reset would do it, whatever the card then is.
        self.assertFalse(self.card.pending)
        self.card.processes = 0
        self.driver.plug(self.low)
        self.driver.unplug(self.low)
        self.card.processes = 1
        vgpu = self.shapes['vgpu:NVIDIA H100-80C'][0]
        self.assert_refused(self.driver.plug, vgpu, 'pending disable')
        self.assertTrue(self.card.pending)

    def patch(self, name, value):
        self.useFixture(fixtures.MonkeyPatch(name, value))

    def test_a_card_that_needs_no_functions_for_its_mode(self):
        self.card.needs_no_functions = True
        vgpu = self.shapes['vgpu:NVIDIA H100-80C'][0]
        functions = [(each, divided_card.CARD) for each in ('-d', '-e')]
        for handle, value in ((self.high, '1'), (vgpu, '0')):
            self.tool.calls.clear()
            self.driver.plug(handle)
            mode = ('-i', divided_card.CARD, '-mig', value)
            self.assertEqual(
                [
                    mode,
                    functions[0],
                    mode,
                    functions[1],
                ],
                [
                    call
                    for call in self.tool.calls
                    if call in (mode, *functions)
                ],
            )
            self.driver.unplug(handle)

    def test_functions_that_do_not_come_back(self):
        self.card.needs_no_functions = True
        self.patch('nova_accel.drivers.nvidia_carving._WITHIN_S', 0)
        self.patch('time.sleep', lambda _seconds: None)
        manage = self.tool._sriov_manage
        self.tool._sriov_manage = lambda how: (
            manage(how) if how[0] == '-d' else (0, '')
        )
        self.assert_refused(
            self.driver.plug,
            self.low,
            str(self.low.address),
            'sriov-manage -e',
        )
        self.tool._sriov_manage = lambda _how: (1, 'Cannot unbindLock')
        self.card.are_functions, self.card.is_on = True, False
        self.tool._show(self.card)
        self.assert_refused(self.driver.plug, self.low, 'Cannot unbindLock')

    def test_no_mode(self):
        self.card.has_mig = False
        self.assert_refused(self.driver.plug, self.low, 'N/A', 'Not Supported')
        vgpu = self.shapes['vgpu:NVIDIA H100-80C'][0]
        self.driver.plug(vgpu)
        self.driver.unplug(vgpu)

    def test_no_root(self):
        self.card.is_root = False
        self.assert_refused(
            self.driver.plug, self.low, 'Insufficient Permissions'
        )

    def test_a_step_that_is_refused(self):
        """Nothing of it is left, and the next plug works."""
        mode = '--query-gpu=mig.mode.current,mig.mode.pending'
        for option in ('-cgi', '-lgi', '-lgip', '-lgipp', mode):
            self.card.refusals[option] = (19, f'{_IN_USE}\n')
            self.assert_refused(self.driver.plug, self.low, _IN_USE)
            self.card.refusals.clear()
            self.assertEqual(({}, {}), (self.card.vgpus, self.card.instances))
            self.driver.plug(self.low)
            self.driver.unplug(self.low)

    def test_no_type_for_an_instance(self):
        self.card.types = [
            each for each in self.card.types if '-3-40' not in each.name
        ]
        self.assert_refused(self.driver.plug, self.low, '-3-40C', 'but none')
        self.assertEqual({}, self.card.instances)

    def test_a_place_that_others_have(self):
        self.driver.plug(self.shapes['mig:1g.10gb'][1])
        self.assert_refused(
            self.driver.plug,
            self.low,
            str(self.shapes['mig:1g.10gb'][1].address),
            'mig:3g.40gb at 0',
        )
        self.driver.plug(self.high)

    def test_a_function_that_others_have(self):
        """Its vGPU is left alone, by both steps."""
        (first, *_others) = self.shapes['mig:1g.10gb']
        self.assertEqual(first.address, self.low.address)
        self.driver.plug(first)
        before = self.made()
        self.assert_refused(self.driver.plug, self.low, 'GPU instance 0')
        self.driver.unplug(self.low)
        self.assertEqual(before, self.made())

    def test_what_an_interrupted_plug_has_left(self):
        """A free instance elsewhere would get the vGPU."""
        self.driver.plug(self.low)
        self.card.vgpus.clear()
        self.tool._show(self.card)
        self.driver.plug(self.high)
        self.assertEqual({str(self.high.address): 4}, self.made())
        self.assertEqual(1, len(self.card.instances))

    def test_a_vgpu_in_another_instance(self):
        """The driver of NVIDIA may choose as it likes."""

        class Odd(nvidia_cards.Card):
            def free(card):
                return [nvidia_cards.Instance(7, nvidia_cards.H100[4], 4)]

        self.card.__class__ = Odd
        self.assert_refused(
            self.driver.plug, self.low, 'is in GPU instance 7', 'not in 0'
        )
        self.assertEqual(({}, {}), (self.card.vgpus, self.card.instances))

    def test_an_old_driver_that_chooses_the_place(self):
        create = nvidia_smi._create
        self.patch(
            'nova_accel.testing.nvidia_smi._create',
            lambda card, wanted: create(card, wanted.replace(':4', ':0')),
        )
        self.assert_refused(
            self.driver.plug, self.high, 'made one at 0', '3g.40gb at 4'
        )
        self.assertEqual({}, self.card.instances)

    def test_a_tool_that_only_says_so(self):
        self.patch(
            'nova_accel.testing.nvidia_smi._set_mode', lambda *_how: (0, 'ok')
        )
        self.assert_refused(
            self.driver.plug, self.low, 'is Disabled', 'Enabled', 'ok'
        )
        self.card.is_on = self.card.pending = True
        for name in ('_create', '_create_compute'):
            self.patch(
                f'nova_accel.testing.nvidia_smi.{name}',
                lambda *_how: (0, 'ok'),
            )
        self.assert_refused(self.driver.plug, self.low, 'and made none')

    def test_an_instance_that_does_not_go(self):
        self.driver.plug(self.low)
        self.patch(
            'nova_accel.testing.nvidia_smi._destroy', lambda *_how: (0, 'ok')
        )
        self.assert_refused(self.driver.unplug, self.low, 'still there')

    def test_another_table(self):
        """What was offered by the table is compared with the card."""
        self.card.profiles = [
            each._replace(starts=(0,)) for each in nvidia_cards.H100
        ]
        self.assert_refused(self.driver.plug, self.high, 'no place', '4 of 8')

    def test_a_function_without_a_card(self):
        path = self.sysfs.root / 'bus/pci/devices' / str(self.low.address)
        (path / 'physfn').unlink()
        self.assert_refused(self.driver.plug, self.low, 'has no card')
        self.driver.unplug(self.low)


class TestAnySequence(divided_card.CardTestCase):
    """Of steps that may be killed at any command, and of reboots."""

    sequences = 1000
    steps = 8

    def setUp(self):
        super().setUp()
        self.handles = list(self.discover(*divided_card.ALL, 'whole').handles)
        # Without files, a thousand sequences take seconds.
        self.tool._show = lambda _card: None
        for name, value in (
            ('privileged.mig._card', str),
            (
                'privileged.mig._has_functions',
                lambda _card: self.card.are_functions,
            ),
            ('host.host_use.HostUse', NobodysUse),
        ):
            self.useFixture(fixtures.MonkeyPatch(f'nova_accel.{name}', value))
        self.sysfs.sysfs = QuickSysfs(self.card, self.tool._write)
        self.driver = self.a_driver()

    def test_any_sequence(self):
        for seed in range(self.sequences):
            self.random = random.Random(seed)
            self.card.keeps_mode = self.random.random() < 0.5
            self.card.needs_no_functions = self.random.random() < 0.5
            self.wanted = []
            self.tried = set()
            try:
                for _step in range(self.steps):
                    self.step()
                    self.check()
                self.end()
            except Exception as error:
                error.add_note(f'seed {seed}')
                raise

    def step(self):
        chance = self.random.random()
        if chance < 0.1:
            self.tool.reboot(self.card)
            self.card.are_functions = self.random.random() < 0.5
            self.start()
            # Nova starts the guests again.
            for handle in self.wanted:
                self.do(self.driver.plug, handle)
        elif chance < 0.4 and self.wanted:
            handle = self.random.choice(self.wanted)
            self.wanted.remove(handle)
            # Its guest ends, and libvirt gives the card back.
            self.card.driver = 'nvidia'
            if not self.do(self.driver.unplug, handle):
                self.driver.unplug(handle)
        else:
            free = [
                each
                for each in self.handles
                if not any(
                    each == other or each.slice.excludes(other.slice)
                    for other in self.wanted
                )
            ]
            if free:
                handle = self.random.choice(free)
                self.tried.add(handle)
                if self.do(self.driver.plug, handle):
                    self.wanted.append(handle)
                elif self.random.random() < 0.5:
                    self.driver.unplug(handle)
                else:
                    self.driver.plug(handle)
                    self.wanted.append(handle)

    def do(self, call, handle):
        """Whether the call has ended; else it was killed."""
        left = [self.random.randrange(30)]

        def count(_step):
            left[0] -= 1
            if left[0] == 0:
                raise Killed

        self.tool.on_step = count
        try:
            call(handle)
        except Killed:
            self.tool.on_step = lambda _step: None
            self.start()
            return False
        finally:
            self.tool.on_step = lambda _step: None
        return True

    def start(self):
        """nova-compute starts, and makes virtual functions."""
        if self.card.driver == 'nvidia':
            whole_card.take_back(
                self.sysfs.sysfs,
                pci_address.PciAddress.parse(divided_card.CARD),
            )

    def check(self):
        instances = list(self.card.instances.values())
        for number, one in enumerate(instances):
            for other in instances[number + 1 :]:
                self.assertFalse(one.slices & other.slices)
        for handle in self.wanted:
            # A reboot may have been survived by no plug that was killed.
            self.driver.plug(handle)
            if handle.slice.mode == 'whole':
                self.assertEqual(
                    (False, False), (self.card.are_functions, self.card.is_on)
                )
                self.card.driver = 'vfio-pci'
            else:
                self.assertTrue(self.card.are_functions)
        found = {}
        for function, (type_, number) in self.card.vgpus.items():
            instance = number is not None and self.card.instances[number]
            found[function] = (
                (f'mig:{instance.profile.name}', instance.start)
                if instance
                else f'vgpu:{type_.name}'
            )
        eighth = card_slice.WHOLE_CARD // 8
        self.assertEqual(
            {
                str(each.address): (
                    (each.slice.shape, each.slice.start // eighth)
                    if each.slice.mode == 'mig'
                    else each.slice.shape
                )
                for each in self.wanted
                if each.slice.mode != 'whole'
            },
            found,
        )

    def end(self):
        """Nothing is left when all was unplugged."""
        self.card.driver = 'nvidia'
        for handle in self.wanted:
            self.driver.unplug(handle)
        self.assertTrue(self.card.are_functions)
        self.assertEqual({}, self.card.vgpus)
        self.assertEqual({}, self.card.instances)
