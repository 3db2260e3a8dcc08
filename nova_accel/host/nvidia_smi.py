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
so as long as a guest has it, nobody can tell its module id or its peers.

``nvidia-smi -q -x`` tells the GPUs. The module id is ``gpu_module_id``, and
``platformInfo/module_id`` since R565. ``nvidia-smi nvlink -R`` tells the other
end of each link that is up. Consumer cards have a module id, too. So a GPU is
on an NVSwitch board if a link of it ends at something that is no GPU, or if it
has a fabric state (``fabric/state``, which only Hopper and later have).
"""

from collections.abc import Iterable
import re
from typing import NamedTuple

from lxml import etree
from oslo_concurrency import processutils

from nova_accel import exceptions
from nova_accel.model import link_sets
from nova_accel.model import pci_address

#: How long one command may take. It may have to wake GPUs up.
TIMEOUT_S = 60

#: The longest answer that is read, in characters. Each GPU takes about 50,000.
MAX_ANSWER = 16 * 2**20

_COMMAND = 'nvidia-smi'

_GPU = re.compile(r'GPU [0-9]+: .*\(UUID: (?P<uuid>[^)]+)\)\s*')
_LINK = re.compile(
    r'\s+Link [0-9]+: Remote Device (?P<peer>[0-9A-Fa-f:.]+): Link [0-9]+\s*'
)


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


def gpus() -> tuple[Gpu, ...]:
    """All GPUs that NVIDIA's driver has now.

    It takes seconds.

    :raises DeviceError: the command fails, or its answer is unusable.
    """
    return parsed(_run('-q', '-x'), _run('nvlink', '-R'))


def _run(*arguments: str) -> str:
    """:raises DeviceError: it fails, or its answer is too long"""
    called = ' '.join((_COMMAND, *arguments))
    try:
        # It also ends the command's children.
        answer, _errors = processutils.execute(
            'timeout', '--kill-after=10', str(TIMEOUT_S), _COMMAND, *arguments
        )
    except processutils.ProcessExecutionError as error:
        output = (error.stderr or error.stdout or '').strip()
        raise exceptions.DeviceError(
            f'{called} has failed: exit status {error.exit_code}, '
            f'{output[-500:]}'
        ) from error
    except OSError as error:
        raise exceptions.DeviceError(
            f'{called} has failed: {error}'
        ) from error
    if len(answer) > MAX_ANSWER:
        raise exceptions.DeviceError(
            f'{called} answers with {len(answer)} characters'
        )
    return str(answer)


def parsed(xml: str, links: str) -> tuple[Gpu, ...]:
    """The GPUs of the answers of ``-q -x`` and ``nvlink -R``.

    :raises DeviceError: the XML is none. A GPU that it tells wrongly is left
        out.
    """
    try:
        root = etree.fromstring(
            xml.encode(),
            etree.XMLParser(
                resolve_entities=False, no_network=True, load_dtd=False
            ),
        )
    except etree.XMLSyntaxError as error:
        raise exceptions.DeviceError(
            f'{_COMMAND} -q -x answers with no XML: {error}'
        ) from error
    addresses = {}
    for gpu in root.iterfind('gpu'):
        try:
            addresses[gpu] = _address(gpu.get('id', ''))
        except exceptions.InvalidName:
            continue
    ends = _ends(links)
    return tuple(
        _gpu(gpu, address, ends, frozenset(addresses.values()))
        for gpu, address in addresses.items()
    )


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
        or _text(gpu, ['fabric/state']) not in ('', 'N/A'),
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
