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

"""Steps and questions of tests about the accelerators of a cloud."""

from collections.abc import Mapping
from collections.abc import Sequence
import pathlib
from typing import Any

from lxml import etree
from nova.tests.fixtures import libvirt
from nova.virt.libvirt import utils as libvirt_utils
import sqlalchemy as sa

from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import pci_address
from nova_accel.model.profiles import device_profile
from nova_accel.testing import hostdev
from rig.loopback import clients


class AcceleratorSteps:
    """A mixin of :class:`rig.loopback.cloud.Cloud`."""

    accelerator: clients.AcceleratorClient
    state_path: pathlib.Path
    computes: Mapping[str, Any]
    placement: Any

    def create_profile(
        self, name: str, groups: Sequence[Mapping[str, str]]
    ) -> dict[str, Any]:
        """Make a device profile through the REST API, as admin."""
        profile: dict[str, Any] = self.accelerator.post(
            '/device_profiles', [{'name': name, 'groups': list(groups)}]
        )
        return profile

    def change_profile(
        self, name: str, groups: Sequence[Mapping[str, str]]
    ) -> None:
        """Have a device profile ask for something else, as admin."""
        profile = self.accelerator.get(f'/device_profiles/{name}')[
            'device_profile'
        ]
        self.accelerator.put(
            f'/device_profiles/{profile["uuid"]}', {'groups': list(groups)}
        )

    def create_accel_flavor(
        self, profile: str, key: str = device_profile.FLAVOR_KEY, **kwargs: Any
    ) -> str:
        """Make a flavor that names the device profile.

        :param key: the extra spec that names it
        :param kwargs: as for ``InstanceHelperMixin._create_flavor``
        :returns: the flavor's id
        """
        extra_spec = {key: profile, **kwargs.pop('extra_spec', {})}
        flavor: str = self._create_flavor(  # type: ignore[attr-defined]
            extra_spec=extra_spec, **kwargs
        )
        return flavor

    def connection(self, hostname: str) -> Any:
        """Nova's fake libvirt of a host."""
        return self.computes[hostname].driver._host.get_connection()

    def hostdevs(
        self, server: Mapping[str, Any], hostname: str | None = None
    ) -> list[etree._Element]:
        """The ``<hostdev>`` elements of the server's domain.

        :param hostname: while a server moves, two hosts have its domain
        """
        return self._elements(server, 'hostdev', hostname)

    def network_devices(self, server: Mapping[str, Any]) -> list[str]:
        """The PCI functions that are interfaces of the domain, sorted."""
        return sorted(
            map(
                hostdev.identity,
                self._elements(server, 'interface[@type="hostdev"]'),
            )
        )

    def _elements(
        self, server: Mapping[str, Any], path: str, hostname: str | None = None
    ) -> list[etree._Element]:
        for name in [hostname] if hostname else self.computes:
            for domain in self.connection(name).listAllDomains(
                libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE
                | libvirt.VIR_CONNECT_LIST_DOMAINS_INACTIVE
            ):
                if domain.UUIDString() == server['id']:
                    return list(
                        etree.fromstring(domain.XMLDesc(0)).iterfind(
                            f'devices/{path}'
                        )
                    )
        raise LookupError(f'no host has a domain of server {server["id"]}')

    def arqs(self, server: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The server's ARQs, as admin sees them."""
        answer = self.accelerator.get(
            f'/accelerator_requests?instance={server["id"]}'
        )
        arqs: list[dict[str, Any]] = answer['arqs']
        return arqs

    def attach_handles(self) -> dict[str, str | None]:
        """The attach handles in the database: uuid -> uuid of its ARQ."""
        with engine.reader() as connection:
            return {
                handle.uuid: handle.arq_uuid
                for handle in connection.execute(
                    sa.select(schema.ATTACH_HANDLES)
                )
            }

    def mdevs(self, hostname: str) -> dict[str, tuple[str, str]]:
        """The host's mediated devices: uuid -> (parent's address, type)."""
        found = {}
        connection = self.connection(hostname)
        for name in list(connection.mdev_info.get_all_devices()):
            node = etree.fromstring(
                connection.nodeDeviceLookupByName(name).XMLDesc(0)
            )
            found[libvirt_utils.mdev_name2uuid(name)] = (
                str(
                    pci_address.PciAddress.parse_node_device(
                        node.findtext('parent')
                    )
                ),
                node.find('capability/type').get('id'),
            )
        return found

    def accelerator_providers(self, hostname: str) -> list[dict[str, Any]]:
        """Our providers of the host, parents first.

        Each has its name, uuid and parent, its ``inventory`` (the totals),
        ``reserved``, ``usage`` and ``traits``.
        """
        return [
            {**provider, **self._provider(provider['uuid'])}
            for provider in self._tree(hostname)
        ]

    def provider_names(self) -> dict[str, str]:
        """The names of our providers of all hosts, by uuid."""
        return {
            provider['uuid']: provider['name']
            for hostname in self.computes
            for provider in self._tree(hostname)
        }

    def _tree(self, hostname: str) -> list[dict[str, Any]]:
        root = self.placement.get(
            f'/resource_providers?name={hostname}',
            version='1.14',
        ).body['resource_providers'][0]['uuid']
        tree = self.placement.get(
            f'/resource_providers?in_tree={root}',
            version='1.14',
        ).body['resource_providers']
        return sorted(
            (
                provider
                for provider in tree
                if provider['name'].startswith(f'{hostname}_accel_')
            ),
            key=lambda provider: provider['name'],
        )

    def _provider(self, uuid: str) -> dict[str, Any]:
        inventories = self._of_provider(uuid, 'inventories')
        return {
            'inventory': {
                resource_class: inventory['total']
                for resource_class, inventory in inventories.items()
            },
            'reserved': {
                resource_class: inventory['reserved']
                for resource_class, inventory in inventories.items()
            },
            'usage': self._of_provider(uuid, 'usages'),
            'traits': sorted(self._of_provider(uuid, 'traits')),
        }

    def _of_provider(self, uuid: str, what: str) -> Any:
        return self.placement.get(
            f'/resource_providers/{uuid}/{what}', version='1.14'
        ).body[what]

    def journal_files(self) -> list[str]:
        """The names of the files in the journals of all hosts."""
        return [
            path.name
            for path in sorted(self.state_path.glob('nova_accel/*/*.json'))
        ]

    def leftovers(self) -> list[str]:
        """Everything that is still held of accelerators, with its holder.

        It should be empty after a test.
        """
        found = [f'journal {name}' for name in self.journal_files()]
        with engine.reader() as connection:
            found += [
                f'ARQ {arq.uuid} {arq.state} of {arq.instance_uuid}'
                for arq in connection.execute(sa.select(schema.ARQS))
            ]
        found += [
            f'attach handle {uuid} of ARQ {arq_uuid}'
            for uuid, arq_uuid in self.attach_handles().items()
            if arq_uuid is not None
        ]
        for hostname in self.computes:
            found += [
                f'mediated device {uuid} on {hostname}'
                for uuid in self.mdevs(hostname)
            ]
            for provider in self._tree(hostname):
                usage = self._of_provider(provider['uuid'], 'usages')
                if any(usage.values()):
                    found.append(f'usage {usage} of {provider["name"]}')
        return found

    def assert_nothing_left(self) -> None:
        """Fail if :meth:`leftovers` finds anything, and name it."""
        self.assertEqual([], self.leftovers())  # type: ignore[attr-defined]
