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

"""``openstack accelerator device drain`` and ``undrain``."""

import argparse
from collections.abc import Iterator
import json
from typing import Any
from typing import ClassVar

from keystoneauth1 import adapter as ks_adapter
from osc_lib import exceptions
from oslo_utils import uuidutils

from nova_accel import reason
from nova_accel.osc import accelerator_calls
from nova_accel.osc import published
from nova_accel.overview import printing

COLUMNS = ('Device', 'Host', 'Address', 'Model', 'Status', 'In Placement')

#: How many addresses of a host a fault names.
_MOST_TOLD = 16

_CURE = '"openstack accelerator device list" shows the devices'


class _Change(printing.Lister):
    """Changes the status of devices."""

    _action: ClassVar[str]

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'device',
            nargs='+',
            metavar='<device>',
            help=(
                'the uuid of a device; with --host its PCI address, or one '
                'without the function for all functions of a card'
            ),
        )
        parser.add_argument(
            '--host',
            metavar='<hostname>',
            help="Nova's name of the hypervisor that has the devices",
        )
        published.add_wait(parser)
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        client = accelerator_calls.client_of(self.app)
        # All are looked up first, so that a slip changes nothing.
        devices = {
            device['uuid']: device
            for device in _find(client, parsed_args.device, parsed_args.host)
        }
        for uuid in devices:
            accelerator_calls.call(
                client, 'POST', f'/devices/{uuid}/{self._action}', self.warn
            )
        behind = published.wait(
            client,
            sorted({device['hostname'] for device in devices.values()}),
            parsed_args.wait,
            self.warn,
            devices.keys(),
        )
        return COLUMNS, [
            (
                uuid,
                device['hostname'],
                _address(device),
                device['model'],
                f'{self._action}d',
                uuid not in behind,
            )
            for uuid, device in devices.items()
        ]


class Drain(_Change):
    """Disable devices: new servers get nothing of them.

    Servers keep what they have of a device until they are deleted or moved. A
    device that is named twice or is disabled already is no fault.
    """

    _action = 'disable'


class Undrain(_Change):
    """Enable devices again."""

    _action = 'enable'


def _find(
    client: ks_adapter.Adapter, names: list[str], hostname: str | None
) -> Iterator[dict[str, Any]]:
    """:raises CommandError: a name is of no device."""
    if hostname is None:
        for name in names:
            yield _of_uuid(client, name)
        return
    there = list(published.devices_of(client, hostname))
    if not there:
        raise exceptions.CommandError(
            f'Host {hostname} reports no devices, or there is none of that '
            'name: it is Nova\'s name of the hypervisor'
        )
    for name in names:
        found = [device for device in there if _is_named(device, name)]
        if not found:
            addresses = sorted({_address(device) for device in there})
            raise exceptions.CommandError(
                f'Host {hostname} has no device {name}: it has '
                f'{reason.some(addresses, _MOST_TOLD)}'
            )
        yield from found


def _of_uuid(client: ks_adapter.Adapter, name: str) -> dict[str, Any]:
    if not uuidutils.is_uuid_like(name):
        raise exceptions.CommandError(
            f'{name} is not the uuid of a device: {_CURE}. A PCI address '
            'needs --host'
        )
    try:
        found: dict[str, Any] = accelerator_calls.call(
            client, 'GET', f'/devices/{name}'
        )
    except accelerator_calls.NotFound as error:
        raise exceptions.CommandError(
            f'There is no device {name}: {_CURE}'
        ) from error
    return found


def _is_named(device: dict[str, Any], name: str) -> bool:
    """Whether it has this uuid, this address, or this one in any function."""
    address = _address(device)
    return name.lower() in (
        device['uuid'],
        address,
        address.rpartition('.')[0],
    )


def _address(device: dict[str, Any]) -> str:
    return str(json.loads(device['std_board_info'])['address'])
