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


"""The records of Nova and Placement about servers, without the services."""

import collections
from collections.abc import Mapping
import types
from typing import Any

import fixtures
from oslo_utils import uuidutils

#: Provider uuid -> resource class -> amount.
Resources = dict[str, dict[str, int]]


def _answer(status_code: int, **body: Any) -> Any:
    return types.SimpleNamespace(
        status_code=status_code, text=str(body), json=lambda: body
    )


class NovaRecords(fixtures.Fixture):
    """Instances, migrations and allocations, with the calls that read them.

    :ivar allocations: consumer uuid -> what Placement has allocated to it
    :ivar inventories: provider uuid -> resource class -> inventory
    :ivar calls: the names of the calls that were made, in that order
    :ivar fault: if it is set, all calls of Nova raise it
    """

    def _setUp(self) -> None:
        self.instances: dict[str, types.SimpleNamespace] = {}
        self.migrations: list[types.SimpleNamespace] = []
        self.allocations: dict[str, Resources] = {}
        self.inventories: dict[str, Resources] = {}
        self.calls: list[str] = []
        self.fault: Exception | None = None
        for name, fake in (
            (
                'objects.InstanceList',
                types.SimpleNamespace(
                    get_by_host=self.get_by_host,
                    get_by_filters=self.get_instances,
                ),
            ),
            (
                'objects.MigrationList',
                types.SimpleNamespace(get_by_filters=self.get_migrations),
            ),
            ('scheduler.client.report.report_client_singleton', lambda: self),
            (
                'scheduler.utils.resources_from_flavor',
                lambda _instance, flavor: flavor.resources,
            ),
        ):
            self.useFixture(fixtures.MonkeyPatch(f'nova.{name}', fake))

    def add_instance(self, host: str | None, **fields: Any) -> Any:
        """Add an instance, active unless the fields say otherwise."""
        instance = types.SimpleNamespace(
            **{
                'uuid': uuidutils.generate_uuid(),
                'project_id': 'project',
                'user_id': 'user',
                'system_metadata': {},
                'host': host,
                'vm_state': 'active',
                'task_state': None,
                'old_flavor': None,
                'numa_topology': None,
                'get_network_info': list,
                'deleted': False,
                'flavor': types.SimpleNamespace(
                    extra_specs={}, resources={'VCPU': 1}
                ),
                **fields,
            }
        )
        self.instances[instance.uuid] = instance
        return instance

    def add_migration(
        self,
        instance: Any,
        status: str,
        source: str,
        destination: str | None,
        migration_type: str = 'migration',
    ) -> None:
        self.migrations.append(
            types.SimpleNamespace(
                uuid=uuidutils.generate_uuid(),
                instance_uuid=instance.uuid,
                status=status,
                source_compute=source,
                dest_compute=destination,
                migration_type=migration_type,
                deleted=False,
            )
        )

    def get_by_host(
        self, _context: Any, host: str, expected_attrs: list[str]
    ) -> list[Any]:
        self._called('InstanceList.get_by_host')
        return [
            instance
            for instance in self.instances.values()
            if instance.host == host and not instance.deleted
        ]

    def get_instances(
        self,
        _context: Any,
        filters: Mapping[str, Any],
        expected_attrs: list[str],
    ) -> list[Any]:
        self._called('InstanceList.get_by_filters')
        return [
            instance
            for instance in self.instances.values()
            if instance.uuid in filters['uuid']
            and instance.deleted == filters['deleted']
        ]

    def get_migrations(
        self, context: Any, filters: Mapping[str, Any]
    ) -> list[Any]:
        self._called('MigrationList.get_by_filters')
        return [
            migration
            for migration in self.migrations
            if context.read_deleted == 'yes' or not migration.deleted
            if migration.uuid in filters.get('uuid', migration.uuid)
            and migration.status in filters.get('status', migration.status)
            and filters.get('host', migration.source_compute)
            in (migration.source_compute, migration.dest_compute)
            and filters.get('migration_type', migration.migration_type)
            == migration.migration_type
        ]

    def get_allocations_for_resource_provider(
        self, _context: Any, rp_uuid: str
    ) -> Any:
        self._called('allocations')
        return types.SimpleNamespace(
            allocations={
                consumer: {'resources': resources[rp_uuid]}
                for consumer, resources in self.allocations.items()
                if rp_uuid in resources
            }
        )

    def get_allocs_for_consumer(self, _context: Any, consumer: str) -> Any:
        self._called('allocations of a consumer')
        return {
            'allocations': {
                rp_uuid: {'resources': amounts}
                for rp_uuid, amounts in self.allocations.get(
                    consumer, {}
                ).items()
            },
            **(
                {
                    'consumer_generation': len(self.allocations[consumer]),
                    'project_id': 'project',
                    'user_id': 'user',
                }
                if self.allocations.get(consumer)
                else {}
            ),
        }

    def get_providers_in_tree(
        self, _context: Any, _rp_uuid: str
    ) -> list[dict[str, str]]:
        self._called('providers')
        return [{'uuid': rp_uuid} for rp_uuid in self.inventories]

    def get(self, url: str, **_options: Any) -> Any:
        """Inventories and usages of providers."""
        _empty, _collection, rp_uuid, what = url.split('/')
        self._called(what)
        if what == 'inventories':
            return _answer(
                200,
                inventories=self.inventories.get(rp_uuid, {}),
                resource_provider_generation=self._used(rp_uuid).total(),
            )
        return _answer(200, usages=dict(self._used(rp_uuid)))

    def _used(self, rp_uuid: str) -> collections.Counter[str]:
        used: collections.Counter[str] = collections.Counter()
        for resources in self.allocations.values():
            used.update(resources.get(rp_uuid, {}))
        return used

    def post(self, url: str, data: Mapping[str, Any], **_options: Any) -> Any:
        """Change inventories and allocations, if the generations are right."""
        self._called(url)
        ((consumer, wanted),) = data['allocations'].items()
        present = self.get_allocs_for_consumer(None, consumer)
        if wanted['consumer_generation'] != present.get(
            'consumer_generation'
        ) or any(
            each['resource_provider_generation'] != self._used(rp_uuid).total()
            for rp_uuid, each in data['inventories'].items()
        ):
            return _answer(409, error='placement.concurrent_update')
        for rp_uuid, each in data['inventories'].items():
            self.inventories[rp_uuid] = each['inventories']
        self.allocations[consumer] = {
            rp_uuid: each['resources']
            for rp_uuid, each in wanted['allocations'].items()
        }
        return _answer(204)

    def remove_resources_from_instance_allocation(
        self, _context: Any, consumer_uuid: str, resources: Mapping[str, Any]
    ) -> None:
        self._called('take away')
        for rp_uuid, removed in resources.items():
            assert (
                self.allocations[consumer_uuid].pop(rp_uuid)
                == removed['resources']
            )

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.fault is not None:
            raise self.fault
