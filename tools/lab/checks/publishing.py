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

"""The devices of the hosts are in Placement, as they are."""

from lab import compute_host
from lab import mariadb
from lab import processes
from lab.checks import cloud
from lab.checks import registry

#: Of each host: units by resource class, and a trait that comes with it.
_DEVICES = {
    'VGPU': (4, 'CUSTOM_VGPU_NVIDIA_A100_PCIE_40GB'),
    'FPGA': (1, 'CUSTOM_FPGA_XILINX_ALVEO_U200'),
    'CUSTOM_NIC': (2, 'CUSTOM_NIC_INTEL_700_SERIES_VIRTUAL_FUNCTION'),
    'CUSTOM_QAT': (2, 'CUSTOM_QAT_INTEL_C62X_VF'),
}

#: What the second host has beside.
_SSD = {'CUSTOM_SSD': (1, 'CUSTOM_SSD_SAMSUNG_PM173X')}

_WANTED = {'lab-a': _DEVICES, 'lab-b': {**_DEVICES, **_SSD}}


@registry.check('e2e')
def providers(evidence: registry.Evidence) -> None:
    """Each device of a host is a resource provider below its node."""
    for host in compute_host.HOSTS:
        # The last report may be of a time when a check had a device in use.
        registry.expect_soon(
            host.name,
            lambda host=host: _published(host.name),
            _WANTED[host.name],
            seconds=90,
        )
        for name, class_, units, _traits in cloud.accelerators_of(host.name):
            evidence(f'{name}: {units} {class_}')


@registry.check('e2e', quick=False)
def restart(evidence: registry.Evidence) -> None:
    """A restart of nova-compute leaves the providers as they are."""
    host = compute_host.HOSTS[0]
    before = _uuids()
    processes.kill(host.service)
    host.start_compute()
    for _time in range(2):
        # Placement has what the report before said.
        last = _reported_at(host)
        processes.wait_for(
            'a report of the host',
            90,
            lambda last=last: _reported_at(host) != last,
        )
    registry.expect(_uuids() == before, 'they are others now')
    evidence(f'{len(before)} providers, the same as before')


def _published(host_name: str) -> dict[str, tuple[int, str]]:
    """As in ``_WANTED``; all traits where a wanted one lacks."""
    wanted = _WANTED[host_name]
    published = {}
    for _name, class_, units, traits in cloud.accelerators_of(host_name):
        _units, trait = wanted.get(class_, (0, ''))
        both = {trait, 'CUSTOM_NOVA_ACCEL'} <= traits
        published[class_] = (units, trait if both else f'{sorted(traits)}')
    return published


def _reported_at(host: compute_host.ComputeHost) -> str:
    """When the host has reported its devices the last time."""
    rows = mariadb.query(
        'SELECT hostname, reported_at FROM hosts', 'nova_accel'
    )
    return dict(row.split('\t') for row in rows.splitlines())[host.name]


def _uuids() -> set[str]:
    return {
        provider['uuid']
        for provider in cloud.show('resource', 'provider', 'list')
    }
