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

"""The effect of each line of ``device_spec`` on a host."""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import enum

from nova_accel import reason
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import hardware
from nova_accel.model.devices import line_matches
from nova_accel.model.devices import unit_words
from nova_accel.model.providers import publishable
from nova_accel.virt.publishing import discovery
from nova_accel.virt.publishing import host_preview

#: How many functions a text names.
_MAX_NAMED = 3


class Outcome(enum.StrEnum):
    """The fate of functions that a line matches."""

    OFFERED = 'offered'
    #: Published, and reserved as long as it has the fault.
    FAULTY = 'faulty'
    REFUSED = 'refused'
    #: nova-compute makes what is missing when it starts.
    AT_START = 'made at start'
    #: An earlier line applies to them.
    SHADOWED = 'shadowed'
    #: The line matches no function.
    NOTHING = 'matches nothing'
    #: It is offered, but something of it is not known.
    NOTE = 'note'


#: The outcomes of a line that is of use.
USEFUL = frozenset({Outcome.OFFERED, Outcome.AT_START})


@dataclasses.dataclass(frozen=True)
class LineResult:
    """The fate of some functions, and why if they are not offered.

    ``line`` is the number of the line, from 1, None for what is true of any
    line. ``units`` are those of ``part``, which is None if nothing is offered.
    """

    line: int | None
    outcome: Outcome
    addresses: tuple[str, ...] = ()
    device: hardware.Device | None = None
    part: hardware.Deployable | None = None
    why: str = ''

    @property
    def units(self) -> str:
        return '' if self.part is None else unit_words.of(self.part)

    @property
    def text(self) -> str:
        """The functions that are not offered, in words for people."""
        named = reason.some(self.addresses, _MAX_NAMED)
        return f'{named and named + " "}{self.outcome}: {self.why}'


def of(
    preview: host_preview.Preview, specs: Sequence[device_spec.DeviceSpec]
) -> list[LineResult]:
    """The results of all lines, in their order.

    :raises DeviceError: libvirt does not list its devices, or guests.
    """
    found = preview.discover(specs)
    numbers: dict[str, int] = {}
    for number, spec in enumerate(specs, 1):
        numbers.setdefault(spec.text, number)
    results = [
        *_published(preview.nodename, found, numbers),
        *_refused(found, numbers),
        *_without_effect(preview, specs),
        *(
            LineResult(None, Outcome.NOTE, why=text)
            for text in _of_no_line(found)
        ),
    ]
    return sorted(
        results, key=lambda each: (each.line is None, each.line or 0)
    )


def useless(
    results: Sequence[LineResult], specs: Sequence[device_spec.DeviceSpec]
) -> list[int]:
    """The numbers of the lines that offer nothing."""
    useful = {each.line for each in results if each.outcome in USEFUL}
    return [
        number for number in range(1, len(specs) + 1) if number not in useful
    ]


def _published(
    nodename: str, found: discovery.Discovered, numbers: dict[str, int]
) -> Iterator[LineResult]:
    published = publishable.of(nodename, found.devices)
    for device in published.devices:
        for part in device.deployables:
            fault = device.fault or part.fault
            yield LineResult(
                numbers[found.lines[device.name].text],
                Outcome.OFFERED if fault is None else Outcome.FAULTY,
                (str(device.address),),
                device,
                part,
                fault or '',
            )
    for text in published.left_out:
        yield LineResult(None, Outcome.REFUSED, why=text)


def _refused(
    found: discovery.Discovered, numbers: dict[str, int]
) -> Iterator[LineResult]:
    """The refusals of lines; cards with one cause share a result."""
    results: dict[tuple[str, str], LineResult] = {}
    for each in found.causes:
        key = each.line, each.why.replace(each.addresses[0], '')
        first = results.setdefault(
            key,
            LineResult(
                numbers[each.line],
                Outcome.AT_START if each.is_until_start else Outcome.REFUSED,
                why=each.why,
            ),
        )
        results[key] = dataclasses.replace(
            first, addresses=(*first.addresses, *each.addresses)
        )
    yield from results.values()


def _without_effect(
    preview: host_preview.Preview, specs: Sequence[device_spec.DeviceSpec]
) -> Iterator[LineResult]:
    """The lines that match nothing, or what an earlier one has."""
    functions = preview.functions
    for (later, first), both in line_matches.shadowed(
        specs, functions
    ).items():
        yield LineResult(
            later + 1,
            Outcome.SHADOWED,
            tuple(str(each.address) for each in both),
            why=(
                f'line {first + 1} matches too, and the first line that '
                'matches applies: put the narrower one first, or remove one'
            ),
        )
    for number, spec in enumerate(specs, 1):
        if not any(map(spec.matches, functions)):
            yield LineResult(
                number,
                Outcome.NOTHING,
                why=(
                    f'{line_matches.why_unmatched(spec, functions)}: correct '
                    'the line, or remove it'
                ),
            )


def _of_no_line(found: discovery.Discovered) -> list[str]:
    """The texts about functions that no line is named for."""
    told = {each.text for each in found.causes}
    return [text for text in found.refused if text not in told]
