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

"""Simulated GPUs of NVIDIA that can be divided, and the tool for it.

It prints, refuses and returns what NVIDIA's Multi-Instance GPU User Guide and
people's reports show of ``nvidia-smi`` with drivers 450 to 580.
The exit statuses are NVML's (``nvmlReturn_t`` of ``nvml.h``). No such hardware
was used.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import errno
import pathlib
from typing import Any

import fixtures

from nova_accel import privileged
from nova_accel.model import pci_address
from nova_accel.privileged import mig
from nova_accel.privileged import vendor_tool
from nova_accel.testing import fake_sysfs
from nova_accel.testing import nvidia_cards

INVALID_ARGUMENT = 2
NO_PERMISSION = 4
NOT_FOUND = 6
IN_USE = 19
INSUFFICIENT_RESOURCES = 23

_WORDS = {
    INVALID_ARGUMENT: 'Invalid Argument',
    NO_PERMISSION: 'Insufficient Permissions',
    IN_USE: 'In use by another client',
    INSUFFICIENT_RESOURCES: 'Insufficient Resources',
}

_CURRENT = 'nvidia/current_vgpu_type'

_Answer = tuple[int, str]


class NvidiaSmi(fixtures.Fixture):
    """Cards on a simulated sysfs, with the tool in the place of NVIDIA's.

    :ivar calls: the arguments of each call of the tool
    :ivar on_step: is called before and after each step that changes a card
    :ivar text: replaces what the tool prints, if it is set
    """

    def __init__(
        self, sysfs: fake_sysfs.FakeSysfs, cards: Iterable[nvidia_cards.Card]
    ) -> None:
        self.sysfs = sysfs
        self.cards: Mapping[str, nvidia_cards.Card] = {
            card.address: card for card in cards
        }
        self.calls: list[tuple[str, ...]] = []
        self.on_step: Callable[[str], None] = lambda _step: None
        self.text: Callable[[str], str] = lambda text: text

    def _setUp(self) -> None:
        self._run = vendor_tool.run
        run_directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name, value in (
            ('vendor_tool.run', self._instead),
            ('mig.SYSFS', self.sysfs.root),
            ('mig.RUN', run_directory),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(f'nova_accel.privileged.{name}', value)
            )
        self.addCleanup(privileged.mig_pctxt.set_client_mode, True)
        privileged.mig_pctxt.set_client_mode(False)
        self.sysfs.on_write[_CURRENT] = self._write
        for card in self.cards.values():
            self.sysfs.set(
                card.address, sriov_totalvfs=str(len(card.functions))
            )
            for function in card.functions:
                self.sysfs.set(function, nvidia__vgpu_params='')
                (self._directory / function / 'physfn').symlink_to(
                    f'../{card.address}'
                )
            self._show(card)

    def reboot(self, card: nvidia_cards.Card) -> None:
        """Have a card forget what it forgets."""
        card.driver = 'nvidia'
        card.instances.clear()
        card.computing.clear()
        card.vgpus.clear()
        card.is_on = card.pending = card.pending and card.keeps_mode
        self._show(card)

    def bind(self, card: nvidia_cards.Card, driver: str) -> None:
        """Give a card to another driver, as libvirt does for a guest."""
        card.driver = driver
        self._show(card)

    def _show(self, card: nvidia_cards.Card) -> None:
        """Have sysfs say what a card and its functions are."""
        self.sysfs.bind(card.address, card.driver)
        for number, function in enumerate(card.functions):
            self.sysfs.set(function, **card.attributes(function))
            link = self._directory / card.address / f'virtfn{number}'
            link.unlink(missing_ok=True)
            if card.are_functions:
                link.symlink_to(f'../{function}')
            elif (self._directory / function).is_symlink():
                self.sysfs.remove(function)

    @property
    def _directory(self) -> pathlib.Path:
        return self.sysfs.root / 'bus/pci/devices'

    def _write(self, address: pci_address.PciAddress, value: str) -> None:
        """Give a function a type; the driver chooses the GPU instance."""
        function = str(address)
        card = next(
            each for each in self.cards.values() if function in each.functions
        )
        try:
            self.on_step(f'type {value}')
            if value == '0':
                card.vgpus.pop(function, None)
            else:
                self._give(card, function, int(value))
            self.on_step(f'type {value}')
        finally:
            self._show(card)

    def _give(
        self, card: nvidia_cards.Card, function: str, number: int
    ) -> None:
        for type_ in card.fitting():
            if type_.number == number and function not in card.vgpus:
                instances = [
                    each.number
                    for each in card.free()
                    if each.profile.number == type_.profile
                ]
                card.vgpus[function] = (
                    type_,
                    instances[0] if instances else None,
                )
                return
        raise OSError(errno.EIO, 'Input/output error')

    def _instead(
        self, command: Sequence[str], *arguments: Any, **options: Any
    ) -> vendor_tool.ToolAnswer:
        answers = {
            'nvidia-smi': self.answer,
            mig.SRIOV_MANAGE: self._sriov_manage,
        }
        if command[0] not in answers:
            return self._run(command, *arguments, **options)
        self.calls.append(tuple(command[1:]))
        status, text = answers[command[0]](command[1:])
        return vendor_tool.ToolAnswer(status, self.text(text).encode(), b'')

    def _sriov_manage(self, arguments: Sequence[str]) -> _Answer:
        """NVIDIA's program binds the driver anew, without GPU instances."""
        card = self.cards[arguments[1]]

        def change(card: nvidia_cards.Card) -> _Answer:
            if card.vgpus or card.processes:
                return 1, f'Cannot unbindLock {card.address}\n'
            card.instances.clear()
            card.computing.clear()
            card.are_functions = arguments[0] == '-e'
            return 0, f'Enabling VFs on {card.address}\n'

        return self._changed(card, f'functions {arguments[0]}', change)

    def answer(self, arguments: Sequence[str]) -> _Answer:
        """The exit status of a call of the tool, and what it prints."""
        left = [each for each in arguments if each not in ('mig', 'vgpu')]
        where = left.index('-i')
        card = self.cards.get(left[where + 1])
        del left[where : where + 2]
        if card is None or card.driver != 'nvidia':
            return NOT_FOUND, 'No devices were found\n'
        for option, refusal in card.refusals.items():
            if option in left:
                return refusal
        if left[0].startswith('--query-gpu'):
            return 0, self._modes(card)
        if left[0] == '-s':
            return 0, _types(card)
        if left[0] == '-mig':
            return self._changed(card, f'mode {left[1]}', _set_mode, left[1])
        return self._of_instances(card, left)

    def _of_instances(
        self, card: nvidia_cards.Card, left: Sequence[str]
    ) -> _Answer:
        if not card.is_on:
            return NOT_FOUND, 'No MIG-enabled devices found.\n'
        if left[0] == '-cgi':
            status, said = self._changed(card, 'create', _create, left[1])
            if status or '-C' not in left:
                return status, said
            status, more = self._changed(card, 'compute', _create_compute)
            return status, said + more
        if left[0] == '-gi':
            change = _destroy_compute if left[2] == '-dci' else _destroy
            return self._changed(card, left[2], change, int(left[1]))
        return {'-lgip': _profiles, '-lgipp': _places, '-lgi': _instances}[
            left[0]
        ](card)

    def _modes(self, card: nvidia_cards.Card) -> str:
        if not card.has_mig:
            return '[N/A], [N/A]\n'
        return ', '.join(
            'Enabled' if each else 'Disabled'
            for each in (card.is_on, card.pending)
        )

    def _changed(
        self,
        card: nvidia_cards.Card,
        step: str,
        change: Callable[..., _Answer],
        *how: Any,
    ) -> _Answer:
        self.on_step(step)
        try:
            return change(card, *how)
        finally:
            self._show(card)
            self.on_step(step)


