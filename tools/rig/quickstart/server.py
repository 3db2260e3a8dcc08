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

"""A server of the quickstart, which is shown and checked."""

import collections
import dataclasses
import time
from typing import Any

from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model.profiles import device_profile
from nova_accel.testing import hostdev
from rig.loopback import cloud as cloud_module
from rig.quickstart import candidates
from rig.quickstart import hardware as quickstart_hardware
from rig.quickstart import report as quickstart_report

#: The longest wait for a server, as polls and the seconds between them.
_POLLS = 300
_POLL_S = 0.2


@dataclasses.dataclass(frozen=True)
class Wish:
    """A device profile with one group for each kind, one unit of each."""

    name: str
    kinds: tuple[quickstart_hardware.Kind, ...]
    flavor_key: str = device_profile.FLAVOR_KEY

    @property
    def groups(self) -> list[dict[str, str]]:
        return [kind.group for kind in self.kinds]

    @property
    def resources(self) -> collections.Counter[str]:
        """Resource class -> units of the whole profile."""
        return collections.Counter(kind.resource_class for kind in self.kinds)


class Server:
    """A server with the accelerators of a wish.

    :ivar devices: of its domain: PCI addresses, uuids of mediated devices
    :ivar arq_uuids: of its accelerator requests
    """

    def __init__(
        self,
        cloud: cloud_module.Cloud,
        report: quickstart_report.Report,
        wish: Wish,
    ) -> None:
        self._cloud = cloud
        self._report = report
        self._candidates: list[tuple[str, ...]] = []
        self.wish = wish
        self._old_wish: Wish | None = None
        self.name = f'server-{wish.name}'
        self.id = self._status = ''
        self.devices: list[str] = []
        self.arq_uuids: list[str] = []

    @property
    def mdevs(self) -> list[str]:
        """The uuids of its mediated devices."""
        return [device for device in self.devices if ':' not in device]

    @property
    def wanted(self) -> collections.Counter[str]:
        """Resource class -> units that the server must have at the moment."""
        old = self._old_wish.resources if self._old_wish else {}
        return self.wish.resources + collections.Counter(old)

    def show_candidates(self, expected: int, wish: Wish | None = None) -> None:
        """Show Placement's allocation candidates for a profile's groups.

        :param wish: the profile; by default the server's own
        """
        wish = wish or self.wish
        self._candidates = candidates.ask(
            self._cloud.placement, device_profile.parse_groups(wish.groups)
        )
        names = self._cloud.provider_names()
        self._report.rows(
            'allocation candidates',
            [f'group {number}' for number in range(len(wish.kinds))],
            [
                [names[uuid] for uuid in candidate]
                for candidate in self._candidates
            ],
        )
        self._report.check(
            'number of allocation candidates', expected, len(self._candidates)
        )

    def boot(self, flavor: str) -> None:
        """Boot the server through the compute API.

        :raises RuntimeError: the server has a fault, so there is nothing to
            show.
        """
        server = self._create(flavor)
        self._report.check(
            f'status of {self.name}', 'ACTIVE', server['status']
        )
        if 'fault' in server:
            raise RuntimeError(
                f'{self.name} does not run: {server["fault"]["message"]}'
            )

    def fail(self, flavor: str) -> str:
        """Try to boot the server, which must fail.

        :returns: the fault that its owner is shown
        """
        server = self._create(flavor)
        self._report.check(f'status of {self.name}', 'ERROR', server['status'])
        return str(server.get('fault', {}).get('message', ''))

    def reboot(self) -> None:
        self._cloud.api.post_server_action(
            self.id, {'reboot': {'type': 'HARD'}}
        )
        self._check_status('ACTIVE')

    def _check_status(self, expected: str) -> None:
        self._report.check(
            f'status of {self.name}',
            expected,
            self._settled(expected)['status'],
        )

    def resize(self, flavor: str, wish: Wish) -> None:
        """Resize the server, which then has old and new accelerators."""
        self._cloud.api.post_server_action(
            self.id, {'resize': {'flavorRef': flavor}}
        )
        self._check_status('VERIFY_RESIZE')
        self.wish, self._old_wish = wish, self.wish

    def confirm(self) -> None:
        """Confirm the resize, and wait until the migration holds nothing."""
        (migration,) = self._cloud.admin_api.api_get(
            f'/os-migrations?instance_uuid={self.id}'
        ).body['migrations']
        self._cloud.api.post_server_action(self.id, {'confirmResize': None})
        self._check_status('ACTIVE')
        self._wait_until_free(migration['uuid'])
        self._old_wish = None

    def delete(self) -> None:
        self._cloud.api.delete_server(self.id)
        self._cloud._wait_until_deleted(
            {'id': self.id, 'status': self._status}
        )
        self._wait_until_free(self.id)

    def _wait_until_free(self, consumer: str) -> None:
        """Nova frees allocations last, when the server's status is final."""
        for _poll in range(_POLLS):
            if not self._allocations(consumer):
                break
            time.sleep(_POLL_S)

    def show_accelerators(self) -> None:
        """Show the provider of each group, the ARQs and their handles."""
        arqs = sorted(
            self._cloud.arqs({'id': self.id}),
            key=lambda one: one['device_profile_group_id'],
        )
        self.arq_uuids = [one['uuid'] for one in arqs]
        names = self._cloud.provider_names()
        self._report.rows(
            'accelerator requests',
            ('group', 'provider', 'ARQ', 'state', 'attach handle'),
            [
                (
                    one['device_profile_group_id'],
                    names[one['device_rp_uuid']],
                    one['uuid'],
                    one['state'],
                    one['attach_handle_type'],
                )
                for one in arqs
            ],
        )
        self._report.check(
            'group, state and attach handle of each ARQ',
            [
                (number, arq_types.State.BOUND, kind.handle_type)
                for number, kind in enumerate(self.wish.kinds)
            ],
            [
                (
                    one['device_profile_group_id'],
                    one['state'],
                    one['attach_handle_type'],
                )
                for one in arqs
            ],
        )
        chosen = tuple(one['device_rp_uuid'] for one in arqs)
        self._report.check(
            'the providers are a candidate of before',
            True,
            chosen in self._candidates,
        )
        self._check_allocations(chosen)

    def _check_allocations(self, chosen: tuple[str, ...]) -> None:
        expected: dict[str, dict[str, int]] = collections.defaultdict(dict)
        for kind, provider in zip(self.wish.kinds, chosen, strict=False):
            amounts = expected[provider]
            amounts[kind.resource_class] = (
                amounts.get(kind.resource_class, 0) + 1
            )
        names = self._cloud.provider_names()
        self._report.check(
            'allocations of accelerators in Placement',
            dict(expected),
            {
                uuid: allocation['resources']
                for uuid, allocation in self._allocations(self.id).items()
                if uuid in names
            },
        )

    def _allocations(self, consumer: str) -> dict[str, Any]:
        allocations: dict[str, Any] = self._cloud.placement.get(
            f'/allocations/{consumer}', version='1.28'
        ).body['allocations']
        return allocations

    def show_hostdevs(
        self, hostname: str, hardware: quickstart_hardware.Hardware
    ) -> None:
        """Show the ``<hostdev>`` elements; compare each with the hardware."""
        elements = self._cloud.hostdevs({'id': self.id})
        self.devices = [hostdev.identity(element) for element in elements]
        self._report.line('<hostdev> elements of the domain:')
        for element in elements:
            self._report.line(f'  {hostdev.text(element)}')
        self._report.fact(
            'hostdevs', [hostdev.text(element) for element in elements]
        )
        self._report.check(
            'hardware in the domain',
            sorted(kind.name for kind in self.wish.kinds),
            sorted(
                hardware.kind_of(device, self._cloud.mdevs(hostname))
                for device in self.devices
            ),
        )
        handles = [
            attach_handle.from_dict(
                {
                    'uuid': one['attach_handle_uuid'],
                    'type': one['attach_handle_type'],
                    'info': one['attach_handle_info'],
                }
            )
            for one in self._cloud.arqs({'id': self.id})
        ]
        self._report.check(
            'the attach handles of the ARQs are what the domain has',
            sorted(
                handle.uuid if handle.mdev_type else str(handle.address)
                for handle in handles
            ),
            sorted(self.devices),
        )

    def _create(self, flavor: str) -> dict[str, Any]:
        self.id = self._cloud.api.post_server(
            {
                'server': {
                    'name': self.name,
                    'flavorRef': flavor,
                    'networks': 'none',
                    'imageRef': self._cloud.image_id,
                }
            }
        )['id']
        server = self._settled()
        self._report.line(f'{self.name} {self.id} is {self._status}')
        if 'fault' in server:
            self._report.line(f'fault: {server["fault"]["message"]}')
        self._report.fact(
            'server',
            {key: server.get(key) for key in ('id', 'name', 'status')},
        )
        return server

    def _settled(self, expected: str = 'ACTIVE') -> dict[str, Any]:
        """The server, once no task of it is under way.

        :param expected: its status then, unless it has a fault
        """
        for _poll in range(_POLLS):
            server: dict[str, Any] = self._cloud.admin_api.get_server(self.id)
            # Nova records the fault after the status.
            if server['OS-EXT-STS:task_state'] is None and (
                server['status'] == expected or 'fault' in server
            ):
                break
            time.sleep(_POLL_S)
        self._status = server['status']
        return server
