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

"""The GPU instances of NVIDIA's cards in MIG mode.

Examples alone document the output of ``nvidia-smi`` (NVIDIA's Multi-Instance
GPU User Guide). A row that is not like them is an error, because the next step
would change the card by it. All that changes the card is read again
afterwards.
"""

from collections.abc import Callable
from collections.abc import Iterable
import contextlib
import re
from typing import NamedTuple

from oslo_concurrency import lockutils

from nova_accel import exceptions
from nova_accel import privileged
from nova_accel import reason
from nova_accel.host import nvidia_smi
from nova_accel.model import pci_address
from nova_accel.model.cards import card_slice
from nova_accel.privileged import mig
from nova_accel.privileged import vendor_tool

#: How long a command may take. A change of the mode resets an older GPU.
TIMEOUT_S = 60

_BORDER = re.compile(r'\+-+\+')
_PROFILE = re.compile(
    r'\|\s+(?P<gpu>[0-9]+)\s+MIG (?P<name>[0-9]+g\.[0-9]+gb\S*)\s+'
    r'(?P<number>[0-9]+)\s+(?P<free>[0-9]+)/(?P<total>[0-9]+)\s.*\|'
)
_PLACES = re.compile(
    r'GPU\s+(?P<gpu>[0-9]+) Profile ID\s+(?P<number>[0-9]+) Placements?\s*:'
    r'\s*\{(?P<starts>[0-9]+(,[0-9]+)*)\}:(?P<size>[0-9]+)'
)
_INSTANCE = re.compile(
    r'\|\s+(?P<gpu>[0-9]+)\s+MIG \S+\s+(?P<profile>[0-9]+)\s+'
    r'(?P<number>[0-9]+)\s+(?P<start>[0-9]+):(?P<size>[0-9]+)\s+\|'
)
_OFF = re.compile(r'No MIG-(enabled|supported) devices found\.?\s*')
_NONE = re.compile(r'No GPU instances found(: Not Found)?\.?\s*')
_MODES = re.compile(
    r'(Enabled|Disabled|\[?N/A\]?),\s*(Enabled|Disabled|\[?N/A\]?)\s*'
)


class Profile(NamedTuple):
    """A kind of GPU instances, and where a card can have them.

    ``size`` and ``starts`` are slices of memory. ``number`` is the card's own.
    """

    name: str
    size: int
    starts: tuple[int, ...]
    number: int = -1

    def cut(self, start: int, slices: int) -> card_slice.CardSlice:
        """The slice of an instance on a card that has so many slices."""
        return card_slice.CardSlice(
            f'{card_slice.MIG}:{self.name}',
            card_slice.MIG,
            start * card_slice.WHOLE_CARD // slices,
            self.size * card_slice.WHOLE_CARD // slices,
        )


def slices(profiles: Iterable[Profile]) -> int:
    """The slices of memory of the card that has these profiles."""
    return max((max(each.starts) + each.size for each in profiles), default=1)


class Instance(NamedTuple):
    """A GPU instance that a card has."""

    number: int
    profile: int
    start: int
    size: int

    def is_at(self, profile: Profile, start: int) -> bool:
        return self[1:] == (profile.number, start, profile.size)

    def overlaps(self, profile: Profile, start: int) -> bool:
        return (
            self.start < start + profile.size
            and start < self.start + self.size
        )