def _set_mode(card: nvidia_cards.Card, value: str) -> _Answer:
    is_on, gpu = value == '1', f'0000{card.address.upper()}'
    verb = 'enable' if is_on else 'disable'
    failed = f'Unable to {verb} MIG Mode for GPU {gpu}: '
    ending = '\nTerminating early due to previous errors.\n'
    if not card.has_mig:
        return 0, (
            f'{failed}Not Supported\nTreating as warning and moving on.\n'
            'All done.\n'
        )
    if not card.is_root:
        return NO_PERMISSION, failed + _WORDS[NO_PERMISSION] + ending
    if (
        card.vgpus
        or card.instances
        or (
            card.needs_no_functions
            and card.are_functions
            and is_on != card.is_on
        )
    ):
        return IN_USE, failed + _WORDS[IN_USE] + ending
    card.pending = is_on
    if card.processes and is_on != card.is_on:
        return 0, (
            f'Warning: MIG mode is in pending {verb} state for GPU {gpu}:'
            f'{_WORDS[IN_USE]}\n{gpu} is currently being used by one or more '
            'other processes (e.g. CUDA application or a monitoring '
            'application such as another instance of nvidia-smi). Please '
            'first kill all processes using the device and retry the command '
            'or reboot the system to make MIG mode effective.\nAll done.\n'
        )
    card.is_on = is_on
    return 0, f'{verb.title()}d MIG Mode for GPU {gpu}\nAll done.\n'


def _create(card: nvidia_cards.Card, wanted: str) -> _Answer:
    number, start = map(int, wanted.split(':'))
    profile = next(
        (each for each in card.profiles if each.number == number), None
    )
    taken = frozenset().union(
        *(each.slices for each in card.instances.values())
    )
    refusal = 0
    if not card.is_root:
        refusal = NO_PERMISSION
    elif profile is None or start not in profile.starts:
        refusal = INVALID_ARGUMENT
    elif taken & nvidia_cards.Instance(
        0, profile, start
    ).slices or profile.compute > 7 - sum(
        each.profile.compute for each in card.instances.values()
    ):
        refusal = INSUFFICIENT_RESOURCES
    if refusal or profile is None:
        return refusal, (
            f'Unable to create a GPU instance on GPU  0 using profile {number}'
            f': {_WORDS[refusal]}\nFailed to create GPU instances: '
            f'{_WORDS[refusal]}\n'
        )
    own = next(each for each in range(15) if each not in card.instances)
    card.instances[own] = nvidia_cards.Instance(own, profile, start)
    return 0, (
        f'Successfully created GPU instance ID {own:2} on GPU  0 using '
        f'profile MIG {profile.name} (ID {number:2})\n'
    )


