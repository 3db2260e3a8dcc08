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

"""Devices of the device VM: published, in guests, and given back."""

from lab.checks import cloud
from lab.checks import real_servers
from lab.checks import registry
from lab.device_vm import compute
from lab.device_vm import hardware
from lab.device_vm import machine

#: What Placement has of the machine: class, units, a trait.
_PUBLISHED = {
    ('VGPU', 24, 'CUSTOM_1234_11E8_LABGPU_1'),
    ('CUSTOM_NIC', 2, 'CUSTOM_NIC_INTEL_10CA'),
    ('CUSTOM_NIC', 2, 'CUSTOM_NIC_INTEL_10D3'),
    ('CUSTOM_SSD', 2, 'CUSTOM_SSD_1B36_0010'),
    ('FPGA', 1, 'CUSTOM_FPGA_1B36_0005'),
}

_WHOLE = ('lab-vm-compat',
          'resources:CUSTOM_NIC=1,trait:CUSTOM_NIC_INTEL_10D3=required')
_WHOLE_SEEN = {'e1000e, a whole function': hardware.E1000E}

_KILL = f'''
cd {real_servers.JOURNAL}
until find . -path "./{real_servers.HOST}/*.json" | grep -q .; do
    sleep 0.05
done
head -c 300 {real_servers.HOST}/*.json
'''


@real_servers.check('devices')
def publishing(evidence: registry.Evidence) -> None:
    """The machine's devices are found and published."""
    registry.expect_soon('what is published', _published, _PUBLISHED,
                         seconds=120)
    for class_, units, trait in sorted(_PUBLISHED):
        evidence(f'{units} {class_}, {trait}')


def _published() -> set[tuple[str, int, str]]:
    """As ``_PUBLISHED``; all traits where none of the wanted ones is."""
    wanted = {trait for _class, _units, trait in _PUBLISHED}
    return {(class_, units, next(iter(wanted & traits), f'{sorted(traits)}'))
            for _name, class_, units, traits
            in cloud.accelerators_of(real_servers.HOST)}


@real_servers.check('devices')
def passthrough(evidence: registry.Evidence) -> None:
    """A guest sees VFs, a whole function and an mdev of one device profile."""
    with real_servers.server(evidence, *real_servers.ALL) as server:
        server.sees(real_servers.ALL_SEEN)


@real_servers.check('devices')
def reboot(evidence: registry.Evidence) -> None:
    """The machine reboots; its guest comes back with its devices."""
    with real_servers.server(evidence, *real_servers.ALL) as server:
        mdevs = real_servers.mdevs()
        machine.reboot()
        real_servers.start()
        evidence('the machine has booted again')
        server.wait('ACTIVE')
        again = real_servers.mdevs()
        registry.expect(again == mdevs, f'mdevs {mdevs}, then {again}')
        evidence(f'mdev {" ".join(again)} is made again')
        server.sees(real_servers.ALL_SEEN)


@real_servers.check('devices')
def killed(evidence: registry.Evidence) -> None:
    """nova-compute dies while it starts a guest with devices."""
    with real_servers.server(
            evidence, *real_servers.ALL, wait=False) as server:
        evidence('noted when it died: ' + machine.run(_KILL, 60).strip())
        compute.kill()
        real_servers.start()
        found = cloud.wait_for_server(server.id, ('ERROR', 'ACTIVE'))
        evidence(f'then the server is {found["status"]}')


@real_servers.check('devices')
def cyborgs_key(evidence: registry.Evidence) -> None:
    """A server with Cyborg's flavor key has its device in its guest."""
    with real_servers.server(
            evidence, *_WHOLE, key='accel:device_profile') as server:
        server.sees(_WHOLE_SEEN)
