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

import contextlib
import threading
import types

import fixtures
from nova import context as nova_context
from nova import exception
from nova.compute import task_states
from nova.virt.libvirt import config as vconfig
from nova.virt.libvirt import guest as libvirt_guest

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.virt import driver
from nova_accel.virt import os_acc
from nova_accel.virt.fabric import no_fabric
from rig.stubs import nova_records
from unit.virt import mixin_case

OURS = 'b9d6d3b8-27a8-4bd9-96a1-f2a37a1f4c55'
NOVAS = 'aaaaaaaa-27a8-4bd9-96a1-f2a37a1f4c55'
NODE, PROVIDER = mixin_case.NODE, mixin_case.PROVIDER

FUNCTION = '0000:81:00.1'
PORTS = [{'profile': {'arq_uuid': 'arq', 'pci_slot': FUNCTION}}]
ARQ = arq_types.Arq(
    'arq',
    arq_types.State.BOUND,
    'gpu',
    0,
    {},
    PROVIDER,
    attach_handle.AttachHandle(
        OURS, pci_address.PciAddress(0, 0x81, 0, 0), 'nvidia-11'
    ),
)
OUR_ARQ = {'uuid': 'arq', 'device_rp_uuid': PROVIDER, 'hostname': 'here'}
CYBORGS_ARQ = {**OUR_ARQ, 'uuid': 'of Cyborg', 'device_rp_uuid': NODE}


def an_instance(
    profile='gpu',
    task_state=task_states.SPAWNING,
    host='here',
    key='nova_accel:device_profile',
):
    return types.SimpleNamespace(
        uuid='5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01',
        host=host,
        project_id='project',
        user_id='user',
        system_metadata={},
        vm_state='building',
        task_state=task_state,
        new_flavor=None,
        flavor=types.SimpleNamespace(
            extra_specs=({key: profile} if profile else {})
        ),
    )


class Attachments:
    """Of one instance: role -> what it holds."""

    def __init__(self):
        self.roles = {}
        self.adopted = ()
        self.allocations = ()
        self.busy = False
        self.lost_race = False
        self.fault = None
        self.serves = ('gpu',)

    @property
    def held(self):
        return self

    @property
    def is_held(self):
        return arq_types.Role.ACTIVE in self.roles

    @property
    def held_for_ports(self):
        return arq_types.Role.PORT in self.roles

    def give(self, role=arq_types.Role.ACTIVE):
        self.roles[role] = (ARQ,)

    def hold(self, intent):
        """It is the API, too."""
        intent.ask(self, intent.begin(None, 1))

    def acquire(
        self,
        instance_uuid,
        role,
        attempt,
        project_id,
        profile,
        allocations,
        numa_nodes,
        is_new,
    ):
        self.numa_nodes = numa_nodes
        self.is_new = is_new
        if self.busy:
            raise exceptions.AcceleratorsBusy('none is free')
        if profile not in self.serves:
            raise exceptions.NoAssignment(f'it does not serve {profile}')
        self.give(role)
        self.allocations = allocations

    def adopt(self, instance_uuid, role, attempt, arq_uuids, is_new):
        if self.lost_race:
            raise exceptions.Conflict('it is BindFailed')
        self.is_new = is_new
        self.give(role)
        self.adopted = arq_uuids

    def has(self, instance_uuid, role):
        return role in self.roles

    def arqs(self, role=None):
        return [
            each
            for held_in, arqs in self.roles.items()
            for each in arqs
            if role in (None, held_in)
        ]

    def arqs_of(self, instance_uuid, role=arq_types.Role.ACTIVE):
        return self.roles.get(role, ())

    def plug(self, instance_uuid, role):
        return self.arqs_of(instance_uuid, role)

    def mend(self, instance_uuid):
        if self.fault is not None:
            raise self.fault

    def settle(self, instance_uuid):
        return False

    def recover(self, instance_uuid, role=arq_types.Role.ACTIVE, unadopted=()):
        """The API has nothing that the journal has not."""

    def release(self, instance_uuid, role=arq_types.Role.ACTIVE):
        return len(self.roles.pop(role, ()))