def _create_compute(card: nvidia_cards.Card) -> _Answer:
    own = list(card.instances)[-1]
    card.computing.add(own)
    return 0, (
        'Successfully created compute instance ID  0 on GPU  0 GPU instance '
        f'ID {own:2} using profile MIG {card.instances[own].profile.name} '
        '(ID  0)\n'
    )


def _destroy_compute(card: nvidia_cards.Card, number: int) -> _Answer:
    if number not in card.computing:
        return NOT_FOUND, 'No compute instances found: Not Found\n'
    if number in [instance for _type, instance in card.vgpus.values()]:
        return IN_USE, (
            'Unable to destroy compute instance ID  0 from GPU  0 GPU '
            f'instance ID {number:2}: {_WORDS[IN_USE]}\nFailed to destroy '
            f'compute instances: {_WORDS[IN_USE]}\n'
        )
    card.computing.discard(number)
    return 0, (
        'Successfully destroyed compute instance ID  0 from GPU  0 GPU '
        f'instance ID {number:2}\n'
    )


def _destroy(card: nvidia_cards.Card, number: int) -> _Answer:
    if number not in card.instances:
        return NOT_FOUND, 'No GPU instances found: Not Found\n'
    if number in card.computing or number in [
        instance for _type, instance in card.vgpus.values()
    ]:
        return IN_USE, (
            f'Unable to destroy GPU instance ID {number:2} from GPU  0: '
            f'{_WORDS[IN_USE]}\nFailed to destroy GPU instances: '
            f'{_WORDS[IN_USE]}\n'
        )
    del card.instances[number]
    return (
        0,
        f'Successfully destroyed GPU instance ID {number:2} from GPU  0\n',
    )


def _profiles(card: nvidia_cards.Card) -> _Answer:
    line = f'+{77 * "-"}+\n'
    rows = [
        f'|   0  MIG {each.name:12} {each.number:4}     '
        f'{_left(card, each)}/{len(each.starts)}        9.75       No   '
        f'{each.compute * 16:3}     {each.compute}     0   |\n'
        f'|{61 * " "}{each.compute}     1     0   |\n'
        for each in card.profiles
    ]
    return 0, (
        line
        + f'| {"GPU instance profiles:":75} |\n'
        + '| GPU   Name             ID    Instances   Memory     P2P    SM    '
        'DEC   ENC  |\n'
        + '|                              Free/Total   GiB              CE    '
        'JPEG  OFA  |\n' + f'|{77 * "="}|\n' + line.join(rows) + line
    )


def _left(card: nvidia_cards.Card, profile: nvidia_cards.Profile) -> int:
    """How many more instances of a profile have room, by memory alone."""
    taken: set[int] = set()
    for each in card.instances.values():
        taken |= each.slices
    found = 0
    for start in profile.starts:
        slices = nvidia_cards.Instance(0, profile, start).slices
        if not taken & slices:
            taken |= slices
            found += 1
    return found


def _places(card: nvidia_cards.Card) -> _Answer:
    return 0, ''.join(
        f'GPU  0 Profile ID {each.number:2} '
        + ('Placements:' if len(each.starts) > 1 else 'Placement :')
        + f' {{{",".join(map(str, each.starts))}}}:{each.size}\n'
        for each in card.profiles
    )


def _instances(card: nvidia_cards.Card) -> _Answer:
    if not card.is_root:
        return NO_PERMISSION, (
            f'Failed to display GPU instances: {_WORDS[NO_PERMISSION]}\n'
        )
    if not card.instances:
        return NOT_FOUND, 'No GPU instances found: Not Found\n'
    line = f'+{57 * "-"}+\n'
    return 0, (
        line
        + f'| {"GPU instances:":55} |\n'
        + '| GPU   Name               Profile  Instance   Placement  |\n'
        + '|                            ID       ID       Start:Size |\n'
        + f'|{57 * "="}|\n'
        + line.join(
            f'|   0  MIG {each.profile.name:15} {each.profile.number:4} '
            f'{each.number:8}   {each.start:8}:{each.profile.size}     |\n'
            for each in card.instances.values()
        )
        + line
    )


def _types(card: nvidia_cards.Card) -> str:
    return f'GPU 0000{card.address.upper()}\n' + ''.join(
        f'    {"vGPU Type ID":38}: {each.number:#x}\n'
        + ''.join(
            f'        {name:34}: {value}\n'
            for name, value in (
                ('Name', each.name),
                ('Class', 'Compute'),
                (
                    'GPU Instance Profile ID',
                    'N/A' if each.profile is None else each.profile,
                ),
                ('Max Instances', each.most),
                ('Max Instances Per VM', 1),
                ('Device ID', '0x233010DE'),
                ('FB Memory', f'{81920 // each.most} MiB'),
                ('Display Heads', 1),
            )
        )
        for each in card.types
    )
