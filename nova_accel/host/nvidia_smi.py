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

"""Facts about GPUs that only ``nvidia-smi`` tells.

It tells them while NVIDIA's driver has a GPU. Once a GPU is bound to VFIO, and
so as long as a guest has it, no one can tell its module id or its peers.

``nvidia-smi -q -x`` tells the GPUs. The module id is ``gpu_module_id``, and
``platformInfo/module_id`` since R565. ``nvidia-smi nvlink -R`` tells the other
end of each link that is up. Consumer cards have a module id, too. So a GPU is
on an NVSwitch board if a link of it ends at something that is no GPU, or if it
has a fabric state (``fabric/state``, which only Hopper and later have).
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
import contextlib
import re
import threading
import time
from typing import NamedTuple

from lxml import etree
from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel import reason
from nova_accel.host import sysfs_tree
from nova_accel.model import link_sets
from nova_accel.model import pci_address
from nova_accel.privileged import vendor_tool

LOG = logging.getLogger(__name__)

#: How long one command may take. It may have to wake GPUs up.
TIMEOUT_S = 60

# How long all may take together.
_ALL_S = 180

#: The longest answer that is read, in bytes. Each GPU takes about 50,000.
MAX_ANSWER = 16 * 2**20

# How long a guest's start waits for a call, which has to end by then.
_WAIT_S = TIMEOUT_S + 30

# How long a call waits for starts of guests before it is given up.
_GIVES_WAY_S = 20

_COMMAND = 'nvidia-smi'

_VENDOR = '0x10de'

# The states of a GPU without an NVSwitch board. The others are "Not Started",
# "In Progress" and "Completed", also with the status "Insufficient Resources"
# (nvmlGpuFabricState_t of nvml.h).
_NO_FABRIC = ('', 'N/A', 'Not Supported')

# The characters that XML 1.0 does not have, nor as a reference.
_NOT_XML = re.compile('[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]')

_GPU = re.compile(r'GPU [0-9]+: .*\(UUID: (?P<uuid>[^)]+)\)\s*')
_LINK = re.compile(
    r'\s+Link [0-9]+: Remote Device (?P<peer>[0-9A-Fa-f:.]+): Link [0-9]+\s*'
)


class _Turns:
    """Starts of guests, and calls of the tool: never at the same moment.

    A call has all GPUs open. An unbind that begins meanwhile may never end:
    https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1119.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._starts = 0
        self._calls = 0

    @contextlib.contextmanager
    def start(self) -> Iterator[None]:
        """:raises DeviceError: a call does not end."""
        with self._changed:
            # No call begins from here on.
            self._starts += 1
        try:
            with self._changed:
                has_ended = self._changed.wait_for(
                    lambda: not self._calls, _WAIT_S
                )
            if not has_ended:
                raise exceptions.DeviceError(
                    f'{_COMMAND} has not ended within {_WAIT_S} s, and has '
                    'the GPUs of NVIDIA open; reboot the host if it cannot be '
                    'killed, else restart nova-compute'
                )
            yield
        finally:
            with self._changed:
                self._starts -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """A call that cannot be killed never ends here, either.

        :raises DeviceError: a guest is being started.
        """
        with self._changed:
            if not self._changed.wait_for(
                lambda: not self._starts, _GIVES_WAY_S
            ):
                raise exceptions.DeviceError(
                    f'{_COMMAND} is not called while a guest is started'
                )
            self._calls += 1
        has_ended = True
        try:
            yield
        except TimeoutError:
            has_ended = False
            raise
        finally:
            with self._changed:
                self._calls -= has_ended
                self._changed.notify_all()


_turns = _Turns()


def kept_away(
    sysfs: sysfs_tree.Sysfs, functions: Iterable[pci_address.PciAddress]
) -> contextlib.AbstractContextManager[None]:
    """Call no tool in the body, if a function is of NVIDIA.

    It is for a body in which libvirt unbinds these functions. On entry it
    waits for a call, whose time is bounded.

    :raises DeviceError: on entry, if a call does not end.
    """
    if any(
        sysfs.optional.read(function, 'vendor') == _VENDOR
        for function in functions
    ):
        return _turns.start()
    return contextlib.nullcontext()


def turn() -> contextlib.AbstractContextManager[None]:
    """Start no guest in the body, which calls a tool of NVIDIA once.

    :raises DeviceError: on entry, if a guest is being started.
    """
    return _turns.call()


class VgpuType(NamedTuple):
    """A vGPU type that a card supports, in whatever mode it is.

    ``most`` is how many of them the card makes if it makes no others.
    """

    number: str
    name: str
    most: int