class Cells:
    """The cells of all guests are on one node."""

    def numa_nodes(self, instance, role):
        return frozenset({1})


class Programmer:
    """Of one instance: is something begun for it?"""

    def __init__(self):
        self.programming = False
        self.cannot_program = False

    def start(self, arqs, asker, image_properties, context):
        self.context = context
        if self.cannot_program:
            raise exceptions.BitstreamNotFound('there is no such bitstream')
        self.programming = bool(arqs)

    def ready(self, arqs, asker, image_properties, is_new):
        """It is."""

    def abandon(self, instance_uuid):
        self.programming = False


#: Of one PCI function and one mediated device.
BOARD = types.SimpleNamespace(
    view=types.SimpleNamespace(
        functions=frozenset({FUNCTION}),
        handles={OURS: None},
        layout=types.SimpleNamespace(uuids=frozenset({PROVIDER})),
    ),
    doubt=threading.Event(),
)


class Publisher:
    """Of a host that is published."""

    def wait_published(self, timeout_s):
        """It is."""


class Accelerators:
    """The parts of a host that the mixin uses, without a host.

    It is its own cycle and providers.
    """

    sysfs = None

    def __init__(self):
        self.attachments = Attachments()
        self.cycle = self.providers = self
        self.fabric = no_fabric.NoFabric()
        self.cycles = 0
        self.busy = False

    def start(self):
        self.cycles += 1

    def begin_update(self):
        self.updates = [*getattr(self, 'updates', []), 'begins']

    def stats(self):
        return {'nova_accel_units': '3'}

    def update(self, tree, allocations):
        self.updates.append((tree, allocations))
        if allocations is None and self.busy:
            raise exception.ReshapeNeeded()
        return bool(tree)


class NovaDriver:
    """What the mixin is mixed into."""

    fails = False
    leaves_guest = False
    capabilities = {}
    initialised = False

    def while_spawning(self):
        """For a test to replace."""

    def init_host(self, host):
        self.initialised = True

    supported_vgpu_types = ()

    stats = None

    def get_available_resource(self, nodename):
        found = {'hypervisor_hostname': nodename}
        if self.stats is not None:
            found['stats'] = self.stats
        return found

    def update_provider_tree(self, provider_tree, nodename, allocations=None):
        self.provider_tree = None

    def spawn(self, *args, **kwargs):
        self.while_spawning()
        if self.fails:
            raise exception.InternalError('it does not boot')

    def instance_exists(self, instance):
        return self.leaves_guest

    def rebuild(self, context, instance, image_meta, evacuate=False):
        raise NotImplementedError

    def cleanup(self, context, instance, *args, **kwargs):
        pass

    def _hard_reboot(self, context, instance, *args, **kwargs):
        if self.fails:
            raise exception.InternalError('it does not boot')
        self.cleanup(context, instance, None)

    def _get_guest_config(
        self, instance, network_info, image_meta, disk_info, **kwargs
    ):
        self.accel_info = kwargs['accel_info']
        guest = vconfig.LibvirtConfigGuest()
        for uuid in kwargs['mdevs']:
            mdev = vconfig.LibvirtConfigGuestHostdevMDEV()
            mdev.uuid = uuid
            guest.add_device(mdev)
        return guest

    def _create_guest(
        self, context, xml, instance, power_on, pause, post_xml_callback
    ):
        self.domain.append(('create', pause))
        return libvirt_guest.Guest(
            types.SimpleNamespace(
                resume=lambda: self.domain.append('resume'),
                destroy=lambda: self.domain.append('destroy'),
            )
        )

    def _vgpu_allocations(self, allocations):
        return allocations

    def _allocate_cyborg_mdevs(self, accel_info):
        return list(accel_info)

    def _is_virtual_mdev(self, device_address):
        return device_address == 'mtty_mtty'

    def _get_mdev_capabilities_for_dev(self, devname, types=None):
        if devname.startswith('pci_') or self._is_virtual_mdev(devname):
            return {'dev_id': devname, 'types': {each: {} for each in types}}
        raise AttributeError('vendor_id')


