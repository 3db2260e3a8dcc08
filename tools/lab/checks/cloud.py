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

"""The cloud as its operator sees it: ``openstack`` commands."""

from collections.abc import Iterator
from concurrent import futures
import contextlib
import itertools
import json
import os
from typing import Any

from lab import glance
from lab import processes
from lab.checks import openstack_command
from lab.checks import registry

#: Of a busy machine whose QEMU emulates KVM.
_TIMEOUT_S = 900


class CommandFailed(registry.Failed):
    """A command ended with an error."""


def openstack(*words: str, environment: dict[str, str] | None = None) -> str:
    """Run a command.

    :returns: what it printed
    :raises CommandFailed: it failed; the message is its own.
    """
    done = _run(words, environment)
    if done.returncode:
        raise CommandFailed((done.stderr or done.stdout).strip())
    return done.stdout


def show(*words: str, environment: dict[str, str] | None = None) -> Any:
    """Run a command that shows something.

    :returns: what it shows, a dict or a list of dicts
    """
    return json.loads(openstack(*words, '-f', 'json', environment=environment))


def outcome(*words: str) -> tuple[int, Any]:
    """Run a command that shows something, and may say that it is not enough.

    :returns: its exit status, and what it shows
    :raises CommandFailed: it shows nothing.
    """
    done = _run((*words, '-f', 'json'), None)
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        raise CommandFailed((done.stderr or done.stdout).strip()) from None


def succeeds(*words: str) -> bool:
    """Run a command that may fail."""
    return _run(words, None).returncode == 0


def refusal(*words: str) -> str:
    """What a command that must fail says."""
    try:
        said = openstack(*words)
    except CommandFailed as error:
        return str(error)
    raise registry.Failed(f'{" ".join(words)}: not refused: {said}')


def profile(name: str, *groups: str) -> None:
    """Make a device profile, if it is not there.

    :param groups: such as ``resources:VGPU=1,trait:CUSTOM_A=required``
    """
    if name not in _names('accelerator', 'device', 'profile'):
        openstack(
            'accelerator',
            'device',
            'profile',
            'create',
            name,
            *(word for group in groups for word in ('--group', group)),
        )


def flavor(name: str, **extra_specs: str) -> None:
    """Make a flavor with 256 MiB and a disk of 1 GiB, if it is not there.

    :param extra_specs: underscores of the names stand for colons
    """
    if name not in _names('flavor'):
        openstack(
            'flavor',
            'create',
            '--ram',
            '256',
            '--disk',
            '1',
            '--vcpus',
            '1',
            *(
                word
                for key, value in extra_specs.items()
                for word in ('--property', f'{key}={value}')
            ),
            name,
        )


def accelerated_flavor(
    name: str, *groups: str, key: str = 'nova_accel:device_profile'
) -> str:
    """Make a flavor, and its device profile of the same name.

    :returns: the name
    """
    profile(name, *groups)
    flavor(name, **{key: name})
    return name


def forget_flavors(*ends: str) -> None:
    """Delete the accelerated flavors whose names end so, with the profiles."""
    for kind in (('flavor',), ('accelerator', 'device', 'profile')):
        for name in _names(*kind):
            if name.endswith(ends):
                openstack(*kind, 'delete', name)


def plain_flavor() -> str:
    """The name of a flavor without accelerators, made if it is not there."""
    flavor('lab-plain')
    return 'lab-plain'


@contextlib.contextmanager
def server(
    flavor_name: str, *words: str, name: str = 'lab-server', wait: bool = True
) -> Iterator[dict[str, Any]]:
    """A server, deleted at the end.

    :param words: more of the command, such as ``--host``, ``lab-a``
    :param wait: until it is ACTIVE or ERROR; neither is a failure here
    """
    created = create_server(flavor_name, *words, name=name)
    try:
        yield wait_for_server(created['id']) if wait else created
    finally:
        delete_servers(created['id'])


def create_server(
    flavor_name: str, *words: str, name: str = 'lab-server'
) -> dict[str, Any]:
    return show(
        'server',
        'create',
        '--flavor',
        flavor_name,
        '--image',
        glance.IMAGE,
        '--nic',
        'none',
        *words,
        name,
    )