class Gpu(NamedTuple):
    """A GPU that NVIDIA's driver has.

    ``module_id`` is its number on its board, None if it has none. ``peers``
    are the addresses of the devices that its NVLinks end at. ``has_fabric``
    says that it is on an NVSwitch board.
    """

    address: pci_address.PciAddress
    module_id: int | None
    peers: frozenset[pci_address.PciAddress] = frozenset()
    has_fabric: bool = False


def gpus(
    addresses: Iterable[pci_address.PciAddress] = (),
) -> tuple[Gpu, ...]:
    """The GPUs that NVIDIA's driver has now and that answer.

    One GPU that is off the bus can end the tool, with or without a part of its
    answer. Then each other is asked for on its own. It takes seconds, and
    three minutes at most.

    :param addresses: the GPUs that the driver should have
    :raises DeviceError: no GPU is told.
    """
    deadline = time.monotonic() + _ALL_S
    all_gpus = frozenset(addresses)
    found: dict[pci_address.PciAddress, Gpu] = {}
    troubles: dict[str, None] = {}
    for only in (None, *sorted(all_gpus)):
        if only in found:
            continue
        which = ('-i', str(only)) if only else ()
        try:
            told = _told(which, all_gpus, deadline)
        except exceptions.DeviceError as error:
            troubles[str(error)] = None
        else:
            found |= {gpu.address: gpu for gpu in told}
    if troubles and not found:
        raise exceptions.DeviceError(reason.some(list(troubles), 2))
    for trouble in troubles:
        LOG.warning('GPUs are left out: %s', trouble)
    return tuple(found.values())


def ecc_modes(
    cards: Collection[pci_address.PciAddress],
) -> dict[pci_address.PciAddress, str]:
    """``Enabled``, ``Disabled``, or ``N/A`` for a GPU without ECC.

    It is one call of the tool for all cards, which takes seconds, and
    :data:`TIMEOUT_S` at most.

    :raises DeviceError: a card does not tell it.
    """
    only = ('-i', str(next(iter(cards)))) if len(cards) == 1 else ()
    arguments = ('-q', '-x', *only)
    answer = _run(time.monotonic() + TIMEOUT_S, *arguments)
    gpus = _elements(answer.text)
    modes = {
        card: _text(gpus[card], ['ecc_mode/current_ecc'])
        for card in cards
        if card in gpus
    }
    for card in cards:
        if modes.get(card) not in ('Enabled', 'Disabled', 'N/A'):
            raise exceptions.DeviceError(
                f'{_COMMAND} {" ".join(arguments)} does not tell the ECC mode '
                f'of {card}: exit status {answer.status}'
            )
    return modes


def vgpu_types(card: pci_address.PciAddress) -> tuple[VgpuType, ...]:
    """The vGPU types that a card supports, by their names.

    A type of which the tool does not tell all is left out.

    :raises DeviceError: the tool fails, or tells none.
    """
    arguments = ('vgpu', '-s', '-v', '-i', str(card))
    answer = _run(time.monotonic() + TIMEOUT_S, *arguments)
    found: dict[str, VgpuType] = {}
    for block in re.split(r'\n(?=\s*vGPU Type ID\s*:)', answer.text)[1:]:
        lines = [line.partition(':') for line in block.splitlines()]
        facts: dict[str, str] = {}
        for key, _colon, value in lines:
            facts.setdefault(key.strip(), value.strip())
        number, most = (
            facts.get(key, '') for key in ('vGPU Type ID', 'Max Instances')
        )
        name = facts.get('Name', '')
        if (
            re.fullmatch('0x[0-9A-Fa-f]{1,8}|[0-9]{1,9}', number)
            and re.fullmatch('[1-9][0-9]{0,3}', most)
            and name
        ):
            base = 16 if number.startswith('0x') else 10
            found[name] = VgpuType(str(int(number, base)), name, int(most))
    if answer.status or not found:
        raise _failure(answer, *arguments)
    return tuple(found[name] for name in sorted(found))


def _told(
    which: tuple[str, ...],
    all_gpus: frozenset[pci_address.PciAddress],
    deadline: float,
) -> tuple[Gpu, ...]:
    """:raises DeviceError: nothing is told of them, or of their links."""
    listed = _run(deadline, '-q', '-x', *which)
    told = parsed(listed.text, '')
    if not told:
        raise _failure(listed, '-q', '-x', *which)
    links = _run(deadline, 'nvlink', '-R', *which)
    if links.status:
        # The links that are not told would be taken for down.
        raise _failure(links, 'nvlink', '-R', *which)
    return parsed(listed.text, links.text, all_gpus)