class Driver(driver.AcceleratorMixin, NovaDriver):
    pass


class DriverTestCase(mixin_case.MixinTestCase):
    driver_class = Driver
    accelerators_class = Accelerators

    def setUp(self):
        super().setUp()
        self.programmer = Programmer()
        self.driver.os_acc = os_acc.OsAcc(
            'here',
            BOARD,
            Publisher(),
            self.accelerators.attachments,
            self.programmer,
            {},
            Cells(),
            no_fabric.NoFabric(),
        )

    @property
    def is_held(self):
        return self.accelerators.attachments.is_held

    def spawn(self, instance, accel_info=None):
        self.driver.spawn(
            None,
            instance,
            None,
            [],
            None,
            {
                NODE: {'resources': {'VCPU': 1}},
                PROVIDER: {'resources': {'VGPU': 1}},
            },
            network_info=None,
            accel_info=accel_info,
        )

    def failing_spawn(self, instance):
        self.driver.fails = True
        self.assertRaises(exception.InternalError, self.spawn, instance)

    def cleanup(self, instance):
        self.driver.cleanup(None, instance, None, destroy_disks=False)

    def mdevs(self, instance, mdevs=None, accel_info=None):
        guest = self.driver._get_guest_config(
            instance, [], None, None, mdevs=mdevs, accel_info=accel_info
        )
        return [device.uuid for device in guest.devices]


class TestUpdateProviderTree(DriverTestCase):
    def test_an_update_begins_when_nova_asks_for_its_resources(self):
        self.assertEqual(
            {
                'hypervisor_hostname': 'here',
                'stats': {'nova_accel_units': '3'},
            },
            self.driver.get_available_resource('here'),
        )
        self.assertEqual(['begins'], self.accelerators.updates)

    def test_the_statistics_of_nova_are_kept(self):
        self.driver.stats = {'num_of_nova': '5'}
        self.assertEqual(
            {'num_of_nova': '5', 'nova_accel_units': '3'},
            self.driver.get_available_resource('here')['stats'],
        )

    def test_nova_gets_a_copy_of_what_has_changed(self):
        self.driver.get_available_resource('here')
        for tree, copied in (([], None), ([1], [1])):
            self.driver.update_provider_tree(tree, 'here')
            self.assertEqual(copied, self.driver.provider_tree)
        tree.append(2)
        self.assertEqual([1], self.driver.provider_tree)

    def test_a_reshape_is_asked_for_and_made(self):
        self.driver.get_available_resource('here')
        self.accelerators.busy = True
        self.assertRaises(
            exception.ReshapeNeeded,
            self.driver.update_provider_tree,
            [],
            'here',
        )
        self.driver.update_provider_tree([], 'here', allocations={'a': 1})
        self.assertEqual(([], {'a': 1}), self.accelerators.updates[-1])


class TestParentsOfMdevs(DriverTestCase):
    def types(self, name):
        found = self.driver._get_mdev_capabilities_for_dev(name, ['a'])
        self.assertEqual(name, found['dev_id'])
        return list(found['types'])

    def test_those_that_nova_knows(self):
        for name in ('pci_0000_81_00_0', 'mtty_mtty'):
            self.assertEqual(['a'], self.types(name))

    def test_any_other_is_passed_over(self):
        for name in ('css_0_0_0052', 'ap_matrix'):
            self.assertEqual([], self.types(name))


