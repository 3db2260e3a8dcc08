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

"""The manual is walked, from the installation to a server with a vGPU.

``lab up`` follows the files that the pages show: the databases, endpoints and
configuration of each service are made of them. Here each command of the pages
is typed, in their order. Only what a page gives as an example is replaced.
"""

from collections.abc import Callable
import re
import subprocess

from lab import configuration
from lab import glance
from lab import settings
from lab.checks import cloud
from lab.checks import real_servers
from lab.checks import registry
from lab.device_vm import hardware
from lab.device_vm import machine
from rig import typed_commands

_INSTALLATION = ('install/index', 'install/services')
_DEVICE = 'admin/vgpu'
_USE = 'user/servers'

_FLAVOR, _PROFILE = 'vgpu.small', 'vgpu-small'

_SMALL = '--vcpus 1 --ram 256 --disk 1'

_SEEN = {'mediated device': hardware.MDEV}

#: Example of a page -> what the lab has.
_EXAMPLES = {
    '--vcpus 4 --ram 16384 --disk 40': _SMALL,
    '--network <network>': '--nic none',
    '--network NET': '--nic none',
    '<image>': glance.IMAGE,
    'IMAGE': glance.IMAGE,
    '<flavor>': _FLAVOR,
    '<server>': 'my-server',
    'HOST': machine.A.name,
    '0000:84:00.0': hardware.GPU_ADDRESS,
    'nvidia-222': hardware.MDEV_TYPES[0],
    'CUSTOM_NVIDIA_1EB8_NVIDIA_223': 'CUSTOM_1234_11E8_LABGPU_1',
}

#: File that a page shows -> what of the lab follows it.
_FOLLOWED = {
    'snippets/database.sh': 'lab.accelerator',
    'snippets/endpoints.sh': 'lab.accelerator',
    'snippets/nova-api.ini': 'lab.nova',
    'snippets/nova-compute.conf': 'lab.checks.real_servers',
    'snippets/nova-database.conf': 'lab.nova',
    'snippets/nova-scheduler-compat.conf': 'lab.nova',
    'snippets/nova-scheduler.conf': 'lab.nova',
    'snippets/placement.conf': 'lab.placement',
    'snippets/tables.sh': 'lab.accelerator',
    '../../../etc/nova_accel/nova-accel-api-uwsgi.ini': 'lab.accelerator',
}

#: Beginning of a command -> why it is not typed here.
_NOT_TYPED = {
    'pip install': 'the environment of the lab has the package',
    '/usr/lib/nvidia/sriov-manage': "NVIDIA's driver has it",
    'cat /sys/bus/pci/devices/': "for NVIDIA's functions with a type",
    'lspci': 'the guest lists its devices by itself',
    'nvidia-smi': "NVIDIA's driver has it",
}

#: Makes it an error that the API refuses what is asked for.
_CURL = 'curl() { command curl -sS --fail-with-body "$@"; }'

_FILE = re.compile(r'\.\. literalinclude:: (.+)')


@real_servers.check('manual')
def walk(evidence: registry.Evidence) -> None:
    """The manual leads from its installation page to servers with vGPUs."""
    walker = _Walker(evidence)
    try:
        for page in _INSTALLATION:
            walker.follow(page)
        walker.follow(_DEVICE)
        walker.end_with('vgpu-server')
        walker.follow(_USE)
        walker.end_with('my-server')
    finally:
        _clean_up()
    left = _NOT_TYPED.keys() - walker.not_typed
    registry.expect(not left, f'no page has {sorted(left)}')


class _Walker:
    """A reader who types what the manual says.

    ``not_typed`` has the keys of ``_NOT_TYPED`` that were met.
    """

    def __init__(self, evidence: registry.Evidence) -> None:
        self._evidence = evidence
        self._exports: list[str] = []
        self.not_typed: set[str] = set()

    def follow(self, page: str) -> None:
        """Type each command of a page.

        :raises Failed: one ends with an error, or the lab does not follow a
            file of the page.
        """
        text = configuration.page(page)
        for file in _FILE.findall(text):
            registry.expect(
                file in _FOLLOWED, f'{page}: nothing follows {file}'
            )
            self._evidence(f'{page}: {_FOLLOWED[file]} follows {file}')
        for prompt, command in typed_commands.of_page(text):
            for begin, why in _NOT_TYPED.items():
                if command.startswith(begin):
                    self.not_typed.add(begin)
                    self._evidence(f'{page}: not typed: {command} ({why})')
                    break
            else:
                self._type(page, prompt, command)

    def end_with(self, name: str) -> None:
        """The server's guest has its vGPU, and the server is deleted."""
        server = cloud.show_server(name)
        cloud.expect_active(server)
        real_servers.RealServer(server['id'], self._evidence).sees(_SEEN)
        cloud.delete_servers(server['id'])

    def _type(self, page: str, prompt: str, command: str) -> None:
        typed = _with_values(command)
        if prompt == '#':
            said = machine.A.run(typed)
        elif typed.startswith('export '):
            self._exports.append(typed)
            said = ''
        else:
            said = self._run(page, typed)
        answer = said.strip().splitlines()
        self._evidence(f'{page}: {prompt} {typed}')
        self._evidence(f'    {" / ".join(answer)[:200]}')

    def _run(self, page: str, typed: str) -> str:
        done = subprocess.run(
            ['bash', '-e', '-o', 'pipefail', '-s'],
            input='\n'.join(
                (f'PATH={settings.BIN}:$PATH', _CURL, *self._exports, typed)
            ),
            capture_output=True,
            text=True,
            timeout=real_servers.GUEST_SECONDS,
        )
        registry.expect(
            not done.returncode,
            f'{page}: {typed}: {(done.stderr or done.stdout).strip()}',
        )
        return done.stdout


def _with_values(command: str) -> str:
    command = configuration.replaced(
        configuration.replaced(command), _EXAMPLES
    )
    for example, look in _LOOKED_UP.items():
        if example in command:
            command = command.replace(example, look())
    left = typed_commands.BLANK.search(command)
    registry.expect(not left, f'{command}: the walk has no value')
    return command


def _node() -> str:
    [found] = cloud.show(
        'resource', 'provider', 'list', '--name', machine.A.name
    )
    return str(found['uuid'])


def _vgpus() -> str:
    """The provider of vGPUs, as an operator finds it by its inventory."""
    for found in cloud.show(
        'resource', 'provider', 'list', '--in-tree', _node()
    ):
        inventories = cloud.show(
            'resource', 'provider', 'inventory', 'list', found['uuid']
        )
        if any(each['resource_class'] == 'VGPU' for each in inventories):
            return str(found['uuid'])
    raise registry.Failed('no provider of the host has vGPUs')


def _profile() -> str:
    [uuid] = [
        found['uuid']
        for found in cloud.show('accelerator', 'device', 'profile', 'list')
        if found['name'] == _PROFILE
    ]
    return str(uuid)


def _server() -> str:
    return str(cloud.show_server('my-server')['id'])


_LOOKED_UP: dict[str, Callable[[], str]] = {
    'NODE_UUID': _node,
    'PROVIDER_UUID': _vgpus,
    '<profile uuid>': _profile,
    '<server uuid>': _server,
}


def _clean_up() -> None:
    """Delete what the commands have made, so that they can be typed again."""
    made = {'vgpu-server', 'my-server'}
    left = [
        found['ID']
        for found in cloud.show('server', 'list')
        if found['Name'] in made
    ]
    if left:
        cloud.delete_servers(*left)
    cloud.forget_flavors(_FLAVOR, _PROFILE)