def _run(deadline: float, *arguments: str) -> vendor_tool.ToolAnswer:
    """:raises DeviceError: it has no end, or is not there"""
    left_s = min(TIMEOUT_S, int(deadline - time.monotonic()))
    called = ' '.join((_COMMAND, *arguments))
    if left_s <= 0:
        raise exceptions.DeviceError(
            f'{called} is not called: {_ALL_S} s are over'
        )
    try:
        with _turns.call():
            return vendor_tool.run(
                (_COMMAND, *arguments), left_s, most=MAX_ANSWER
            )
    except (OSError, ValueError) as error:
        raise exceptions.DeviceError(
            f'{called} has failed: {error}'
        ) from error


def _failure(
    answer: vendor_tool.ToolAnswer, *arguments: str
) -> exceptions.DeviceError:
    called = ' '.join((_COMMAND, *arguments))
    return exceptions.DeviceError(
        f'{called} has failed: exit status {answer.status}, '
        f'{reason.printable(answer.said)}'
    )


def parsed(
    xml: str,
    links: str,
    all_gpus: frozenset[pci_address.PciAddress] = frozenset(),
) -> tuple[Gpu, ...]:
    """The GPUs of the answers of ``-q -x`` and ``nvlink -R``.

    The names of processes are bytes, and a lost GPU ends the XML in its
    middle. So it is read as far as it can be. A GPU that it tells wrongly is
    left out, and one whose end it does not tell.

    :param all_gpus: functions that are GPUs, though the XML may lack them
    """
    found = _elements(xml)
    ends = _ends(links)
    return tuple(
        _gpu(gpu, address, ends, all_gpus | found.keys())
        for address, gpu in found.items()
    )


def _parser() -> etree.XMLParser:
    return etree.XMLParser(
        recover=True, resolve_entities=False, no_network=True, load_dtd=False
    )


def _elements(xml: str) -> dict[pci_address.PciAddress, etree._Element]:
    """The GPUs of the answer of ``-q -x`` that it tells to their end."""
    found: dict[pci_address.PciAddress, etree._Element] = {}
    # No GPU is within another. So what one says does not cost another.
    for part in _NOT_XML.sub('\ufffd', xml).split('<gpu id=')[1:]:
        content, end, _others = part.partition('</gpu>')
        try:
            gpu = etree.fromstring(f'<gpu id={content}{end}', _parser())
            if end and gpu is not None:
                found.setdefault(_address(gpu.get('id', '')), gpu)
        except (etree.XMLSyntaxError, exceptions.InvalidName):
            continue
    return found


def _gpu(
    gpu: etree._Element,
    address: pci_address.PciAddress,
    ends: dict[str, frozenset[pci_address.PciAddress]],
    addresses: frozenset[pci_address.PciAddress],
) -> Gpu:
    peers = ends.get(_text(gpu, ['uuid']), frozenset())
    return Gpu(
        address,
        _module_id(_text(gpu, ['gpu_module_id', 'platformInfo/module_id'])),
        peers,
        bool(peers - addresses)
        or _text(gpu, ['fabric/state']) not in _NO_FABRIC,
    )


def _text(gpu: etree._Element, paths: Iterable[str]) -> str:
    """The first of some elements that there is, '' if there is none."""
    for path in paths:
        found = gpu.findtext(path)
        if found is not None:
            return found.strip()
    return ''


def _module_id(text: str) -> int | None:
    if re.fullmatch('[0-9]{1,3}', text) is None:
        return None
    return int(text) if int(text) <= link_sets.MAX_MODULE_ID else None


def _ends(links: str) -> dict[str, frozenset[pci_address.PciAddress]]:
    """Uuid of a GPU -> what its links end at."""
    found: dict[str, set[pci_address.PciAddress]] = {}
    here: set[pci_address.PciAddress] = set()
    for line in links.splitlines():
        gpu = _GPU.fullmatch(line)
        link = _LINK.fullmatch(line)
        if gpu is not None:
            here = found.setdefault(gpu['uuid'], set())
        elif link is not None:
            try:
                here.add(_address(link['peer']))
            except exceptions.InvalidName:
                continue
    return {uuid: frozenset(peers) for uuid, peers in found.items()}


def _address(text: str) -> pci_address.PciAddress:
    """:raises InvalidName: it is no address"""
    return pci_address.PciAddress.parse(text)