class TestAcceleratorMixin(DriverTestCase):
    def test_a_refused_configuration_is_refused_before_nova_starts(self):
        """What Nova has started by then would keep the process alive."""
        conf.CONF.set_override('device_spec', ['{}'], 'nova_accel')
        self.addCleanup(conf.CONF.clear_override, 'device_spec', 'nova_accel')
        self.assertRaises(
            exceptions.InvalidDeviceSpec, self.driver.init_host, 'here'
        )
        self.assertFalse(self.driver.initialised)

    def test_spawn_holds_what_is_allocated_of_ours(self):
        self.spawn(an_instance())
        self.assertTrue(self.is_held)
        self.assertEqual(
            [(PROVIDER, {'VGPU': 1})],
            [
                (allocation.rp_uuid, allocation.resources)
                for allocation in self.accelerators.attachments.allocations
            ],
        )

    def test_limits_matter_for_what_it_does_not_have_yet(self):
        self.spawn(an_instance())
        self.assertTrue(self.accelerators.attachments.is_new)
        instance, _nova = self.allocate(VGPU=1)
        self.accelerators.attachments.roles.clear()
        self.hard_reboot(instance)
        self.assertFalse(self.accelerators.attachments.is_new)

    def test_the_api_is_told_the_nodes_of_the_guest_s_cells(self):
        self.spawn(an_instance())
        self.assertEqual({1}, self.accelerators.attachments.numa_nodes)

    def test_spawn_without_a_profile_holds_nothing(self):
        self.spawn(an_instance(profile=None))
        self.assertFalse(self.is_held)

    def test_a_failed_spawn_holds_nothing(self):
        self.failing_spawn(an_instance())
        self.assertFalse(self.is_held)

    def test_what_spawn_programs_goes_on_while_it_spawns(self):
        programming = []
        self.driver.while_spawning = lambda: programming.append(
            self.programmer.programming
        )
        self.spawn(an_instance())
        self.failing_spawn(an_instance())
        self.assertEqual([True, True], programming)
        self.assertFalse(self.programmer.programming)

    def test_what_cannot_be_programmed_is_for_another_host(self):
        self.programmer.cannot_program = True
        error = self.assertRaises(
            exception.ComputeResourcesUnavailable, self.spawn, an_instance()
        )
        self.assertIn(exceptions.BitstreamNotFound.PUBLIC, str(error))
        self.assertFalse(self.is_held)

    def test_a_failed_spawn_holds_nothing_of_its_ports(self):
        attachments = self.accelerators.attachments
        for profile in (None, 'gpu'):
            self.driver.while_spawning = lambda: attachments.give(
                arq_types.Role.PORT
            )
            self.failing_spawn(an_instance(profile=profile))
            self.assertFalse(attachments.held_for_ports)
        attachments.give(arq_types.Role.PORT)
        self.failing_spawn(an_instance())
        self.assertTrue(attachments.held_for_ports)

    def test_a_failed_spawn_leaves_its_guest_what_it_has(self):
        self.driver.leaves_guest = True
        self.failing_spawn(an_instance())
        self.assertTrue(self.is_held)

    def test_a_failed_rebuild_keeps_what_there_was(self):
        self.accelerators.attachments.give()
        self.failing_spawn(an_instance())
        self.assertTrue(self.is_held)

    def test_busy_means_another_host(self):
        self.accelerators.attachments.busy = True
        error = self.assertRaises(
            exception.ComputeResourcesUnavailable, self.spawn, an_instance()
        )
        self.assertIn(exceptions.AcceleratorsBusy.PUBLIC, str(error))

    def test_cleanup_releases(self):
        self.spawn(an_instance())
        self.cleanup(an_instance(task_state=task_states.DELETING))
        self.assertFalse(self.is_held)

    def test_cleanup_in_a_hard_reboot_does_not(self):
        self.spawn(an_instance())
        self.driver._hard_reboot(None, an_instance(), None, None)
        self.assertTrue(self.is_held)
        self.cleanup(an_instance())
        self.assertFalse(self.is_held)

    def test_a_failed_hard_reboot_is_over_too(self):
        self.spawn(an_instance())
        self.driver.fails = True
        self.assertRaises(
            exception.InternalError,
            self.driver._hard_reboot,
            None,
            an_instance(),
            None,
            None,
        )
        self.assertTrue(self.is_held)
        self.cleanup(an_instance())
        self.assertFalse(self.is_held)

    def allocate(self, **resources):
        nova = self.useFixture(nova_records.NovaRecords())
        instance = an_instance()
        nova.allocations[instance.uuid] = {
            NODE: {'VCPU': 1},
            **({PROVIDER: resources} if resources else {}),
        }
        return instance, nova

    def hard_reboot(self, instance):
        self.driver._hard_reboot(
            nova_context.get_admin_context(), instance, None, None
        )

    def test_a_hard_reboot_asks_nobody_for_what_is_held(self):
        instance, nova = self.allocate(VGPU=1)
        self.spawn(instance)
        self.hard_reboot(instance)
        plain = an_instance(None)
        self.hard_reboot(plain)
        self.assertEqual([], nova.calls)

    def test_a_hard_reboot_acquires_what_nothing_holds(self):
        instance, _nova = self.allocate(VGPU=1)
        self.hard_reboot(instance)
        self.assertTrue(self.is_held)
        (allocation,) = self.accelerators.attachments.allocations
        self.assertEqual(
            (PROVIDER, {'VGPU': 1}), (allocation.rp_uuid, allocation.resources)
        )
        self.assertIsNone(self.programmer.context)

    def test_a_hard_reboot_acquires_what_a_failed_resize_allocated(self):
        """Nova has given it back its old flavor by then."""
        instance, _nova = self.allocate(VGPU=1)
        instance.new_flavor = an_instance('gpus').flavor
        attachments = self.accelerators.attachments
        for attachments.serves in (('gpus',), ('gpu',)):
            self.hard_reboot(instance)
            self.assertTrue(self.is_held)
            attachments.release(instance.uuid)
        attachments.serves = ()
        self.assertRaises(
            exception.ComputeResourcesUnavailable, self.hard_reboot, instance
        )
        self.assertFalse(self.is_held)

    def test_a_rebuild_keeps_what_nova_has_lost_the_allocations_of(self):
        self.accelerators.attachments.give()
        self.accelerators.attachments.busy = True
        self.driver.spawn(
            None,
            an_instance(),
            None,
            [],
            None,
            {NODE: {'resources': {'VCPU': 1}}},
            network_info=None,
        )
        self.assertTrue(self.is_held)

    def test_a_hard_reboot_programs_as_its_user(self):
        instance, _nova = self.allocate(VGPU=1)
        user = nova_context.RequestContext(
            'user', 'project', is_admin=False, auth_token='token'
        )
        self.driver._hard_reboot(user, instance, None, None)
        self.assertIs(user, self.programmer.context)

    def test_a_hard_reboot_finds_what_only_the_api_knows(self):
        attachments = self.accelerators.attachments
        instance, nova = self.allocate(VGPU=1)
        attachments.recover = lambda uuid: attachments.give()
        self.hard_reboot(instance)
        self.assertTrue(self.is_held)
        self.assertEqual([], nova.calls)

    def test_a_hard_reboot_with_a_damaged_journal(self):
        """The guest is not destroyed: no one knows what it has."""
        attachments = self.accelerators.attachments
        instance, nova = self.allocate(VGPU=1)
        attachments.fault = exceptions.DeviceError('the journal is damaged')
        self.assertRaises(
            exception.ComputeResourcesUnavailable, self.hard_reboot, instance
        )
        self.assertEqual([], nova.calls)
        self.assertFalse(self.is_held)

    def test_a_hard_reboot_without_an_allocation(self):
        instance, _nova = self.allocate()
        error = self.assertRaises(
            exception.ComputeResourcesUnavailable, self.hard_reboot, instance
        )
        self.assertIn('none are allocated to it', str(error))
        self.assertFalse(self.is_held)

    def test_a_hard_reboot_of_which_the_devices_are_busy(self):
        instance, _nova = self.allocate(VGPU=1)
        self.accelerators.attachments.busy = True
        error = self.assertRaises(
            exception.ComputeResourcesUnavailable, self.hard_reboot, instance
        )
        self.assertIn('fewer accelerators are free', str(error))

    def test_a_hard_reboot_that_acquires_and_then_fails(self):
        instance, _nova = self.allocate(VGPU=1)
        self.driver.fails = True
        self.assertRaises(exception.InternalError, self.hard_reboot, instance)
        self.assertFalse(self.is_held)

    def rebuild(self, instance):
        """In place, which Nova does by destroying and spawning."""
        self.assertRaises(
            NotImplementedError,
            self.driver.rebuild,
            None,
            instance,
            None,
            evacuate=False,
        )

    def test_a_rebuild_in_place_that_fails_is_no_refused_claim(self):
        """The guest is destroyed by then: the server is broken."""
        instance = an_instance(task_state=task_states.REBUILD_SPAWNING)
        self.rebuild(instance)
        self.accelerators.attachments.busy = True
        error = self.assertRaises(
            exception.InstanceDeployFailure, self.spawn, instance
        )
        self.assertIn('fewer accelerators are free', str(error))
        error = self.assertRaises(
            exception.InstanceDeployFailure, self.mdevs, instance
        )
        self.assertIn('an accelerator has failed', str(error))
        # As it is for others.
        self.assertRaises(
            exception.ComputeResourcesUnavailable, self.mdevs, an_instance()
        )

    def test_cleanup_in_a_rebuild_does_not_release(self):
        self.spawn(an_instance())
        instance = an_instance(task_state=task_states.REBUILDING)
        self.rebuild(instance)
        self.cleanup(instance)
        self.assertTrue(self.is_held)
        self.cleanup(an_instance(task_state=task_states.DELETING))
        self.assertFalse(self.is_held)

    def test_cleanup_of_a_server_that_is_being_evacuated_does(self):
        """The destination may not have it yet."""
        for host in ('here', 'elsewhere'):
            self.spawn(an_instance())
            self.cleanup(
                an_instance(task_state=task_states.REBUILDING, host=host)
            )
            self.assertFalse(self.is_held)

    def test_the_guest_gets_what_is_held_once(self):
        self.spawn(an_instance())
        self.assertEqual([OURS], self.mdevs(an_instance()))
        self.assertEqual(
            [NOVAS, OURS], self.mdevs(an_instance(), [OURS, NOVAS])
        )

    def test_what_ports_have_is_held_with_the_guest(self):
        attachments = self.accelerators.attachments
        instance = an_instance(None)
        self.driver._get_guest_config(instance, PORTS, None, None)
        self.assertTrue(attachments.held_for_ports)
        self.driver._hard_reboot(None, instance, None, None)
        self.assertTrue(attachments.held_for_ports)
        self.cleanup(instance)
        self.assertFalse(attachments.held_for_ports)

    def test_a_stale_mdev_is_dropped(self):
        """Callers take all mediated devices of the old domain."""
        self.assertEqual([NOVAS], self.mdevs(an_instance(None), [OURS, NOVAS]))

    def test_nova_makes_no_mdevs_for_our_allocations(self):
        native = {'resources': {'VGPU': 1}}
        self.assertEqual(
            {'other': native},
            self.driver._vgpu_allocations({PROVIDER: native, 'other': native}),
        )
        self.assertEqual({}, self.driver._vgpu_allocations(None))


