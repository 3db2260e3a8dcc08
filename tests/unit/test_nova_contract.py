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

"""Every private or undocumented name of Nova that we lean on, as it is.

When Nova changes one of them this test fails and says which part of ours to
look at; nothing else in the tests pins Nova's internals.
"""

import importlib
import inspect
import re

from lxml import etree
from nova import version
import testtools

from nova_accel.model import nova_server

#: The release of Nova that is installed.
RELEASE = int(version.version_string().split('.')[0])

# fmt: off
#: Our module -> what it leans on -> its parameters; where the releases of Nova
#: differ, those of each, and None in a release that does not have it.
SIGNATURES = {
    'virt/driver.py': {
        'nova.virt.libvirt.driver:LibvirtDriver.init_host': 'self host',
        'nova.virt.libvirt.driver:LibvirtDriver.get_available_resource':
            'self nodename',
        'nova.virt.libvirt.driver:LibvirtDriver.update_provider_tree':
            'self provider_tree nodename allocations',
        'nova.compute.manager:ComputeVirtAPI.__init__': 'self compute',
        'nova.compute.resource_tracker:ResourceTracker'
        '.update_available_resource': 'self context nodename startup',
        'nova.virt.libvirt.driver:LibvirtDriver.spawn':
            'self context instance image_meta injected_files admin_password '
            'allocations network_info block_device_info power_on accel_info',
        'nova.virt.libvirt.driver:LibvirtDriver.cleanup':
            'self context instance network_info block_device_info '
            'destroy_disks migrate_data destroy_vifs destroy_secrets',
        'nova.virt.libvirt.driver:LibvirtDriver.instance_exists':
            'self instance',
        'nova.virt.libvirt.driver:LibvirtDriver._hard_reboot':
            'self context instance network_info share_info '
            'block_device_info accel_info',
        'nova.virt.libvirt.driver:LibvirtDriver._get_guest_config':
            'self instance network_info image_meta disk_info rescue '
            'block_device_info context mdevs accel_info share_info old_guest',
        'nova.virt.libvirt.driver:LibvirtDriver._create_guest':
            'self context xml instance power_on pause post_xml_callback',
        'nova.virt.libvirt.driver:LibvirtDriver._vgpu_allocations':
            'self allocations',
        'nova.virt.libvirt.driver:LibvirtDriver._allocate_cyborg_mdevs': {
            33: None,
            34: 'self accel_info',
        },
        'nova.virt.libvirt.driver:LibvirtDriver'
        '._get_mdev_capabilities_for_dev': 'self devname types',
    },
    'nova_releases.py': {
        'nova.virt.libvirt.driver:LibvirtDriver._is_virtual_mdev': {
            33: None,
            34: 'self device_address',
        },
        'nova.thread_pool_factory:spawn': {33: None, 34: 'func args kwargs'},
        'nova.utils:spawn': {33: 'func args kwargs', 34: None},
    },
    'virt/instance_event.py': {
        'nova.objects.instance_action:InstanceActionEvent.create':
            'self instance_uuid request_id',
    },
    'virt/replacing.py': {
        'nova.objects.instance_action:InstanceAction.action_start':
            'context instance_uuid action_name want_result',
        'nova.objects.instance_action:InstanceAction.finish': 'self',
        'nova.objects.instance:Instance.get_by_uuid':
            'context uuid expected_attrs use_slave',
        'nova.objects.instance:Instance.save':
            'self expected_vm_state expected_task_state admin_state_reset',
    },
    'virt/guest_partition.py': {
        'nova.virt.libvirt.driver:LibvirtDriver.destroy':
            'self context instance network_info block_device_info '
            'destroy_disks destroy_secrets',
        'nova.virt.libvirt.driver:LibvirtDriver.power_off':
            'self instance timeout retry_interval',
        'nova.virt.libvirt.driver:LibvirtDriver._soft_reboot':
            'self instance',
        'nova.virt.libvirt.driver:LibvirtDriver.snapshot':
            'self context instance image_id update_task_state',
        'nova.virt.libvirt.driver:LibvirtDriver.rescue':
            'self context instance network_info image_meta rescue_password '
            'block_device_info share_info',
    },
    'virt/joined_guest.py': {
        'nova.virt.libvirt.guest:Guest.__init__': 'self domain',
        'nova.virt.libvirt.guest:Guest.pause': 'self',
        'nova.virt.libvirt.guest:Guest.resume': 'self',
        'nova.virt.libvirt.guest:Guest.poweroff': 'self',
    },
    'virt/rebuild.py': {
        'nova.virt.driver:ComputeDriver.rebuild':
            'self context instance image_meta injected_files admin_password '
            'allocations bdms detach_block_devices attach_block_devices '
            'network_info evacuate block_device_info preserve_ephemeral '
            'accel_uuids reimage_boot_volume',
    },
    'virt/guest_cells.py': {
        'nova.virt.libvirt.host:Host.get_capabilities': 'self',
    },
    'virt/suspend.py': {
        'nova.virt.libvirt.driver:LibvirtDriver.suspend':
            'self context instance',
        'nova.virt.libvirt.driver:LibvirtDriver.resume':
            'self context instance network_info block_device_info share_info',
        'nova.virt.libvirt.driver:LibvirtDriver.unrescue':
            'self context instance',
        'nova.virt.libvirt.driver:LibvirtDriver'
        '._needs_suspend_resume_for_snapshot':
            'self live_snapshot current_power_state',
        'nova.virt.libvirt.driver:LibvirtDriver'
        '._resume_guest_after_snapshot':
            'self context live_snapshot original_power_state instance guest',
        'nova.virt.libvirt.driver:LibvirtDriver._attach_mediated_devices':
            'self guest devs',
        'nova.virt.libvirt.host:Host.get_guest': 'self instance',
        'nova.virt.libvirt.guest:Guest.get_power_state': 'self host',
        'nova.exception:InstanceFaultRollback.__init__':
            'self inner_exception',
    },
    'virt/guest_controllers.py': {
        'nova.virt.libvirt.config:LibvirtConfigGuestController.format_dom':
            'self',
        'nova.virt.libvirt.config:LibvirtConfigGuestPCIeRootController'
        '.__init__': 'self kwargs',
    },
    'virt/guest_xml.py': {
        'nova.virt.libvirt.config:LibvirtConfigGuestDeviceAddressPCI'
        '.format_dom': 'self',
        'nova.virt.libvirt.config:LibvirtConfigGuestDeviceAddressPCI'
        '.parse_dom': 'self xmldoc',
    },
    'virt/hot_plug.py': {
        'nova.virt.libvirt.guest:Guest.get_xml_desc':
            'self dump_inactive dump_sensitive dump_migratable',
        'nova.virt.libvirt.guest:Guest.get_config': 'self',
        'nova.virt.libvirt.guest:Guest.attach_device':
            'self conf persistent live',
        'nova.virt.libvirt.guest:Guest.detach_device':
            'self conf persistent live',
    },
    'virt/cold_migration.py': {
        'nova.virt.libvirt.driver:LibvirtDriver.migrate_disk_and_power_off':
            'self context instance dest flavor network_info '
            'block_device_info timeout retry_interval',
        'nova.virt.libvirt.driver:LibvirtDriver.finish_migration': {
            33:
            'self context migration instance disk_info network_info '
            'image_meta resize_instance allocations block_device_info '
            'power_on',
            34:
            'self context migration instance disk_info network_info '
            'image_meta resize_instance allocations block_device_info '
            'power_on share_info',
        },
        'nova.virt.libvirt.driver:LibvirtDriver.confirm_migration':
            'self context migration instance network_info',
        'nova.virt.libvirt.driver:LibvirtDriver.finish_revert_migration': {
            33:
            'self context instance network_info migration '
            'block_device_info power_on',
            34:
            'self context instance network_info migration '
            'block_device_info power_on share_info',
        },
    },
    'virt/live_migration.py': {
        'nova.virt.libvirt.driver:LibvirtDriver'
        '.check_can_live_migrate_source':
            'self context instance dest_check_data block_device_info',
        'nova.virt.libvirt.driver:LibvirtDriver'
        '.check_source_migrate_data_at_dest':
            'self ctxt instance migrate_data migration limits allocs',
        'nova.virt.libvirt.driver:LibvirtDriver.pre_live_migration':
            'self context instance block_device_info network_info disk_info '
            'migrate_data',
        'nova.virt.libvirt.driver:LibvirtDriver'
        '.post_live_migration_at_source':
            'self context instance network_info',
        'nova.virt.libvirt.driver:LibvirtDriver'
        '.post_live_migration_at_destination':
            'self context instance network_info block_migration '
            'block_device_info',
        'nova.virt.libvirt.driver:LibvirtDriver'
        '.rollback_live_migration_at_destination':
            'self context instance network_info block_device_info '
            'destroy_disks migrate_data',
    },
    'client/servers.py': {
        'nova.objects.instance:Instance.get_network_info': 'self',
        'nova.objects.instance:InstanceList.get_by_host':
            'context host expected_attrs use_slave',
        'nova.objects.instance:InstanceList.get_by_filters':
            'context filters sort_key sort_dir limit marker expected_attrs '
            'use_slave sort_keys sort_dirs',
        'nova.objects.migration:MigrationList.get_by_filters':
            'context filters sort_keys sort_dirs limit marker',
        'nova.scheduler.utils:resources_from_flavor': 'instance flavor',
    },
    'client/our_allocations.py': {
        'nova.scheduler.client.report:report_client_singleton': '',
        'nova.scheduler.client.report:SchedulerReportClient'
        '.add_resources_to_instance_allocation':
            'self context consumer_uuid resources',
        'nova.scheduler.client.report:SchedulerReportClient'
        '.get_allocs_for_consumer': 'self context consumer',
        'nova.scheduler.client.report:SchedulerReportClient'
        '.get_allocations_for_resource_provider': 'self context rp_uuid',
        'nova.scheduler.client.report:SchedulerReportClient'
        '.remove_resources_from_instance_allocation':
            'self context consumer_uuid resources',
        'nova.scheduler.client.report:SchedulerReportClient'
        '.get_providers_in_tree': 'self context uuid',
        'nova.scheduler.client.report:SchedulerReportClient.get':
            'self url version global_request_id',
        'nova.scheduler.client.report:SchedulerReportClient.post':
            'self url data version global_request_id',
    },
    'cmd/cells.py': {
        'nova.context:target_cell': 'context cell_mapping',
        'nova.db.main.api:pick_context_manager_reader': 'f',
        'nova.objects.cell_mapping:CellMappingList.get_all': 'context',
        'nova.objects.instance:InstanceList.get_by_filters':
            'context filters sort_key sort_dir limit marker expected_attrs '
            'use_slave sort_keys sort_dirs',
        'nova.objects.instance_mapping:InstanceMappingList'
        '.get_by_instance_uuids': 'context uuids',
        'nova.objects.migration:MigrationList.get_by_filters':
            'context filters sort_keys sort_dirs limit marker',
    },
    'cmd/flavors_check.py': {
        'nova.objects.flavor:FlavorList.get_all':
            'context inactive filters sort_key sort_dir limit marker',
    },
    'cmd/cyborg/import_cyborg.py': {
        'nova.objects.flavor:FlavorList.get_all':
            'context inactive filters sort_key sort_dir limit marker',
    },
    'cmd/placement_call.py': {
        'nova.scheduler.client.report:report_client_singleton': '',
        'nova.scheduler.client.report:SchedulerReportClient.delete':
            'self url version global_request_id',
        'nova.scheduler.client.report:SchedulerReportClient.get':
            'self url version global_request_id',
        'nova.scheduler.client.report:SchedulerReportClient.put':
            'self url data version global_request_id',
    },
    'host/all_guests.py': {
        'nova.virt.libvirt.host:Host.list_guests': 'self only_running',
        'nova.virt.libvirt.guest:Guest.get_config': 'self',
        'nova.virt.libvirt.guest:Guest.get_xml_desc':
            'self dump_inactive dump_sensitive dump_migratable',
    },
    'virt/wiring.py': {
        'nova.virt.libvirt.host:Host.get_hostname': 'self',
        'nova.virt.libvirt.host:Host.get_node_uuid': 'self',
    },
    'host/libvirt_devices.py': {
        'nova.virt.libvirt.host:Host.list_pci_devices': 'self flags',
        'nova.virt.libvirt.host:Host.list_mediated_devices': 'self flags',
        'nova.virt.libvirt.host:Host.device_lookup_by_name': 'self name',
        'nova.virt.libvirt.host:Host.device_create': 'self conf',
        'nova.virt.libvirt.utils:mdev_uuid2name': 'mdev_uuid parent',
        'nova.virt.libvirt.driver:LibvirtDriver._get_mediated_devices':
            'self types',
    },
    'host/nova_passthrough.py': {
        'nova.pci.whitelist:Whitelist.__init__': 'self whitelist_spec',
        'nova.pci.whitelist:Whitelist.device_assignable': 'self dev',
        'nova.pci.devspec:PciDeviceSpec.get_tags': 'self',
        'nova.compute.pci_placement_translator:get_traits': 'traits_str',
        'nova.virt.libvirt.host:Host._get_pcidev_info':
            'self devname dev net_devs vdpa_devs pci_devs',
    },
    'host/nova_providers.py': {
        'nova.compute.provider_config:get_provider_configs':
            'provider_config_dir',
        'nova.compute.resource_tracker:ResourceTracker'
        '._merge_provider_configs': 'self provider_configs provider_tree',
        'nova.compute.resource_tracker:ResourceTracker'
        '._get_providers_to_update':
            'self uuid_or_name provider_tree source_file',
    },
    'host/nova_vgpus.py': {
        'nova.conf.devices:register_dynamic_opts': 'conf',
        'nova.virt.libvirt.driver:LibvirtDriver._get_supported_vgpu_types':
            'self',
    },
    'virt/publishing/host_preview.py': {
        'nova.virt.libvirt.driver:LibvirtDriver._uri': '',
        'nova.virt.libvirt.host:Host.__init__':
            'self uri read_only conn_event_handler lifecycle_event_handler',
        'nova.virt.libvirt.host:Host.get_hostname': 'self',
        'nova.virt.node:read_local_node_uuid': '',
    },
    'virt/publishing/nova_tree.py': {
        'nova.compute.provider_tree:ProviderTree.new_child':
            'self name parent uuid generation',
        'nova.compute.provider_tree:ProviderTree.update_inventory':
            'self name_or_uuid inventory generation',
        'nova.compute.provider_tree:ProviderTree.add_traits':
            'self name_or_uuid traits',
        'nova.compute.provider_tree:ProviderTree.remove':
            'self name_or_uuid',
        'nova.compute.provider_tree:ProviderTree.get_provider_uuids':
            'self name_or_uuid',
    },
    'scheduler/set_group.py': {
        'nova.objects.request_spec:RequestGroup.to_queryparams': 'self',
        'nova.objects.request_spec:RequestGroup.obj_name': '',
    },
    'scheduler/request_filter.py': {
        'nova.scheduler.request_filter:trace_request_filter': 'fn',
        'nova.scheduler.request_filter:process_reqspec': 'ctxt request_spec',
    },
    'scheduler/ownership.py': {
        'nova.objects.request_spec:RequestGroup.add_resource':
            'self rclass amount',
        'nova.objects.request_spec:RequestGroup.strip_zeros': 'self',
    },
    'scheduler/traits.py': {
        'nova.scheduler.client.report:report_client_singleton': '',
        'nova.scheduler.client.report:SchedulerReportClient.get':
            'self url version global_request_id',
        'nova.scheduler.client.report:SchedulerReportClient.put':
            'self url data version global_request_id',
    },
    'scheduler/unified_limits.py': {
        'nova.limit.utils:use_unified_limits': '',
        'nova.limit.utils:should_enforce': 'exc',
        'nova.scheduler.client.report:SchedulerReportClient'
        '.get_usages_counts_for_limits': 'self context project_id',
    },
    'scheduler/scheduled_server.py': {
        'nova.context:target_cell': 'context cell_mapping',
        'nova.objects.instance_mapping:InstanceMapping'
        '.get_by_instance_uuid': 'context instance_uuid',
        'nova.objects.instance:Instance.get_by_uuid':
            'context uuid expected_attrs use_slave',
    },
    'scheduler/alternatives.py': {
        'nova.scheduler.request_filter:process_reqspec': 'ctxt request_spec',
    },
    'scheduler/candidates.py': {
        'nova.scheduler.utils:resources_from_request_spec':
            'ctxt spec_obj host_manager enable_pinning_translate',
        'nova.scheduler.client.report:SchedulerReportClient'
        '.get_allocation_candidates': 'self context resources',
        'nova.scheduler.utils:ResourceRequest.from_request_groups':
            'request_groups request_level_params group_policy',
    },
    'scheduler/candidate_filter.py': {
        'nova.scheduler.filters:BaseHostFilter.filter_all':
            'self filter_obj_list spec_obj',
        'nova.scheduler.utils:request_is_rebuild': 'spec_obj',
    },
    'scheduler/claim_attempts.py': {
        'nova.scheduler.host_manager:HostState.__init__':
            'self host node cell_uuid',
        'nova.scheduler.host_manager:HostState.consume_from_request':
            'self spec_obj',
    },
    'scheduler/unit_policies.py': {
        'nova.scheduler.filters.utils:aggregate_values_from_key':
            'host_state key_name',
    },
    'scheduler/weigher.py': {
        'nova.scheduler.weights:BaseHostWeigher.weigh_objects':
            'self weighed_obj_list weight_properties',
        'nova.scheduler.weights:BaseHostWeigher.weight_multiplier':
            'self host_state',
        'nova.scheduler.utils:get_weight_multiplier':
            'host_state multiplier_name multiplier_config',
    },
    'api/compute/bound_event.py': {
        'nova.compute.api:API.external_instance_event':
            'self api_context instances events',
    },
    'api/compute/cell_instances.py': {
        'nova.context:target_cell': 'context cell_mapping',
        'nova.objects.instance_mapping:InstanceMappingList'
        '.get_by_instance_uuids': 'context uuids',
        'nova.objects.instance:InstanceList.get_by_filters':
            'context filters sort_key sort_dir limit marker expected_attrs '
            'use_slave sort_keys sort_dirs',
    },
    'api/compute/server_action.py': {
        'nova.objects.instance_action:InstanceAction.action_start':
            'context instance_uuid action_name want_result',
        'nova.objects.instance_action:InstanceAction.action_finish':
            'context instance_uuid want_result',
    },
    'api/http/caller.py': {
        'nova.context:RequestContext.__init__':
            'self user_id project_id is_admin read_deleted remote_address '
            'timestamp quota_class service_catalog user_auth_plugin kwargs',
    },
    'api/wsgi.py': {
        'nova.middleware:set_defaults': '',
    },
    'api/compute/nova_setup.py': {
        'nova.db.api.api:configure': 'conf',
        'nova.db.main.api:configure': 'conf',
        'nova.rpc:init': 'conf',
        'nova.rpc:set_defaults': 'control_exchange',
    },
    'api/notifications/notifier.py': {
        'nova.rpc:get_versioned_notifier': 'publisher_id',
    },
    'scheduler/bitstream_region.py': {
        'nova.image.glance:API.get':
            'self context id_or_uri include_locations show_deleted',
    },
    'bitstreams/bitstream_images.py': {
        'nova.image.glance:API.get':
            'self context id_or_uri include_locations show_deleted',
        'nova.image.glance:_is_image_available': 'context image',
        'nova.image.glance:_translate_from_glance':
            'image include_locations',
        'nova.image.glance:GlanceClientWrapper.__init__':
            'self context endpoint',
        'nova.image.glance:GlanceClientWrapper.call':
            'self context version method controller args kwargs',
        'glanceclient.v2.images:Controller.data':
            'self image_id do_checksum allow_md5_fallback prefer',
    },
    'bitstreams/bitstream_check.py': {
        'nova.utils:tpool_wrap': 'target autowrap',
    },
    'api/compute/rpc.py': {
        'nova.context:target_cell': 'context cell_mapping',
        'nova.objects.host_mapping:HostMapping.get_by_host': 'context host',
        'nova.rpc:get_client':
            'target version_cap serializer call_monitor_timeout',
        'nova.rpc:ClientRouter.__init__': 'self default_client',
        'nova.rpc:ClientRouter.client': 'self context',
    },
    'api/compute/server_flavor.py': {
        'nova.context:target_cell': 'context cell_mapping',
        'nova.objects.instance:Instance.get_by_uuid':
            'context uuid expected_attrs use_slave',
        'nova.objects.instance_mapping:InstanceMapping'
        '.get_by_instance_uuid': 'context instance_uuid',
        'nova.objects.request_spec:RequestSpec.get_by_instance_uuid':
            'context instance_uuid',
        'nova.objects.request_spec:RequestSpec.save': 'self',
    },
    'virt/rpc_agent.py': {
        'nova.rpc:get_server': 'target endpoints serializer',
    },
    'tools/rig/loopback/crowd.py': {
        'nova.tests.fixtures.nova:CellDatabases._wrap_target_cell':
            'self context cell_mapping',
        'nova.tests.fixtures.nova:CellDatabases._wrap_get_context_manager':
            'self context',
    },
    'conf/client.py': {
        'nova.conf.utils:register_ksa_opts':
            'conf group default_service_type include_auth deprecated_opts',
        'nova.conf.utils:get_ksa_adapter_opts':
            'default_service_type deprecated_opts',
    },
}
# fmt: on