class MigCard:
    """A card of NVIDIA, which may be in MIG mode.

    Each method raises DeviceError if the tool fails, or tells what it never
    tells.
    """

    def __init__(self, address: pci_address.PciAddress) -> None:
        self.address = address

    def locked(self) -> contextlib.AbstractContextManager[object]:
        """No one else carves the card in the body."""
        return lockutils.lock(f'nova_accel-carving-{self.address}')

    def is_on(self) -> bool:
        """Whether it is in MIG mode, False if it has none."""
        return self._modes()[0] == 'Enabled'

    def turn(self, is_on: bool) -> None:
        """Turn MIG mode on or off.

        :raises DeviceError: also if the card would do it later, which it is
            told not to.
        """
        wanted = 'Enabled' if is_on else 'Disabled'
        trouble, said = '', None
        try:
            said = self._asked('set_mode', int(is_on))
        except exceptions.DeviceError as error:
            trouble = str(error)
        current, pending = self._modes()
        if current == wanted:
            return
        if pending == wanted:
            self._asked('set_mode', int(not is_on))
        raise exceptions.DeviceError(
            trouble
            or f'MIG mode of {self.address} is {current} though it was set to '
            f'{wanted}: {_shown(said or "")}'
        )

    def set_functions(self, are_there: bool) -> None:
        """Make the virtual functions of the card, or remove them."""
        self._asked('set_functions', int(are_there))

    def profiles(self) -> tuple[Profile, ...] | None:
        """The card's own profiles, None if it is not in MIG mode.

        Profiles that differ from others only in their engines are left out.
        """
        text = self._asked('listed', '-lgip', absent=_OFF)
        if text is None:
            return None
        rows = self._rows('-lgip', _PROFILE, text)
        places = {
            int(row['number']): row
            for row in self._rows(
                '-lgipp', _PLACES, self._asked('listed', '-lgipp') or ''
            )
        }
        found = []
        for row in rows:
            number = int(row['number'])
            if number not in places:
                raise self._strange('-lgipp', f'no places of profile {number}')
            starts = tuple(map(int, places[number]['starts'].split(',')))
            size = int(places[number]['size'])
            if size and re.fullmatch('[0-9]+g\\.[0-9]+gb', row['name']):
                found.append(Profile(row['name'], size, starts, number))
        if not found:
            raise self._strange('-lgip', 'no profiles')
        return tuple(found)

    def instances(self) -> tuple[Instance, ...]:
        """The GPU instances that a card in MIG mode has."""
        text = self._asked('listed', '-lgi', absent=_NONE)
        if text is None:
            return ()
        found = tuple(
            Instance(
                *(
                    int(row[name])
                    for name in ('number', 'profile', 'start', 'size')
                )
            )
            for row in self._rows('-lgi', _INSTANCE, text)
        )
        if not found:
            raise self._strange('-lgi', 'a table without rows')
        return found

    def create(self, profile: Profile, start: int) -> Instance:
        """Create a GPU instance with its compute instance, at a place."""
        before = self.instances()
        self._asked('create', profile.number, start)
        made = [each for each in self.instances() if each not in before]
        for each in made:
            if each.is_at(profile, start):
                return each
        for each in made:
            self.destroy(each)
        raise exceptions.DeviceError(
            f'{self.address} was told to make a GPU instance of '
            f'{profile.name} at {start}, and made '
            + (f'one at {made[0].start}' if made else 'none')
        )

    def destroy(self, instance: Instance) -> None:
        """Destroy a GPU instance that no one uses."""
        self._asked('destroy', instance.number)
        if instance in self.instances():
            raise exceptions.DeviceError(
                f'GPU instance {instance.number} of {self.address} is still '
                'there though it was destroyed'
            )

    def _modes(self) -> tuple[str, str]:
        text = self._asked('mode') or ''
        match = _MODES.fullmatch(text)
        if match is None:
            raise self._strange('--query-gpu=mig.mode.current', _shown(text))
        return match[1], match[2]

    def _rows(
        self, what: str, pattern: re.Pattern[str], text: str
    ) -> list[re.Match[str]]:
        """The rows of a table, all of one GPU."""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if pattern is not _PLACES and not _BORDER.fullmatch(
            lines[-1] if lines else ''
        ):
            raise self._strange(what, 'a table without an end')
        found: list[re.Match[str]] = []
        for line in lines:
            if 'MIG ' not in line and not line.startswith('GPU '):
                continue
            match = pattern.fullmatch(line)
            if match is None or match['gpu'] != (found or [match])[0]['gpu']:
                raise self._strange(what, _shown(line))
            found.append(match)
        return found

    def _strange(self, what: str, text: str) -> exceptions.DeviceError:
        return exceptions.DeviceError(
            f'nvidia-smi {what} of {self.address} tells what it should not: '
            f'{text}'
        )

    def _asked(
        self,
        function: str,
        *arguments: object,
        absent: re.Pattern[str] | None = None,
    ) -> str | None:
        """The output of the tool, None if that is ``absent``."""
        call: Callable[..., tuple[int, str]] = getattr(mig, function)
        what = ' '.join(map(str, (function, self.address, *arguments)))
        try:
            with nvidia_smi.turn():
                status, text = call(str(self.address), *arguments, TIMEOUT_S)
        except privileged.ERRORS as error:
            raise exceptions.DeviceError(
                f'nvidia-smi has failed ({what}): {error}'
            ) from error
        if absent is not None and absent.fullmatch(text):
            return None
        if status == vendor_tool.BUSY:
            text = 'another call of it has not ended'
        elif status in vendor_tool.TIMED_OUT:
            text = f'no end within {TIMEOUT_S} s'
        if status:
            raise exceptions.DeviceError(
                f'nvidia-smi has failed ({what}): exit status {status}, '
                f'{_shown(text)}'
            )
        return text


def _shown(text: str) -> str:
    return reason.printable(text.strip()[:600])
