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

"""A cloud of many hosts that exist in the databases only.

It has Nova's SchedulerManager with Nova's filters and weighers and ours, a
real Placement, and a database of accelerators. All of them run in this
process. No nova-compute runs: its rows in each database are copies of those
of one host.
"""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import logging
from typing import Any

from nova import context as nova_context
from nova import objects
from nova import test
from nova.db.main import api as main_db
from nova.db.main import models as nova_models
from nova.scheduler import host_manager
from nova.scheduler import manager
from nova.scheduler import request_filter
from nova.scheduler import utils
import os_traits
from oslo_config import cfg
from oslo_utils import uuidutils
from placement import db_api as placement_db
from placement.db.sqlalchemy import models as placement_models
import sqlalchemy as sa

from nova_accel.db import device_profile as device_profile_db
from nova_accel.db.sql import clock
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import host_stats
from nova_accel.testing import database
from nova_accel.testing import reports
from nova_accel.testing import scheduling
from rig.benchmark import row_copies
from rig.loopback import kept_connections
from rig.serving import nova_conf

CONF = cfg.CONF

_TRAIT = 'CUSTOM_QAT_INTEL_37C9'
_GROUP = {
    'resources:CUSTOM_QAT': '1',
    f'trait:{_TRAIT}': 'required',
}
_HOST = 'compute-1'

#: Seconds for which neither Nova nor we take a host for dead.
_ALIVE_S = 86400

#: The fields of a request that nova-conductor leaves empty.
_NULL_FIELDS = (
    'availability_zone',
    'force_hosts',
    'force_nodes',
    'ignore_hosts',
    'instance_group',
    'limits',
    'numa_topology',
    'pci_requests',
    'requested_destination',
    'retry',
)

_TABLES = (
    schema.HOSTS,
    schema.DEVICES,
    schema.DEPLOYABLES,
    schema.ATTACH_HANDLES,
)