def delete_servers(*ids: str) -> None:
    """Delete servers, and wait until they are gone."""
    openstack('server', 'delete', '--wait', *ids)


def show_server(id_: str) -> dict[str, Any]:
    return show('server', 'show', id_)


def wait_for_server(
    id_: str,
    statuses: tuple[str, ...] = ('ACTIVE', 'ERROR'),
    seconds: float = _TIMEOUT_S,
) -> dict[str, Any]:
    """Wait until it has one of the statuses, and nothing goes on.

    :raises LabError: it has not after so many seconds.
    """
    found: dict[str, Any] = {}

    def settled() -> bool:
        found.update(show_server(id_))
        return (
            found['status'] in statuses
            and found['OS-EXT-STS:task_state'] is None
        )

    processes.wait_for(
        f'server {id_}: {" or ".join(statuses)}', seconds, settled, interval=1
    )
    return found


def expect_active(server: dict[str, Any]) -> None:
    registry.expect(
        server['status'] == 'ACTIVE',
        f'server {server["id"]} is {server["status"]}: {fault(server)}',
    )


def fault(server: dict[str, Any]) -> str:
    """Why a server is ERROR."""
    return (server.get('fault') or {}).get('message', '')


def wait_for_compute(name: str, state: str = 'up') -> None:
    """Wait until the nova-compute of a host is up, or down."""

    def reached() -> bool:
        return any(
            service['Host'] == name and service['State'] == state
            for service in show(
                'compute', 'service', 'list', '--service', 'nova-compute'
            )
        )

    processes.wait_for(
        f'nova-compute on {name}: {state}', 300, reached, interval=0.5
    )


def accelerators_of(host_name: str) -> list[tuple[str, str, int, set[str]]]:
    """The resource providers of a host's accelerators.

    :returns: of each its name, resource class, units and traits
    """

    def contents(
        provider: dict[str, Any],
    ) -> list[tuple[str, str, int, set[str]]]:
        of_provider = ('resource', 'provider')
        # There is none yet when the provider has just been made.
        inventories = show(*of_provider, 'inventory', 'list', provider['uuid'])
        traits = {
            trait['name']
            for trait in show(*of_provider, 'trait', 'list', provider['uuid'])
        }
        return [
            (
                provider['name'],
                inventory['resource_class'],
                inventory['total'],
                traits,
            )
            for inventory in inventories
        ]

    with futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(
            itertools.chain.from_iterable(
                pool.map(contents, _providers_of(host_name))
            )
        )


def reserved_of(host_name: str) -> int:
    """How many units of a host's accelerators no one can be given."""
    return sum(
        inventory['reserved']
        for provider in _providers_of(host_name)
        for inventory in show(
            'resource', 'provider', 'inventory', 'list', provider['uuid']
        )
    )


def host(server: dict[str, Any]) -> str | None:
    """The host that a server is on."""
    return server['OS-EXT-SRV-ATTR:host']


def console(id_: str) -> str:
    """What a server's guest has printed."""
    return openstack('console', 'log', 'show', id_)


def wait_for_console(
    id_: str, text: str, seconds: float = _TIMEOUT_S
) -> list[str]:
    """Wait until a guest has printed something.

    :returns: the lines of its console
    """
    lines: list[str] = []

    def printed() -> bool:
        lines[:] = console(id_).splitlines()
        return any(text in line for line in lines)

    processes.wait_for(
        f'{text} of the guest of server {id_}', seconds, printed, interval=1
    )
    return lines


def _providers_of(host_name: str) -> list[dict[str, Any]]:
    return [
        provider
        for provider in show('resource', 'provider', 'list')
        if provider['name'].startswith(f'{host_name}_accel_')
    ]


def _names(*kind: str) -> list[str]:
    return [
        found.get('name') or found['Name'] for found in show(*kind, 'list')
    ]


def _run(
    words: tuple[str, ...],
    environment: dict[str, str] | None,
) -> openstack_command.Result:
    try:
        return openstack_command.run(
            words, {**os.environ, **(environment or {})}, _TIMEOUT_S
        )
    except TimeoutError:
        raise CommandFailed(
            f'{" ".join(words)}: no end after {_TIMEOUT_S} s'
        ) from None