#: The server that has a partition.
INSTANCE = an_instance()


class PartitionedFabric(no_fabric.NoFabric):
    """Of a host where the first server has a partition."""

    fault = None

    def __init__(self, driver):
        self.driver = driver

    def has(self, instance_uuid):
        return instance_uuid == INSTANCE.uuid

    def confirm(self, instance_uuid):
        self.driver.domain.append('confirm')
        if self.fault:
            raise exceptions.FabricError(self.fault)


class TestCreateGuest(DriverTestCase):
    """Nova starts guests by this method; it resumes those that wait."""

    def setUp(self):
        super().setUp()
        self.calls = self.driver.domain = []
        self.fabric = PartitionedFabric(self.driver)
        self.accelerators.fabric = self.fabric

    def create(self, instance=INSTANCE, **options):
        self.calls.clear()
        return self.driver._create_guest(None, 'xml', instance, **options)

    def test_paused_until_its_partition_is_confirmed(self):
        self.create()
        self.assertEqual([('create', True), 'confirm', 'resume'], self.calls)

    def test_one_that_waits_for_its_networks(self):
        guest = self.create(pause=True)
        self.assertEqual([('create', True)], self.calls)
        guest.resume()
        self.assertEqual(['confirm', 'resume'], self.calls[1:])

    def test_no_tool_has_its_gpu_open_then(self):
        functions = []
        with (
            fixtures.MonkeyPatch(
                'nova_accel.host.nvidia_smi.kept_away',
                lambda sysfs, some: self.kept_away(functions, some),
            ),
            fixtures.MonkeyPatch(
                'nova_accel.virt.guest_xml.functions', lambda xml: [xml]
            ),
        ):
            self.create()
        self.assertEqual(['xml'], functions)
        self.assertEqual(
            ['away', ('create', True), 'may come', 'confirm', 'resume'],
            self.calls,
        )

    @contextlib.contextmanager
    def kept_away(self, functions, some):
        functions += some
        self.calls.append('away')
        yield
        self.calls.append('may come')

    def test_one_that_is_not_started(self):
        self.create(power_on=False)
        self.assertEqual([('create', False)], self.calls)

    def test_one_that_is_resumed(self):
        """It gets its devices later; what was saved must not be lost."""
        self.driver._resuming.add(INSTANCE.uuid)
        self.create()
        self.assertEqual([('create', False)], self.calls)

    def test_one_without_a_partition(self):
        other = types.SimpleNamespace(uuid='other')
        for fabric in (self.fabric, no_fabric.NoFabric()):
            self.accelerators.fabric = fabric
            self.create(other)
            self.assertEqual([('create', False)], self.calls)
            self.create(other, pause=True).resume()
            self.assertEqual([('create', True), 'resume'], self.calls)

    def test_its_partition_cannot_be_had(self):
        self.fabric.fault = 'partition 3 is lost'
        error = self.assertRaises(
            exception.ComputeResourcesUnavailable, self.create
        )
        # The server's owner reads it.
        self.assertNotIn('partition 3', str(error))
        self.assertEqual([('create', True), 'confirm', 'destroy'], self.calls)


