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

"""The steps of the quickstart, with the results that they must have.

All expectations come from the simulated hardware, and none from an answer of
the services.
"""

import collections
import math

from nova_accel.model import naming
from nova_accel.model.profiles import device_profile
from rig.loopback import cloud as cloud_module
from rig.quickstart import board
from rig.quickstart import cloud as quickstart_cloud
from rig.quickstart import hardware
from rig.quickstart import report as quickstart_report
from rig.quickstart import server as quickstart_server
from rig.quickstart import shapes

HOST = quickstart_cloud.HOST

#: The name of the profile with two groups, and of its flavor.
TWO_GROUPS = 'fpga-and-vgpu'

_COMMON_TRAITS = (naming.OWNERSHIP_TRAIT, naming.OWNER_TRAIT)


class Scenario:
    """The steps, in order, over a running cloud without hosts."""

    def __init__(
        self, cloud: cloud_module.Cloud, report: quickstart_report.Report
    ) -> None:
        self._cloud = cloud
        self._report = report
        self._hardware = hardware.Hardware()
        self._flavors: dict[str, str] = {}
        self._booted: list[quickstart_server.Server] = []

    def run(self) -> None:
        """Take all steps; differences are in the report.

        :raises Exception: a step could not be taken at all.
        """
        region = self._hardware.regions[-1]
        both = quickstart_server.Wish(
            TWO_GROUPS, (region, self._hardware.vgpu)
        )
        one = quickstart_server.Wish('one-qat', (self._hardware.qat,))
        cyborgs = quickstart_server.Wish(
            'cyborgs-vgpu',
            (self._hardware.vgpu,),
            device_profile.CYBORG_FLAVOR_KEY,
        )
        other = quickstart_server.Wish(
            'other-region', (self._hardware.regions[0],)
        )
        too_much = quickstart_server.Wish(
            'all-regions-and-vgpu',
            (region,) * region.units + (self._hardware.vgpu,),
        )
        self._show_devices()
        self._make_profiles(both, one, cyborgs, other, too_much)
        self._boot(both)
        self._boot(one)
        self._boot(cyborgs)
        self._refuse(too_much)
        self._resize(self._booted[1], other)
        self._reboot(self._booted[0])
        self._delete()
        shapes.Shapes(self._cloud, self._report).run()
        board.Board(self._cloud, self._report).run()

    def _show_devices(self) -> None:
        self._report.step(
            f'The accelerators of host {HOST}, and what they are in Placement'
        )
        self._report.rows(
            'simulated hardware',
            ('address', 'ids', 'is', 'hands out'),
            self._hardware.rows(),
        )
        self._cloud.start_accelerated_compute(HOST, self._hardware.pci_info)
        providers = self._cloud.accelerator_providers(HOST)
        names = {provider['uuid']: provider['name'] for provider in providers}
        self._report.rows(
            'resource providers',
            ('name', 'below', 'inventory', 'traits'),
            [
                (
                    provider['name'],
                    names.get(
                        provider['parent_provider_uuid'], HOST
                    ).removeprefix(f'{HOST}_accel_'),
                    _amounts(provider['inventory']),
                    sorted(set(provider['traits']).difference(_COMMON_TRAITS)),
                )
                for provider in providers
            ],
        )
        for kind in self._hardware.kinds:
            self._report.check(
                f'{kind.resource_class} of the providers of {kind.name}',
                sorted(kind.inventories),
                sorted(
                    provider['inventory'][kind.resource_class]
                    for provider in providers
                    if kind.resource_class in provider['inventory']
                    and (
                        kind.trait is None or kind.trait in provider['traits']
                    )
                ),
            )
        self._report.check(
            'each provider has also ' + ' '.join(_COMMON_TRAITS),
            [],
            [
                provider['name']
                for provider in providers
                if not set(provider['traits']).issuperset(_COMMON_TRAITS)
            ],
        )
        self._check_usage()

    def _make_profiles(self, *wishes: quickstart_server.Wish) -> None:
        self._report.step('Device profiles, and flavors that name them')
        for wish in wishes:
            made = self._cloud.create_profile(wish.name, wish.groups)
            self._report.check(
                f'groups of profile {wish.name}',
                list(wish.groups),
                made['groups'],
            )
            self._flavors[wish.name] = self._cloud.create_accel_flavor(
                wish.name,
                wish.flavor_key,
                name=wish.name,
                disk=1,
                ephemeral=0,
                memory_mb=512,
                vcpu=1,
            )
        self._report.rows(
            'device profiles',
            ('name', 'group', 'asks for'),
            [
                (
                    wish.name,
                    number,
                    [f'{key}={value}' for key, value in group.items()],
                )
                for wish in wishes
                for number, group in enumerate(wish.groups)
            ],
        )

    def _boot(self, wish: quickstart_server.Wish) -> None:
        self._report.step(
            f'A server of flavor {wish.name}, by {wish.flavor_key}'
        )
        server = quickstart_server.Server(self._cloud, self._report, wish)
        server.show_candidates(self._expected_candidates(wish))
        server.boot(self._flavors[wish.name])
        server.show_accelerators()
        server.show_hostdevs(HOST, self._hardware)
        self._booted.append(server)
        self._check_handed_out()
        self._show_usage()
        self._check_usage()

    def _check_handed_out(self) -> None:
        handed_out = [one for server in self._booted for one in server.devices]
        self._report.check(
            'devices that were handed out twice',
            [],
            [
                device
                for device, times in collections.Counter(handed_out).items()
                if times > 1
            ],
        )

    def _refuse(self, wish: quickstart_server.Wish) -> None:
        self._report.step(f'A server of flavor {wish.name}, which cannot fit')
        server = quickstart_server.Server(self._cloud, self._report, wish)
        server.show_candidates(self._expected_candidates(wish))
        fault = server.fail(self._flavors[wish.name])
        named = [
            f'device profile {wish.name}',
            *(
                device_profile.requester_id(index)
                for index in range(len(wish.groups))
            ),
        ]
        self._report.check(
            'the fault names the device profile and its groups',
            named,
            [name for name in named if name in fault],
        )
        self._check_usage()
        server.delete()

    def _resize(
        self, server: quickstart_server.Server, wish: quickstart_server.Wish
    ) -> None:
        self._report.step(
            f'Resize of {server.name} to flavor {wish.name}, on the same host'
        )
        server.show_candidates(self._expected_candidates(wish), wish)
        server.resize(self._flavors[wish.name], wish)
        self._report.line('until it is confirmed it has both:')
        self._show_usage()
        self._check_usage()
        server.confirm()
        server.show_accelerators()
        server.show_hostdevs(HOST, self._hardware)
        self._check_handed_out()
        self._check_usage()

    def _reboot(self, server: quickstart_server.Server) -> None:
        self._report.step(f'Hard reboot of {server.name}')
        before = server.devices
        arqs = server.arq_uuids
        server.reboot()
        server.show_accelerators()
        server.show_hostdevs(HOST, self._hardware)
        self._report.check(
            'devices as before', sorted(before), sorted(server.devices)
        )
        self._report.check('ARQs as before', arqs, server.arq_uuids)
        self._check_usage()

    def _delete(self) -> None:
        self._report.step('All servers deleted')
        while self._booted:
            self._booted.pop().delete()
        self._show_usage()
        self._check_usage()
        handles = self._cloud.attach_handles()
        self._report.check(
            'free attach handles in the companion database',
            sum(kind.units for kind in self._hardware.kinds),
            list(handles.values()).count(None),
        )
        self._report.check(
            'ARQs, attach handles, mediated devices, journal entries and '
            'usages that are left',
            [],
            self._cloud.leftovers(),
        )

    def _expected_candidates(self, wish: quickstart_server.Wish) -> int:
        held = collections.Counter(
            kind.name for server in self._booted for kind in server.wish.kinds
        )
        wanted = collections.Counter(kind.name for kind in wish.kinds)
        return math.prod(
            kind.choices(held[kind.name], wanted[kind.name])
            for kind in self._hardware.kinds
        )

    def _check_usage(self) -> None:
        """Compare the usage in Placement and on the host with the servers."""
        wanted: collections.Counter[str] = collections.Counter(
            {kind.resource_class: 0 for kind in self._hardware.kinds}
        )
        for server in self._booted:
            wanted.update(server.wanted)
        used: collections.Counter[str] = collections.Counter()
        for provider in self._cloud.accelerator_providers(HOST):
            used.update(provider['usage'])
        self._report.check('usage in Placement', dict(wanted), dict(used))
        self._report.check(
            'mediated devices on the host',
            sorted(
                device for server in self._booted for device in server.mdevs
            ),
            sorted(self._cloud.mdevs(HOST)),
        )

    def _show_usage(self) -> None:
        self._report.rows(
            'usage',
            ('provider', 'inventory', 'used'),
            [
                (
                    provider['name'],
                    _amounts(provider['inventory']),
                    _amounts(provider['usage']),
                )
                for provider in self._cloud.accelerator_providers(HOST)
                if provider['inventory']
            ],
        )


def _amounts(amounts: dict[str, int]) -> str:
    return (
        ' '.join(
            f'{name}:{amount}' for name, amount in sorted(amounts.items())
        )
        or '-'
    )