class SchedulerCloud(test.TestCase):
    """Hosts with eight interchangeable devices each.

    :param hosts: how many
    :param backend: see :class:`nova_accel.testing.database.Database`
    :ivar manager: Nova's SchedulerManager
    """

    #: The name of the device profile of the accelerated servers.
    PROFILE = 'qat'

    #: How many devices a host has.
    DEVICES = 8

    HOSTS = 1
    DATABASE = 'sqlite'

    manager: manager.SchedulerManager

    def __init__(self, hosts: int, backend: str = 'sqlite') -> None:
        super().__init__()
        self.HOSTS = hosts
        self.DATABASE = backend

    def runTest(self) -> None:
        """Not run: the benchmark only needs what setUp() makes."""

    def setUp(self) -> None:
        # A service keeps its connections, as it does to a server.
        self.useFixture(kept_connections.KeptConnections())
        super().setUp()
        # Nova's fixture has each message for debugging made, which a service
        # does not.
        logging.disable(logging.DEBUG)
        self.addCleanup(logging.disable, logging.NOTSET)
        self._configure()
        self.useFixture(database.Database(self.DATABASE))
        self._placement = self.useFixture(scheduling.Placement())
        self.manager = manager.SchedulerManager()
        self._context = nova_context.get_admin_context()
        device_profile_db.create(self.PROFILE, [_GROUP])
        self._fill()

    def _configure(self) -> None:
        self.flags(
            group='filter_scheduler',
            # Nova would read the instances of all hosts in another thread.
            track_instance_changes=False,
            available_filters=[
                'nova.scheduler.filters.all_filters',
                nova_conf.FILTER,
            ],
            enabled_filters=[
                *CONF.filter_scheduler.enabled_filters,
                nova_conf.FILTER.rpartition('.')[2],
            ],
            weight_classes=[
                'nova.scheduler.weights.all_weighers',
                nova_conf.WEIGHER,
            ],
        )
        # As by default, Nova makes no versioned notifications.
        self.flags(notification_format='unversioned', group='notifications')
        self.flags(service_down_time=_ALIVE_S)
        self.flags(host_silence_s=_ALIVE_S, group='nova_accel')

    def _fill(self) -> None:
        """Make a host in each database, and copy it."""
        host = reports.SimulatedHost(
            _HOST,
            regions=(),
            functions=self.DEVICES,
            function_traits=(_TRAIT,),
        )
        host.report()
        self._make_compute(host)
        root = self._placement.add_provider(
            _HOST,
            {'VCPU': 10_000, 'MEMORY_MB': 10_000_000, 'DISK_GB': 10_000},
            traits=[os_traits.COMPUTE_NODE, os_traits.OWNER_NOVA],
            uuid=host.node_uuid,
        )
        providers = host.layout().providers
        for provider in providers:
            self._placement.add_provider(
                provider.name,
                provider.totals,
                provider.parent or root,
                provider.traits,
                provider.uuid,
            )
        names = {
            _HOST,
            host.service_host,
            host.node_uuid,
            *(provider.name for provider in providers),
        }
        self._copy(names)
        self._copy_to_placement(names, 1 + len(providers))
        for number in range(self.HOSTS):
            name = host.service_host
            self._note_instances(
                row_copies.renamed(name, number) if number else name
            )

    def _make_compute(self, host: reports.SimulatedHost) -> None:
        with self._in_cell() as context:
            objects.Service(
                context,
                host=host.service_host,
                binary='nova-compute',
                topic='compute',
                report_count=1,
                disabled=False,
                forced_down=False,
            ).create()
            objects.ComputeNode(
                context,
                host=host.service_host,
                hypervisor_hostname=_HOST,
                uuid=host.node_uuid,
                vcpus=10_000,
                memory_mb=10_000_000,
                local_gb=10_000,
                vcpus_used=0,
                memory_mb_used=0,
                local_gb_used=0,
                free_ram_mb=10_000_000,
                free_disk_gb=10_000,
                disk_available_least=10_000,
                current_workload=0,
                running_vms=0,
                hypervisor_type='QEMU',
                hypervisor_version=8_002_002,
                host_ip='127.0.0.1',
                cpu_info='{}',
                metrics='[]',
                stats=self._stats(),
                supported_hv_specs=[],
                cpu_allocation_ratio=1.0,
                ram_allocation_ratio=1.0,
                disk_allocation_ratio=1.0,
                mapped=1,
            ).create()

    def _stats(self) -> dict[str, str]:
        """The statistics that nova-compute gives its compute node."""
        return {
            'failed_builds': '0',
            'num_instances': '2',
            'io_workload': '0',
            **host_stats.to_stats({'CUSTOM_QAT': self.DEVICES}),
        }

    def _copy(self, names: set[str]) -> None:
        ours = engine.manager().writer.get_engine()
        with ours.begin() as connection:
            for table in (schema.HOSTS, schema.ATTACH_HANDLES):
                # Hosts seldom change.
                connection.execute(
                    sa.update(table).values(changed_at=clock.ago(3600))
                )
            templates = [
                row_copies.read(connection, table) for table in _TABLES
            ]
        uuids = {
            value
            for template in templates
            for row in template.rows
            for column, value in row.items()
            if column.endswith('uuid')
        }
        copies = self.HOSTS - 1
        row_copies.insert(ours, templates, names | uuids, copies)
        with self._in_cell() as context:
            cell = main_db.get_engine(context=context)
            with cell.connect() as connection:
                templates = [
                    row_copies.read(connection, model.__table__)
                    for model in (nova_models.Service, nova_models.ComputeNode)
                ]
            [service] = templates[0].rows
            row_copies.insert(
                cell, templates, names | {service['uuid']}, copies
            )

    def _copy_to_placement(self, names: set[str], providers: int) -> None:
        """Copy the providers.

        :param providers: how many a host has
        """
        placement = placement_db.placement_context_manager.writer.get_engine()
        of_provider = {'resource_provider_id': providers}
        with placement.connect() as connection:
            templates = [
                row_copies.read(connection, model.__table__, shifted)
                for model, shifted in (
                    (
                        placement_models.ResourceProvider,
                        dict.fromkeys(
                            ('id', 'root_provider_id', 'parent_provider_id'),
                            providers,
                        ),
                    ),
                    (placement_models.Inventory, of_provider),
                    (placement_models.ResourceProviderTrait, of_provider),
                )
            ]
        uuids = {row['uuid'] for row in templates[0].rows}
        row_copies.insert(placement, templates, names | uuids, self.HOSTS - 1)

    def _note_instances(self, host: str) -> None:
        """Say what nova-compute says of its instances when it starts."""
        self.manager.host_manager.update_instance_info(
            self._context,
            host,
            objects.InstanceList(
                objects=[
                    objects.Instance(uuid=uuidutils.generate_uuid())
                    for _number in range(2)
                ]
            ),
        )

    @contextlib.contextmanager
    def _in_cell(self) -> Iterator[nova_context.RequestContext]:
        with nova_context.target_cell(
            nova_context.get_admin_context(), self.cell_mappings['cell1']
        ) as context:
            yield context

    def request(self, profiles: str | None) -> 'objects.RequestSpec':
        """A new request for servers, as nova-conductor makes it.

        :param profiles: as the flavor names them, None for a plain server
        """
        spec = scheduling.request_spec(
            {} if profiles is None else {device_profile.FLAVOR_KEY: profiles}
        )
        spec.image = objects.ImageMeta(properties=objects.ImageMetaProps())
        for name in _NULL_FIELDS:
            setattr(spec, name, None)
        spec.scheduler_hints = {}
        spec.obj_reset_changes(recursive=True)
        return spec

    def filtered_request(self, accelerated: bool) -> 'objects.RequestSpec':
        """A request after the request filters."""
        spec = self.request(self.PROFILE if accelerated else None)
        request_filter.process_reqspec(self._context, spec)
        return spec

    def hosts(
        self, spec: 'objects.RequestSpec'
    ) -> list[host_manager.HostState]:
        """All hosts as Nova makes them, with their allocation candidates.

        :param spec: what the candidates are for, after the request filters
        """
        self.flags(max_placement_results=self.HOSTS, group='scheduler')
        request = utils.resources_from_request_spec(
            self._context, spec, self.manager.host_manager
        )
        self.reset_flags('max_placement_results', group='scheduler')
        found, _summaries, _version = (
            self.manager.placement_client.get_allocation_candidates(
                self._context, request
            )
        )
        candidates: dict[str, list[Any]] = {}
        for candidate in found:
            for uuid in candidate['allocations']:
                candidates.setdefault(uuid, []).append(candidate)
        hosts = list(
            self.manager.host_manager.get_host_states_by_uuids(
                self._context, None, spec
            )
        )
        for host in hosts:
            host.allocation_candidates = candidates.get(host.uuid, [])
        return hosts

    def decide(
        self, spec: 'objects.RequestSpec', servers: int = 1
    ) -> Sequence[str]:
        """Have Nova choose hosts, and claim from them.

        :returns: the uuids of the servers
        """
        uuids = [
            spec.instance_uuid,
            *(uuidutils.generate_uuid() for _server in range(servers - 1)),
        ]
        spec.num_instances = servers
        self.manager.select_destinations(
            self._context,
            spec_obj=spec,
            instance_uuids=uuids,
            return_objects=True,
            return_alternates=True,
        )
        return uuids

    def release(self, servers: Sequence[str]) -> None:
        """Give back what the servers have in Placement."""
        for uuid in servers:
            self.manager.placement_client.delete_allocation_for_instance(
                self._context, uuid, force=True
            )