class TestCyborgsKey(DriverTestCase):
    """With ARQs that Nova's own Cyborg client has bound."""

    def spawn(self, instance, accel_info=(OUR_ARQ,)):
        super().spawn(instance, accel_info)

    def instance(self):
        return an_instance(key='accel:device_profile')

    def test_spawn_holds_those_of_ours(self):
        self.spawn(self.instance())
        self.assertTrue(self.is_held)
        self.assertEqual(('arq',), self.accelerators.attachments.adopted)
        self.assertTrue(self.accelerators.attachments.is_new)
        self.assertEqual((), self.accelerators.attachments.allocations)

    def test_spawn_holds_nothing_of_cyborgs(self):
        self.spawn(self.instance(), [CYBORGS_ARQ])
        self.assertFalse(self.is_held)

    def test_a_failed_spawn_holds_nothing(self):
        self.failing_spawn(self.instance())
        self.assertFalse(self.is_held)

    def test_cleanup_releases(self):
        self.spawn(self.instance())
        self.cleanup(self.instance())
        self.assertFalse(self.is_held)

    def test_a_lost_race_means_another_host(self):
        self.accelerators.attachments.lost_race = True
        error = self.assertRaises(
            exception.ComputeResourcesUnavailable, self.spawn, self.instance()
        )
        self.assertIn(exceptions.Conflict.PUBLIC, str(error))

    def test_the_guest_gets_what_is_held_once(self):
        self.spawn(self.instance())
        self.assertEqual(
            [OURS],
            self.mdevs(self.instance(), accel_info=[OUR_ARQ, CYBORGS_ARQ]),
        )
        self.assertEqual([CYBORGS_ARQ], self.driver.accel_info)

    def test_no_guest_without_what_it_should_have(self):
        self.assertRaises(
            exception.ComputeResourcesUnavailable,
            self.mdevs,
            self.instance(),
            accel_info=[OUR_ARQ],
        )
        self.assertEqual(
            [], self.mdevs(self.instance(), accel_info=[CYBORGS_ARQ])
        )

    def test_nova_makes_no_mdevs_for_our_arqs(self):
        self.assertEqual(
            [CYBORGS_ARQ],
            self.driver._allocate_cyborg_mdevs([OUR_ARQ, CYBORGS_ARQ]),
        )
