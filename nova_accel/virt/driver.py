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

"""A libvirt driver with thin hooks that acquire, plug and release devices.

``doc/source/contributor`` says which hooks each server operation calls. The
rules are in ``nova_accel.model``. The modules beside this one do the work.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import copy
import inspect
from typing import Any

from nova import context as nova_context
from nova import objects
from nova.virt.libvirt import config as vconfig
from nova.virt.libvirt import driver as libvirt_driver
from nova.virt.libvirt import guest as libvirt_guest

from nova_accel import nova_releases
from nova_accel.client import our_allocations
from nova_accel.host import libvirt_devices
from nova_accel.host import nvidia_smi
from nova_accel.virt import cold_migration
from nova_accel.virt import fault_translation
from nova_accel.virt import guest_partition
from nova_accel.virt import guest_topology
from nova_accel.virt import guest_xml
from nova_accel.virt import instance_event
from nova_accel.virt import joined_guest
from nova_accel.virt import live_migration
from nova_accel.virt import profile_setting
from nova_accel.virt import rebuild
from nova_accel.virt import replacing
from nova_accel.virt import rpc_agent
from nova_accel.virt import server_flavor
from nova_accel.virt import server_request
from nova_accel.virt import suspend
from nova_accel.virt import wiring
from nova_accel.virt.publishing import nova_tree

_AccelInfo = Sequence[server_request.WireArq] | None

_GUEST_CONFIG = inspect.signature(
    libvirt_driver.LibvirtDriver._get_guest_config
)


class AcceleratorMixin(
    replacing.ReplacementMixin,
    profile_setting.ProfileMixin,
    rebuild.RebuildMixin,
):
    """Gives a libvirt driver accelerators."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._rebooting: set[str] = set()
        self._resuming: set[str] = set()

    def init_host(self, host: str) -> None:
        # If nova-compute fails later than this, it does not exit: it waits
        # for threads that Nova has started for libvirt.
        wiring.check_configured()
        super().init_host(host)
        self._accelerators = wiring.start(
            self._host, host, self._update_resources
        )
        self.os_acc = self._accelerators.os_acc
        self._rpc_agent = rpc_agent.RpcAgent(
            host,
            rpc_agent.Endpoint(
                self._accelerators.programmer,
                self._accelerators.bitstreams,
                self.replace_failed,
                self.set_profile,
                self._accelerators.cycle.hurry,
            ),
        )
        self._rpc_agent.start()
        self._accelerators.fabric.watch()

    def cleanup_host(self, host: str) -> None:
        self._accelerators.fabric.end()
        self._rpc_agent.stop()
        super().cleanup_host(host)

    def get_available_resource(self, nodename: str) -> dict[str, Any]:
        self._accelerators.providers.begin_update()
        resources: dict[str, Any] = super().get_available_resource(nodename)
        # nova-scheduler weighs hosts by them without asking anybody.
        resources['stats'] = {
            **(resources.get('stats') or {}),
            **self._accelerators.providers.stats(),
        }
        return resources

    def update_provider_tree(
        self,
        provider_tree: Any,
        nodename: str,
        allocations: dict[str, Any] | None = None,
    ) -> None:
        update = super().update_provider_tree
        if self.supported_vgpu_types:
            # With such types Nova looks at all mediated devices here. It
            # takes a lock for that elsewhere, but not here.
            update = libvirt_devices.exclusive(update)
        update(provider_tree, nodename, allocations=allocations)
        self._accelerators.cycle.start()
        if self._accelerators.providers.update(provider_tree, allocations):
            # Nova keeps a copy of the tree for spawn. It was made before our
            # part was in the tree.
            self.provider_tree = copy.deepcopy(provider_tree)

    def _update_resources(self) -> None:
        """Have Nova update its resources as it does from time to time.

        Nova takes its own lock for it, so two updates wait for each other.
        """
        # The manager's method for it would not tell of a failure.
        self.virtapi._compute.rt.update_available_resource(
            nova_context.get_admin_context(), self._accelerators.node.nodename
        )

    def spawn(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        image_meta: objects.ImageMeta,
        injected_files: Any,
        admin_password: Any,
        allocations: dict[str, Any],
        *args: Any,
        accel_info: _AccelInfo = None,
        **kwargs: Any,
    ) -> None:
        # A guest that exists already keeps what it has until it is
        # destroyed.
        with self._translated(context, instance):
            if self._accelerators.attachments.settle(instance.uuid):
                server_flavor.read_again(instance)
                allocations = dict(our_allocations.of_consumer(instance.uuid))
        with (
            self._translated(context, instance),
            self.os_acc.acquired(
                context,
                instance,
                nova_tree.allocated(self.provider_tree, allocations),
                self.os_acc.split(accel_info),
                keeps=lambda: self.instance_exists(instance),
            ),
        ):
            super().spawn(
                context,
                instance,
                image_meta,
                injected_files,
                admin_password,
                allocations,
                *args,
                accel_info=accel_info,
                **kwargs,
            )

    def cleanup(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().cleanup(context, instance, *args, **kwargs)
        if not self._keeps_accelerators(instance):
            self.os_acc.unplug({'uuid': instance.uuid})

    def _hard_reboot(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        # Nova's method calls destroy(), which calls cleanup().
        self._rebooting.add(instance.uuid)
        try:
            with (
                fault_translation.as_unavailable(),
                self.os_acc.regained(
                    context,
                    instance,
                    lambda: nova_tree.allocated(
                        self.provider_tree,
                        our_allocations.of_consumer(instance.uuid),
                    ),
                ),
            ):
                super()._hard_reboot(context, instance, *args, **kwargs)
        finally:
            self._rebooting.discard(instance.uuid)

    def _get_guest_config(
        self, *args: Any, **kwargs: Any
    ) -> vconfig.LibvirtConfigGuest:
        """The one place where every guest's XML is made."""
        bound = _GUEST_CONFIG.bind(self, *args, **kwargs)
        instance = bound.arguments['instance']
        context = bound.arguments.get('context')
        if instance.uuid in self._rebooting:
            self._made_again(instance)
        with self._translated(context, instance):
            self.os_acc.ready_ports(instance, bound.arguments['network_info'])
            # Nova may pass the ARQs of ports, too.
            found = self.os_acc.split(bound.arguments.get('accel_info'))
            bound.arguments['accel_info'] = list(found.others)
            arqs = self.os_acc.ready(instance, found)
        # Nova's callers pass all mediated devices of the old domain.
        bound.arguments['mdevs'] = [
            uuid
            for uuid in bound.arguments.get('mdevs') or ()
            if not self.os_acc.owns_mdev(uuid)
        ]
        guest = super()._get_guest_config(*bound.args[1:], **bound.kwargs)
        if arqs:
            with self._translated(context, instance):
                guest_topology.add(
                    guest,
                    instance,
                    arqs,
                    self._accelerators.sysfs,
                    self.capabilities,
                )
        return guest

    def _create_guest(
        self,
        context: nova_context.RequestContext,
        xml: str,
        instance: objects.Instance,
        power_on: bool = True,
        pause: bool = False,
        post_xml_callback: Callable[[], None] | None = None,
    ) -> libvirt_guest.Guest:
        """The one place where guests are started, but for soft reboots."""
        waits = (
            (power_on or pause)
            # A guest that is resumed gets its devices later.
            and instance.uuid not in self._resuming
            and self._accelerators.fabric.has(instance.uuid)
        )
        functions = guest_xml.functions(xml)
        with contextlib.ExitStack() as stack:
            if functions and (power_on or pause):
                with self._translated(context, instance):
                    stack.enter_context(
                        nvidia_smi.kept_away(
                            self._accelerators.sysfs, functions
                        )
                    )
            guest: libvirt_guest.Guest = super()._create_guest(
                context,
                xml,
                instance,
                power_on,
                pause or waits,
                post_xml_callback,
            )
        if not waits:
            return guest

        def confirm() -> None:
            with self._translated(context, instance):
                self._accelerators.fabric.confirm(instance.uuid)

        joined = joined_guest.JoinedGuest(guest, confirm)
        if not pause:
            joined.resume()
        return joined

    def _vgpu_allocations(self, allocations: dict[str, Any]) -> Any:
        # Nova would make mediated devices of its own for our VGPU units.
        ours = set(nova_tree.ours(self.provider_tree))
        return super()._vgpu_allocations(
            {
                uuid: allocation
                for uuid, allocation in (allocations or {}).items()
                if uuid not in ours
            }
        )

    def _allocate_cyborg_mdevs(self, accel_info: _AccelInfo) -> Any:
        # Nova 34 would define them permanently, and Nova 33 does not call
        # this. Ours are made with the guest.
        return super()._allocate_cyborg_mdevs(
            self.os_acc.split(accel_info).others
        )

    def _get_mdev_capabilities_for_dev(
        self, devname: str, types: Sequence[str] | None = None
    ) -> dict[str, Any]:
        # With native vGPUs, Nova assumes that a parent of mediated devices is
        # a PCI function, unless its configuration names the parent.
        if not (
            devname.startswith('pci_')
            or nova_releases.is_virtual_mdev_parent(self, devname)
        ):
            return {'dev_id': devname, 'types': {}}
        found: dict[str, Any] = super()._get_mdev_capabilities_for_dev(
            devname, types
        )
        return found

    @contextlib.contextmanager
    def _translated(
        self,
        context: nova_context.RequestContext | None,
        instance: objects.Instance,
    ) -> Iterator[None]:
        """Tell and translate our faults while a guest is made."""
        with (
            fault_translation.as_failed()
            if self._rebuilds_in_place(instance)
            else fault_translation.as_unavailable(),
            fault_translation.as_aborted(instance.uuid),
            instance_event.record_fault(context, instance),
        ):
            yield

    def _keeps_accelerators(self, instance: objects.Instance) -> bool:
        """Whether the guest is only torn down to be made again here."""
        return instance.uuid in self._rebooting or self._rebuilds_in_place(
            instance
        )


class LibvirtDriver(
    guest_partition.GuestPartitionMixin,
    cold_migration.MigrationMixin,
    live_migration.LiveMigrationMixin,
    AcceleratorMixin,
    suspend.SuspendMixin,
    libvirt_driver.LibvirtDriver,
):
    """``compute_driver = nova_accel.LibvirtDriver``"""