#: Modules and classes of Nova's whose plain attributes we use.
ATTRIBUTES = {
    'nova.conf:CONF.libvirt': ('device_detach_timeout',),
    'nova.conf:CONF.glance': (
        'api_servers',
        'default_trusted_certificate_ids',
        'enable_certificate_validation',
    ),
    'nova.db.main.models:PciDevice': (
        'address',
        'compute_node_id',
        'deleted',
        'instance_uuid',
        'status',
    ),
    'nova.db.main.models:ComputeNode': (
        'deleted',
        'hypervisor_hostname',
        'id',
    ),
    'nova.objects.instance_action:InstanceActionEvent': (
        'details',
        'event',
        'finish_time',
        'host',
        'result',
        'start_time',
        'traceback',
    ),
    'nova.objects.fields:PciDeviceStatus': ('ALLOCATED', 'CLAIMED'),
    'nova.compute.power_state': ('PAUSED', 'RUNNING', 'SHUTDOWN'),
    'nova.compute.task_states': (
        'MIGRATING',
        'REBUILDING',
        'REBUILD_BLOCK_DEVICE_MAPPING',
        'REBUILD_SPAWNING',
        'RESIZE_MIGRATING',
        'RESIZE_PREP',
        'RESIZE_REVERTING',
    ),
    'nova.virt.libvirt.driver': ('VGPU_RESOURCE_SEMAPHORE',),
    'nova.utils': (
        'SM_IMAGE_PROP_PREFIX',
        'get_system_metadata_from_image',
        'synchronized',
    ),
    'nova.conf:CONF.notifications': ('notification_format',),
    'nova.config': ('profiler',),
    'nova.rpc': ('NOTIFIER',),
    'nova.objects': ('register_all',),
    'nova.api.compute_req_id': ('HTTP_RESP_HEADER_REQUEST_ID',),
    'nova.compute.vm_states': (
        'ACTIVE',
        'BUILDING',
        'SHELVED_OFFLOADED',
        'STOPPED',
    ),
    'nova.scheduler.request_filter': ('ALL_REQUEST_FILTERS',),
    'nova.scheduler.utils:ResourceRequest': ('XS_KEYPAT', 'XS_RES_PREFIX'),
    'nova.objects.request_spec:RequestSpec': ('same_subtree',),
    'nova.objects.request_spec:RequestLevelParams': ('obj_load_attr',),
}


