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

"""Thin hooks over Nova's libvirt driver: when to acquire, plug and release.

What each server operation calls is in ``doc/source/contributor``; the rules
are in ``nova_accel.model`` and the work is done by the modules beside this.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import copy
import inspect
from typing import Any

from nova import context as nova_context
from nova import exception
from nova import objects
from nova.compute import task_states
from nova.virt.libvirt import config as vconfig
from nova.virt.libvirt import driver as libvirt_driver

from nova_accel import exceptions
from nova_accel.host import node_devices
from nova_accel.model import device_profile
from nova_accel.virt import guest as guest_xml
from nova_accel.virt import host_accelerators
from nova_accel.virt import provider_tree as tree_module

#: Rebuilding in place destroys the guest, but it keeps its devices.
_REBUILDING = frozenset({
    task_states.REBUILDING, task_states.REBUILD_BLOCK_DEVICE_MAPPING,
    task_states.REBUILD_SPAWNING})

_NOT_YET = ('a server with accelerators cannot do this in this version of '
            'nova_accel')

_GUEST_CONFIG = inspect.signature(
    libvirt_driver.LibvirtDriver._get_guest_config)


class AcceleratorMixin:
    """Gives a libvirt driver accelerators."""

    _accelerators: host_accelerators.HostAccelerators

    # Of the driver that it is mixed into.
    _host: Any
    provider_tree: Any
    supported_vgpu_types: list[str]
    instance_exists: Callable[[objects.Instance], bool]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._rebooting: set[str] = set()

    def init_host(self, host: str) -> None:
        # A nova-compute that fails later than this does not exit: it waits
        # for threads that Nova has started for libvirt.
        host_accelerators.check_configured()
        super().init_host(host)  # type: ignore[misc]
        self._accelerators = host_accelerators.start(self._host, host)

    def update_provider_tree(
        self, provider_tree: Any, nodename: str,
        allocations: dict[str, Any] | None = None,
    ) -> None:
        update = super().update_provider_tree  # type: ignore[misc]
        if self.supported_vgpu_types:
            # Then Nova looks at all mediated devices, and here without the
            # lock that it otherwise takes for that.
            update = node_devices.exclusive(update)
        update(provider_tree, nodename, allocations=allocations)
        if self._accelerators.update_provider_tree(provider_tree, nodename):
            # Nova keeps a copy for spawn, made before our part was there.
            self.provider_tree = copy.deepcopy(provider_tree)

    def spawn(self, context: nova_context.RequestContext,
              instance: objects.Instance, image_meta: objects.ImageMeta,
              injected_files: Any, admin_password: Any,
              allocations: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        with self._acquired(instance, allocations):
            super().spawn(  # type: ignore[misc]
                context, instance, image_meta, injected_files,
                admin_password, allocations, *args, **kwargs)

    def cleanup(self, context: nova_context.RequestContext,
                instance: objects.Instance, *args: Any,
                **kwargs: Any) -> None:
        super().cleanup(  # type: ignore[misc]
            context, instance, *args, **kwargs)
        if not self._keeps_accelerators(instance):
            self._accelerators.attachments.release(instance.uuid)

    def _hard_reboot(self, context: nova_context.RequestContext,
                     instance: objects.Instance, *args: Any,
                     **kwargs: Any) -> None:
        # It calls destroy(), and with it cleanup(), on its way.
        self._rebooting.add(instance.uuid)
        try:
            super()._hard_reboot(  # type: ignore[misc]
                context, instance, *args, **kwargs)
        finally:
            self._rebooting.discard(instance.uuid)

    def suspend(self, context: nova_context.RequestContext,
                instance: objects.Instance) -> None:
        # libvirt does not save a guest that has a function of the host.
        if self._accelerators.attachments.holds_pci(instance.uuid):
            raise exception.InstanceFaultRollback(
                exception.InstanceSuspendFailure(reason=_NOT_YET))
        super().suspend(context, instance)  # type: ignore[misc]

    def migrate_disk_and_power_off(
        self, context: nova_context.RequestContext,
        instance: objects.Instance, dest: str, flavor: objects.Flavor,
        *args: Any, **kwargs: Any,
    ) -> Any:
        if (_profile(instance.flavor) is not None
                or _profile(flavor) is not None):
            raise exception.InstanceFaultRollback(
                exception.ResizeError(reason=_NOT_YET))
        return super().migrate_disk_and_power_off(  # type: ignore[misc]
            context, instance, dest, flavor, *args, **kwargs)

    def check_can_live_migrate_source(
        self, context: nova_context.RequestContext,
        instance: objects.Instance, *args: Any, **kwargs: Any,
    ) -> Any:
        if self._accelerators.attachments.holds(instance.uuid):
            raise exception.MigrationPreCheckError(reason=_NOT_YET)
        return super().check_can_live_migrate_source(  # type: ignore[misc]
            context, instance, *args, **kwargs)

    def _get_guest_config(self, *args: Any,
                          **kwargs: Any) -> vconfig.LibvirtConfigGuest:
        """The one place where every guest's XML is made."""
        bound = _GUEST_CONFIG.bind(self, *args, **kwargs)
        instance = bound.arguments['instance']
        with _as_unavailable():
            arqs = self._accelerators.plug(instance, _profile(instance.flavor))
        # Callers harvest all mediated devices of the old domain.
        bound.arguments['mdevs'] = [
            uuid for uuid in bound.arguments.get('mdevs') or ()
            if not self._accelerators.owns_mdev(uuid)]
        guest = super()._get_guest_config(  # type: ignore[misc]
            *bound.args[1:], **bound.kwargs)
        for hostdev in guest_xml.hostdevs(arqs):
            guest.add_device(hostdev)
        return guest

    def _vgpu_allocations(self, allocations: dict[str, Any]) -> Any:
        # Nova would make mediated devices of its own for our VGPU units.
        ours = set(tree_module.ours(self.provider_tree))
        return super()._vgpu_allocations(  # type: ignore[misc]
            {uuid: allocation for uuid, allocation
             in (allocations or {}).items() if uuid not in ours})

    @contextlib.contextmanager
    def _acquired(self, instance: objects.Instance,
                  allocations: dict[str, Any]) -> Iterator[None]:
        """Hold the instance's accelerators; not if the body fails."""
        profile = _profile(instance.flavor)
        if profile is None:
            yield
            return
        attachments = self._accelerators.attachments
        with _as_unavailable():
            kept = attachments.holds(instance.uuid)
            self._accelerators.acquire(
                instance, profile, tree_module.allocated(
                    self.provider_tree, allocations))
        try:
            yield
        except BaseException:
            # What a rebuild kept must be there for the next try, and what a
            # guest still has is released when it is destroyed.
            if not kept and not self.instance_exists(instance):
                attachments.release(instance.uuid)
            raise

    def _keeps_accelerators(self, instance: objects.Instance) -> bool:
        """Whether the guest is only torn down to be made again here."""
        return (instance.uuid in self._rebooting
                or (instance.task_state in _REBUILDING
                    and instance.host == self._accelerators.service_host))


class LibvirtDriver(AcceleratorMixin, libvirt_driver.LibvirtDriver):
    """``compute_driver = nova_accel.LibvirtDriver``"""


def _profile(flavor: objects.Flavor) -> str | None:
    """The name of the device profile that the flavor asks for."""
    return flavor.extra_specs.get(device_profile.FLAVOR_KEY)


@contextlib.contextmanager
def _as_unavailable() -> Iterator[None]:
    """Translate our faults to the one that makes Nova try another host."""
    try:
        yield
    except exceptions.AcceleratorError as error:
        raise exception.ComputeResourcesUnavailable(
            reason=str(error)) from error
