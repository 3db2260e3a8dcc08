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

"""The step of the quickstart with a server of two GPUs that NVLink joins.

A second host has an HGX board of eight GPUs and a simulated Fabric Manager. As
in the other steps, all expectations come from the simulated hardware.
"""

from collections.abc import Iterator
from collections.abc import Mapping
from typing import Any

import fixtures
from lxml import etree

from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.testing import devices
from nova_accel.testing import fabric_manager
from nova_accel.testing import hgx_host
from nova_accel.testing import hostdev
from rig.loopback import cloud as cloud_module
from rig.quickstart import cloud as quickstart_cloud
from rig.quickstart import report as quickstart_report
from rig.quickstart import server as quickstart_server

HOST = 'hgx1'

_PROFILE = 'two-joined-gpus'
_GROUP = {'resources:PGPU': '2', 'accel:link': 'nvlink'}
_LINKS = 'CUSTOM_NOVA_ACCEL_'


class Board:
    """The host, its Fabric Manager and the server."""

    def __init__(
        self, cloud: cloud_module.Cloud, report: quickstart_report.Report
    ) -> None:
        self._cloud = cloud
        self._report = report
        self._hgx = hgx_host.HgxHost()
        self._daemon = fabric_manager.FabricManager()
        self._domain = etree.Element('domain')

    def run(self) -> None:
        """Take all steps; differences are in the report.

        :raises Exception: a step could not be taken at all.
        """
        self._show_devices()
        server = quickstart_server.Server(
            self._cloud, self._report, quickstart_server.Wish(_PROFILE, ())
        )
        self._boot(server)
        self._delete(server)

    def _show_devices(self) -> None:
        self._report.step(
            f'Host {HOST}: eight GPUs that NVSwitches join in partitions'
        )
        self._cloud.useFixture(self._daemon)
        self._report.rows(
            'GPUs',
            ('address', 'module', 'NUMA node', 'root complex', 'PCIe switch'),
            [
                (
                    str(gpu),
                    self._hgx.module_ids[gpu],
                    self._hgx.place(gpu).function.numa_node,
                    self._hgx.place(gpu).root,
                    str(self._hgx.place(gpu).bridges[-2]),
                )
                for gpu in self._hgx.gpus
            ],
        )
        self._show_partitions()
        self._start()
        providers = self._cloud.accelerator_providers(HOST)
        names = {provider['uuid']: provider['name'] for provider in providers}
        self._report.rows(
            'resource providers',
            ('name', 'below', 'inventory', 'links'),
            [
                (
                    _short(provider['name']),
                    _short(names.get(provider['parent_provider_uuid'], HOST)),
                    provider['inventory'].get('PGPU', '-'),
                    [
                        trait.removeprefix(_LINKS)
                        for trait in sorted(provider['traits'])
                        if trait.startswith(_LINKS)
                    ],
                )
                for provider in providers
            ],
        )
        for size in (2, 4, 8):
            trait = naming.link_trait('nvlink', size)
            self._report.check(
                f'sets of {size} GPUs in Placement',
                sum(
                    len(modules) == size
                    for modules in fabric_manager.H100.values()
                ),
                sum(trait in provider['traits'] for provider in providers),
            )

    def _start(self) -> None:
        info = devices.pci_info(gpus=0, fpgas=0, qats=0)
        self._hgx.install(info, self._cloud.sysfs)
        gpus, _cards = hgx_host.device_spec(
            pool='link',
            module_ids={
                str(gpu): number
                for gpu, number in self._hgx.module_ids.items()
            },
        )
        self._cloud.flags(host=HOST)
        self._cloud.flags(hw_machine_type='x86_64=q35', group='libvirt')
        self._cloud.start_accelerated_compute(HOST, info, [gpus])
        connection = self._cloud.connection(HOST)
        define = connection.defineXML

        def keep(xml: str) -> Any:
            # Nova's fake libvirt forgets the controllers.
            self._domain = etree.fromstring(xml)
            return define(xml)

        self._cloud.useFixture(
            fixtures.MockPatchObject(connection, 'defineXML', keep)
        )

    def _boot(self, server: quickstart_server.Server) -> None:
        self._report.step('A server of two GPUs that NVLink joins')
        self._cloud.create_profile(_PROFILE, [_GROUP])
        flavor = self._cloud.create_accel_flavor(
            _PROFILE,
            name=_PROFILE,
            disk=1,
            ephemeral=0,
            memory_mb=512,
            vcpu=2,
            extra_spec={
                'nova_accel:pci_topology': 'host',
                'hw:numa_nodes': '2',
            },
        )
        self._report.rows(
            'device profiles',
            ('name', 'group', 'asks for'),
            [(_PROFILE, 0, [f'{key}={_GROUP[key]}' for key in _GROUP])],
        )
        server.boot(flavor)
        names = self._cloud.provider_names()
        arqs = self._cloud.arqs({'id': server.id})
        self._report.rows(
            'the set that was chosen',
            ('provider', 'device'),
            [
                (
                    _short(names[arq['device_rp_uuid']]),
                    '{domain}:{bus}:{device}.{function}'.format(
                        **arq['attach_handle_info']
                    ),
                )
                for arq in arqs
            ],
        )
        self._show_partitions()
        gpus = [
            pci_address.PciAddress.parse(hostdev.identity(element))
            for element in self._domain.iterfind('devices/hostdev')
        ]
        self._report.check(
            'the active partitions are the GPUs of the guest, and no others',
            [sorted(self._hgx.module_ids[gpu] for gpu in gpus)],
            [sorted(each) for each in self._daemon.active.values()],
        )
        self._show_tree(gpus)

    def _show_partitions(self) -> None:
        active = self._daemon.active
        self._report.rows(
            "Fabric Manager's partitions",
            ('number', 'modules', 'active'),
            [
                (
                    number,
                    ' '.join(map(str, modules)),
                    'yes' if number in active else '',
                )
                for number, modules in sorted(fabric_manager.H100.items())
            ],
        )

    def _show_tree(self, gpus: list[pci_address.PciAddress]) -> None:
        """Show the way to each GPU in the guest, and compare the switches."""
        controllers = _controllers(self._domain)
        ways = [
            list(_way(element, controllers))
            for element in self._domain.iterfind('devices/hostdev')
        ]
        self._report.rows(
            "the guest's PCIe tree in the XML",
            ('on the host', 'in the guest, from its root complex down'),
            [
                (str(gpu), ' / '.join(name for name, _index in way))
                for gpu, way in zip(gpus, ways, strict=True)
            ],
        )
        on_host = {self._hgx.place(gpu).bridges[-2] for gpu in gpus}
        in_guest = {
            index
            for way in ways
            for name, index in way
            if name.startswith('pcie-switch-upstream-port')
        }
        self._report.check(
            'the PCIe switches that the GPUs share',
            len(on_host),
            len(in_guest),
        )
        nodes = {self._hgx.place(gpu).function.numa_node for gpu in gpus}
        self._report.check(
            'the cells of the guest that the GPUs are near',
            sorted(f'pcie-expander-bus on cell {node}' for node in nodes),
            sorted({way[0][0] for way in ways}),
        )

    def _delete(self, server: quickstart_server.Server) -> None:
        self._report.step('The server with two GPUs deleted')
        server.delete()
        self._report.check('active partitions', {}, self._daemon.active)
        self._report.check(
            'ARQs, attach handles, mediated devices, journal entries and '
            'usages that are left',
            [],
            self._cloud.leftovers(),
        )
        # If the cloud is kept, its servers are on the first host.
        self._cloud.flags(host=quickstart_cloud.HOST)


def _short(name: str) -> str:
    return name.removeprefix(f'{HOST}_accel_')


def _controllers(domain: etree._Element) -> dict[str, etree._Element]:
    return {
        element.get('index'): element
        for element in domain.iterfind("devices/controller[@type='pci']")
    }


def _way(
    element: etree._Element, controllers: Mapping[str, etree._Element]
) -> Iterator[tuple[str, Any]]:
    """The controllers above a device, the uppermost first.

    Each is its model and its index. ``pcie.0`` is left out.
    """
    address = element.find("address[@type='pci']")
    if address is None:
        return
    index = str(int(address.get('bus'), 16))
    above = controllers.get(index)
    if above is None or above.get('model') == 'pcie-root':
        return
    yield from _way(above, controllers)
    cell = above.findtext('target/node')
    yield (
        above.get('model') + ('' if cell is None else f' on cell {cell}'),
        index,
    )
