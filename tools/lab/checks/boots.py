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

"""The guest of a server with accelerators, on hosts that cannot start one.

Their devices are made up, so that everything happens but the last step: QEMU
finds no device. Nova has to try the other host, say why, and leave nothing.
"""

import re
import time

from lab import compute_host
from lab import processes
from lab.checks import cloud
from lab.checks import registry

GPU = (
    'lab-gpu',
    'resources:VGPU=1,trait:CUSTOM_VGPU_NVIDIA_A100_PCIE_40GB=required',
)
NIC = ('lab-nic', 'resources:CUSTOM_NIC=1')
FPGA = (
    'lab-fpga',
    'resources:FPGA=1,trait:CUSTOM_FPGA_XILINX_ALVEO_U200=required',
)
QAT = ('lab-qat', 'resources:CUSTOM_QAT=1')
BOTH = ('lab-both', 'resources:VGPU=1', 'resources:CUSTOM_NIC=1')

_MDEV = '<hostdev mode="subsystem" type="mdev"'
_PCI = '<hostdev mode="subsystem" type="pci"'

_XML_BEGIN = 'End _get_guest_xml xml='


@registry.check('e2e')
def plain(evidence: registry.Evidence) -> None:
    """A server without accelerators boots, and its guest runs."""
    with cloud.server(cloud.plain_flavor()) as server:
        cloud.expect_active(server)
        lines = cloud.wait_for_console(server['id'], 'LAB-GUEST-END')
        evidence(f'ACTIVE on {cloud.host(server)}')
        evidence(next(line for line in lines if 'LAB-GUEST-UP' in line))


@registry.check('e2e')
def mediated(evidence: registry.Evidence) -> None:
    """A vGPU: the mdev is made, its guest defined, and all is given back."""
    _cannot_start(evidence, GPU, (_MDEV,))


@registry.check('e2e')
def function(evidence: registry.Evidence) -> None:
    """A virtual function of a NIC goes into the XML of its guest."""
    _cannot_start(evidence, NIC, (_PCI,))


@registry.check('e2e', quick=False)
def others(evidence: registry.Evidence) -> None:
    """An FPGA and a QAT function go into the XML of their guests."""
    for groups in (FPGA, QAT):
        _cannot_start(evidence, groups, (_PCI,))


@registry.check('e2e')
def both(evidence: registry.Evidence) -> None:
    """One server with a vGPU and a NIC from one device profile."""
    _cannot_start(evidence, BOTH, (_MDEV, _PCI))


def _cannot_start(
    evidence: registry.Evidence,
    groups: tuple[str, ...],
    hostdevs: tuple[str, ...],
) -> None:
    flavor = cloud.accelerated_flavor(*groups)
    begin = {host.name: len(_log(host)) for host in compute_host.HOSTS}
    clock = time.monotonic()
    with cloud.server(flavor) as server:
        registry.expect(
            server['status'] == 'ERROR', f'it is {server["status"]}'
        )
        evidence(
            f'{flavor}: ERROR after {time.monotonic() - clock:.0f} s: '
            f'{cloud.fault(server)}'
        )
        for host in compute_host.HOSTS:
            log = _log(host)[begin[host.name] :]
            xml = _guest(log, server['id'])
            for hostdev in hostdevs:
                registry.expect(
                    hostdev in xml, f'{host.name}: no {hostdev} in\n{xml}'
                )
            evidence(f'{host.name}: {_hostdevs(xml)}')
            evidence(f'{host.name}: {_why(log)}')


def _log(host: compute_host.ComputeHost) -> str:
    return processes.log_of(host.service).read_text(errors='replace')


def _guest(log: str, uuid: str) -> str:
    """The XML of the guest of a server, as nova-compute has logged it."""
    for part in log.split(_XML_BEGIN)[1:]:
        xml = part[: part.index('</domain>')]
        if uuid in xml:
            return xml
    return ''


def _hostdevs(xml: str) -> str:
    return ' '.join(
        re.findall(
            r"<address (?:uuid=\S+|domain=[^/]+)/>",
            ''.join(re.findall(r'(?s)<hostdev.*?</hostdev>', xml)),
        )
    )


def _why(log: str) -> str:
    """What libvirt said, of the host's log."""
    said = re.search(r'libvirt\.libvirtError: (.*)', log)
    registry.expect(said, 'libvirt has said nothing')
    return said.group(1) if said else ''