def _of_release(value):
    """What a row says of the release of Nova that is installed."""
    return value[RELEASE] if isinstance(value, dict) else value


def _exists(path):
    try:
        _resolve(path)
    except (ImportError, AttributeError):
        return False
    return True


def _resolve(path):
    module, _colon, names = path.partition(':')
    found = importlib.import_module(module)
    for name in filter(None, names.split('.')):
        found = getattr(found, name)
    return found


def _statuses(*paths):
    """The statuses that Nova's code gives migrations that go on."""
    found = set()
    for path in paths:
        found.update(
            re.findall(
                r"migration(?:\.status =|_status\(migration,) '([^']+)'",
                inspect.getsource(_resolve(path)),
            )
        )
    return found - {
        'completed',
        'done',
        'confirmed',
        'reverted',
        'error',
        'failed',
        'cancelled',
    }


class TestNovaContract(testtools.TestCase):
    def test_releases(self):
        self.assertIn(RELEASE, (33, 34))
        differ = [
            list(parameters)
            for names in SIGNATURES.values()
            for parameters in names.values()
            if isinstance(parameters, dict)
        ]
        self.assertEqual([[33, 34]] * len(differ), differ)

    def test_signatures(self):
        for ours, names in SIGNATURES.items():
            for path, row in names.items():
                parameters = _of_release(row)
                if parameters is None:
                    self.assertFalse(_exists(path), path)
                    continue
                signature = inspect.signature(_resolve(path))
                self.assertEqual(
                    parameters.split(),
                    list(signature.parameters),
                    f'{path}, which nova_accel/{ours} leans on',
                )

    def test_attributes(self):
        for path, names in ATTRIBUTES.items():
            for name in names:
                self.assertTrue(
                    hasattr(_resolve(path), name), f'{path}.{name}'
                )

    def test_drivers_cleanup_is_called_by_destroy(self):
        """The release of accelerators hangs on it."""
        driver = _resolve('nova.virt.libvirt.driver:LibvirtDriver')
        self.assertIn('self.cleanup(', inspect.getsource(driver.destroy))
        self.assertIn('self.destroy(', inspect.getsource(driver._hard_reboot))

    def test_guests_that_wait_for_networks_are_resumed(self):
        """virt/joined_guest.py looks again then, at libvirt's domain."""
        driver = _resolve('nova.virt.libvirt.driver:LibvirtDriver')
        text = inspect.getsource(driver._create_guest_with_network)
        self.assertIn('guest = self._create_guest(', text)
        self.assertIn('guest.resume()', text)
        guest = _resolve('nova.virt.libvirt.guest:Guest')
        self.assertEqual('domain', guest('domain')._domain)

    def test_all_that_a_service_sets_up(self):
        """A pool does the same, a part of it later.

        api/wsgi.py has the options, the defaults of oslo.middleware and the
        files, api/compute/nova_setup.py the rest. The filter of RabbitMQ's log
        is for eventlet, and the defaults of the log are for what a pool never
        does.
        """
        for name, calls in (
            (
                'parse_args',
                'CONF api_db_api.configure log.register_options '
                'logging.getLogger main_db_api.configure '
                'profiler.set_defaults rabbit_logger.addFilter rpc.init '
                'set_lib_defaults',
            ),
            (
                'set_lib_defaults',
                'middleware.set_defaults rpc.set_defaults set_log_defaults',
            ),
        ):
            source = inspect.getsource(_resolve(f'nova.config:{name}'))
            self.assertEqual(
                calls.split(),
                sorted(
                    set(re.findall(r'^ +([\w.]+)\(', source, re.MULTILINE))
                    | set(re.findall(r'= ([\w.]+)\(', source))
                ),
            )

    def test_an_update_that_we_ask_for_waits_for_novas_own(self):
        """virt/driver.py asks for one by the manager behind ``virtapi``."""
        manager, tracker = (
            _resolve(f'nova.compute.{name}')
            for name in (
                'manager:ComputeManager',
                'resource_tracker:ResourceTracker',
            )
        )
        api = _resolve('nova.compute.manager:ComputeVirtAPI')
        for function, line in (
            (api.__init__, 'self._compute = compute'),
            (manager.__init__, 'self.rt = resource_tracker.ResourceTracker('),
            (
                tracker.update_available_resource,
                'self._update_available_resource(context, resources',
            ),
            (
                tracker._update_available_resource,
                '@utils.synchronized(COMPUTE_RESOURCE_SEMAPHORE',
            ),
            (tracker._update_available_resource, 'self._update(context, cn'),
            (tracker._update, 'self._update_to_placement('),
        ):
            self.assertIn(line, inspect.getsource(function))

    def test_the_statistics_of_a_host_reach_the_scheduler(self):
        """As texts: virt/driver.py, scheduler/weigher.py."""
        tracker = _resolve('nova.compute.resource_tracker:ResourceTracker')
        self.assertIn(
            "stats.digest_stats(resources.get('stats'))",
            inspect.getsource(tracker._copy_resources),
        )
        state = _resolve('nova.scheduler.host_manager:HostState')
        self.assertIn(
            'self.stats = compute.stats',
            inspect.getsource(state._update_from_compute_node),
        )

    def test_the_weights_of_a_weigher_with_a_range(self):
        """Nova leaves them as they are: scheduler/weigher.py."""
        normalize = _resolve('nova.weights:normalize')
        self.assertEqual(
            [-250.5, 0.0, 3.0],
            list(normalize([-250.5, 0.0, 3.0], minval=0.0, maxval=1.0)),
        )

    def test_all_that_a_host_state_has_is_in_its_dict(self):
        """Attempts share it: scheduler/claim_attempts.py."""
        state = _resolve('nova.scheduler.host_manager:HostState')
        self.assertFalse(hasattr(state, '__slots__'))
        self.assertIs(object.__eq__, state.__eq__)
        found = vars(state('host', 'node', None))
        self.assertIn('allocation_candidates', found)
        self.assertIn('uuid', found)

    def test_each_request_has_host_states_of_its_own(self):
        manager = _resolve('nova.scheduler.host_manager:HostManager')
        self.assertIn(
            'host_state_map = {}', inspect.getsource(manager._get_host_states)
        )

    def test_how_nova_goes_through_hosts(self):
        """scheduler/claim_attempts.py depends on each step, in this order."""
        manager = _resolve('nova.scheduler.manager:SchedulerManager')
        self.assert_in_order(
            manager._schedule,
            'spec_obj.instance_uuid = instance_uuid',
            'hosts = self._get_sorted_hosts(spec_obj, hosts, num)',
            'for host in hosts:',
            'if not host.allocation_candidates:',
            'alloc_req = host.allocation_candidates[0]',
            'utils.claim_resources(',
            'claimed_host = host',
            'request_group.provider_uuids = alloc_req[',
            'self._consume_selected_host(',
            'return self._get_alternate_hosts(',
        )
        self.assert_in_order(
            manager._consume_selected_host,
            'selected_host.consume_from_request(spec_obj)',
        )
        self.assert_in_order(
            manager._get_alternate_hosts,
            'hosts = self._get_sorted_hosts(spec_obj, hosts, index)',
            'host not in selected_hosts',
            'if not host.allocation_candidates:',
            'continue',
            'alloc_req = host.allocation_candidates[0]',
        )

    def assert_in_order(self, function, *lines):
        source = inspect.getsource(function)
        at = 0
        for line in lines:
            at = source.find(line, at) + 1
            self.assertLess(0, at, line)

    def test_a_rebuild_rolls_back_what_is_unavailable(self):
        """So virt/fault_translation.py has another fault for it."""
        source = inspect.getsource(
            importlib.import_module('nova.compute.manager')
        )
        rebuild = source.index('self._do_rebuild_instance_with_claim(')
        refused = source.index(
            'except (exception.ComputeResourcesUnavailable', rebuild
        )
        self.assertLess(
            refused,
            source.index('raise exception.InstanceFaultRollback', rebuild),
        )
        self.assertLess(
            source.index('raise exception.InstanceFaultRollback', rebuild),
            source.index('except Exception as e', rebuild),
        )

    def test_a_rebuild_asks_the_driver_first(self):
        source = inspect.getsource(
            _resolve(
                'nova.compute.manager:ComputeManager._do_rebuild_instance'
            )
        )
        self.assertLess(
            source.index('self.driver.rebuild(**kwargs)'),
            source.index('self._rebuild_default_impl(**kwargs)'),
        )

    def test_a_cold_snapshot_suspends(self):
        """And what it does afterwards is no resume()."""
        driver = _resolve('nova.virt.libvirt.driver:LibvirtDriver')
        self.assertIn(
            'self.suspend(',
            inspect.getsource(driver._suspend_guest_for_snapshot),
        )
        self.assertEqual(
            2,
            inspect.getsource(driver.snapshot).count(
                'self._resume_guest_after_snapshot('
            ),
        )

    def test_all_that_nova_makes_of_cyborgs_arqs_is_ours_to_see(self):
        """Besides the guest's configuration at most one method uses them."""
        driver = _resolve('nova.virt.libvirt.driver:LibvirtDriver')
        users = _of_release(
            {33: [], 34: ['self._allocate_cyborg_mdevs(accel_info)']}
        )
        for caller in (driver.spawn, driver._hard_reboot):
            source = inspect.getsource(caller)
            self.assertEqual(
                users, re.findall(r'self\.\w+\(accel_info\)', source)
            )
            self.assertIn('self._get_guest_xml(', source)

    def test_a_crashed_migration_is_reverted_at_the_start(self):
        """virt/cold_migration.py: restores what it may have set aside."""
        source = inspect.getsource(
            _resolve('nova.compute.manager:ComputeManager._init_instance')
        )
        self.assertIn('task_states.RESIZE_MIGRATING', source)
        self.assertIn('self.driver.finish_revert_migration(', source)

    def test_a_start_clears_the_task_of_a_replacement(self):
        """virt/replacing.py: nova-compute may be killed meanwhile."""
        source = inspect.getsource(
            _resolve('nova.compute.manager:ComputeManager._init_instance')
        )
        self.assertRegex(
            source,
            r'task_state in \[task_states.RESIZE_PREP\]\):\n'
            r'(.*\n){3} +instance.task_state = None\n',
        )

    def test_a_revert_forgets_the_old_flavor_even_if_it_fails(self):
        """model/binding_repairs.py tells it so from a failed resize."""
        manager = _resolve('nova.compute.manager:ComputeManager')
        source = inspect.getsource(manager.finish_revert_resize)
        self.assertIn(
            'finally:\n            self._delete_stashed_flavor_info(instance)',
            source,
        )
        self.assertNotIn(
            '_delete_stashed_flavor_info',
            inspect.getsource(manager.finish_resize),
        )

    def test_the_states_of_a_migration_that_goes_on(self):
        """In no such state, a server may lose accelerators."""
        self.assertEqual(
            nova_server.UNFINISHED,
            _statuses(
                'nova.compute.api:',
                'nova.compute.manager:',
                'nova.compute.resource_tracker:',
                'nova.conductor.manager:',
                'nova.conductor.tasks.migrate:',
                'nova.conductor.tasks.live_migrate:',
                'nova.virt.libvirt.migration:',
            ),
        )

    def test_the_states_of_a_live_migration_that_goes_on(self):
        manager = 'nova.compute.manager:ComputeManager.'
        self.assertEqual(
            nova_server.LIVE,
            _statuses(
                'nova.conductor.manager:ComputeTaskManager._live_migrate',
                f'{manager}live_migration',
                f'{manager}_do_live_migration',
                'nova.conductor.tasks.live_migrate:',
                'nova.virt.libvirt.migration:',
            ),
        )

    def test_a_destination_hears_of_a_roll_back_if_it_has_mdevs(self):
        """virt/live_migration.py: also if it has PCI functions alone."""
        manager = _resolve('nova.compute.manager:ComputeManager')
        self.assertIn(
            "has_mdevs = 'target_mdevs' in migrate_data",
            inspect.getsource(manager._live_migration_cleanup_flags),
        )

    def test_the_last_check_of_a_live_migration_is_the_drivers(self):
        source = inspect.getsource(
            _resolve(
                'nova.compute.manager:ComputeManager'
                '.check_can_live_migrate_destination'
            )
        )
        self.assertLess(
            source.index('pci_dev_map_src_dst ='),
            source.index('self.driver.check_source_migrate_data_at_dest('),
        )

    def test_what_the_source_puts_in_the_place_of_its_devices(self):
        source = inspect.getsource(
            _resolve('nova.virt.libvirt.migration:get_updated_guest_xml')
        )
        for field in ('target_mdevs', 'pci_dev_map_src_dst'):
            self.assertIn(f'migrate_data.{field}', source)

    def test_limits_of_resource_classes_have_a_prefix(self):
        """scheduler/unified_limits.py"""
        function = _of_release(
            {33: '_get_deltas_by_flavor', 34: '_get_deltas'}
        )
        self.assertIn(
            'deltas["class:%s" % resource]',
            inspect.getsource(_resolve(f'nova.limit.placement:{function}')),
        )

    def test_limits_of_cyborgs_device_profiles(self):
        """admin/limits.rst says that Nova 33 has none."""
        source = inspect.getsource(
            _resolve('nova.compute.api:API._provision_instances')
        )
        counted = _of_release(
            {
                33: 'enforce_num_instances_and_flavor(',
                34: 'self._enforce_create_unified_limits(',
            }
        )
        begin = source.index(counted)
        self.assertEqual(
            RELEASE == 34,
            'dp_request_groups' in source[begin : source.index(')', begin)],
        )

    def test_a_resize_is_counted_as_a_whole(self):
        """scheduler/unified_limits.py does as nova-api does."""
        source = inspect.getsource(
            _resolve('nova.compute.api:API._check_quota_for_upsize')
        )
        counted = _of_release(
            {
                33: 'context, project_id, new_flavor, is_bfv, 1, 1)',
                34: 'context, project_id, req_spec, 1, 1)',
            }
        )
        self.assertIn(counted, ' '.join(source.split()))

    def test_nova_names_the_resources_of_a_group_without_any(self):
        """So a group of ours leaves them out (scheduler/set_group.py)."""
        group = _resolve('nova.objects.request_spec:RequestGroup')(
            requester_id='a', required_traits={'CUSTOM_A'}
        )
        group.obj_set_defaults()
        self.assertIn(('resourcesa', ''), group.to_queryparams())

    def test_a_resource_request_can_be_limited(self):
        """scheduler/candidates.py"""
        request = _resolve('nova.scheduler.utils:ResourceRequest')
        self.assertIn(
            "('limit', self._limit)", inspect.getsource(request.to_querystring)
        )

    def test_the_event_of_a_binding_is_one_that_computes_know(self):
        """api/compute/bound_event.py: the name, the status, and the cast."""
        events = _resolve('nova.objects.external_event')
        self.assertIn('accelerator-request-bound', events.EVENT_NAMES)
        self.assertIn('completed', events.EVENT_STATUSES)
        self.assertIn(
            "cctxt.cast(ctxt, 'external_instance_event'",
            inspect.getsource(
                _resolve(
                    'nova.compute.rpcapi:ComputeAPI.external_instance_event'
                )
            ),
        )

    def test_the_scheduler_claims_a_hosts_first_candidate(self):
        """And says in the request which providers that took."""
        source = inspect.getsource(
            _resolve('nova.scheduler.manager:SchedulerManager._schedule')
        )
        self.assertIn('host.allocation_candidates[0]', source)
        self.assertIn('request_group.provider_uuids =', source)

    def test_a_context_may_bring_its_own_credentials(self):
        """bitstreams/bitstream_images.py: the download is the host's."""
        context = _resolve('nova.context:RequestContext')
        self.assertIn(
            'return self.user_auth_plugin',
            inspect.getsource(context.get_auth_plugin),
        )
        self.assertIn(
            'context.get_auth_plugin()',
            inspect.getsource(
                _resolve(
                    'nova.service_auth:get_service_user_token_auth_plugin'
                )
            ),
        )

    def test_all_guest_configurations_come_from_one_method(self):
        driver = _resolve('nova.virt.libvirt.driver:LibvirtDriver')
        source = inspect.getsource(_resolve('nova.virt.libvirt.driver'))
        self.assertEqual(1, source.count('self._get_guest_config('))
        self.assertIn(
            'self._get_guest_config(', inspect.getsource(driver._get_guest_xml)
        )

    def test_what_a_guests_configuration_has(self):
        """virt/guest_topology.py, virt/guest_controllers.py"""
        config = _resolve('nova.virt.libvirt.config')
        for name, attributes in (
            ('Guest', 'devices cpu numatune os_mach_type virt_type'),
            ('GuestCPU', 'numa maxphysaddr'),
            ('GuestCPUNUMA', 'cells'),
            ('GuestNUMATune', 'memnodes'),
            ('GuestNUMATuneMemNode', 'cellid nodeset'),
            ('GuestCPUMaxPhysAddr', 'mode bits'),
            ('GuestController', 'type index model'),
            ('GuestDeviceAddressPCI', 'domain bus slot function'),
        ):
            made = getattr(config, f'LibvirtConfig{name}')()
            for attribute in attributes.split():
                self.assertTrue(hasattr(made, attribute), (name, attribute))

    def test_the_cells_of_a_guest_and_their_nodes(self):
        """virt/guest_topology.py: a memnode has the host's numbers."""
        driver = _resolve('nova.virt.libvirt.driver:LibvirtDriver')
        self.assertIn(
            'set_numa_memnode(tnode, guest_node_id, host_cell.id)',
            inspect.getsource(driver._get_guest_numa_config),
        )
        self.assertIn(
            "'supports_address_space_passthrough'",
            inspect.getsource(driver._update_host_specific_capabilities),
        )

    def test_nova_does_not_number_its_pci_controllers(self):
        """virt/guest_controllers.py takes what libvirt will give them."""
        driver = _resolve('nova.virt.libvirt.driver:LibvirtDriver')
        self.assertNotIn(
            'index', inspect.getsource(driver._guest_add_pcie_root_ports)
        )

    def test_a_live_migration_keeps_the_places_in_the_guest(self):
        """virt/guest_topology.py does nothing for it."""
        place = (
            '<address type="pci" domain="0x0000" bus="0x05" slot="0x00" '
            'function="0x0"/>'
        )
        device = (
            '<devices><hostdev type="pci"><source><address domain="0x0000" '
            'bus="0x{}" slot="0x00" function="0x0"/></source>'
            + place
            + '</hostdev></devices>'
        )
        update = _resolve('nova.virt.libvirt.migration:_update_pci_dev_xml')
        changed = update(
            etree.fromstring(f'<domain>{device.format("05")}</domain>'),
            {'0000:05:00.0': '0000:81:00.0'},
        )
        self.assertEqual(
            f'<domain>{device.format("81")}</domain>',
            etree.tostring(changed, encoding='unicode'),
        )
