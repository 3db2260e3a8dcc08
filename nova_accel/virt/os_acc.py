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

"""The front by which servers get and give back this host's accelerators.

The specification of os-acc defines it: ``initialize``, ``plug`` and
``unplug``, see "Cyborg-Nova-Glance Interaction in Compute Node". Each waits
until it is done. A caller that has other work meanwhile submits it to an
executor, as the specification shows.

Nova's libvirt driver makes a guest step by step. Its hooks therefore call the
two halves of ``plug``. :meth:`OsAcc.acquired` has workers program regions
while Nova downloads the image. :meth:`OsAcc.ready` waits for the workers,
where the guest's XML is made.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
from typing import Any

from nova import context as nova_context
from nova import objects
from nova.compute import vm_states
from nova.network import model as network_model
from oslo_log import log as logging

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import nova_server
from nova_accel.model.fpga import programming_record
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import extra_specs
from nova_accel.model.profiles import provider_allocation
from nova_accel.model.providers import host_view
from nova_accel.virt import guest_cells
from nova_accel.virt import server_request
from nova_accel.virt.fabric import no_fabric
from nova_accel.virt.fpga.programming import region_programmer
from nova_accel.virt.holding import attaching
from nova_accel.virt.holding import intents
from nova_accel.virt.publishing import publication

CONF = conf.CONF
LOG = logging.getLogger(__name__)

_UNALLOCATED = (
    'it has no accelerators, and none are allocated to it: it can '
    'only be deleted'
)


class OsAcc:
    """The accelerators of one host, for its servers.

    :param image: returns an image by its uuid, as Nova's image API has it
    :param cells: knows the NUMA nodes of guests
    """

    def __init__(
        self,
        nodename: str,
        current: host_view.CurrentState,
        publisher: publication.Publisher,
        attachments: attaching.Attachments,
        programmer: region_programmer.Programmer,
        image: Callable[[str], Mapping[str, Any]],
        cells: guest_cells.GuestCells,
        fabric: no_fabric.NoFabric,
    ) -> None:
        self._nodename = nodename
        self._current = current
        self._publisher = publisher
        self._attachments = attachments
        self._programmer = programmer
        self._image = image
        self._cells = cells
        self._fabric = fabric

    def initialize(self) -> None:
        """Wait until all devices are found and their traits published.

        :raises CyborgAgentUnavailable: it takes longer than
            ``publish_timeout_s``.
        """
        try:
            self._publisher.wait_published(CONF.nova_accel.publish_timeout_s)
        except exceptions.ServiceUnavailable as error:
            raise exceptions.CyborgAgentUnavailable(str(error)) from error

    def plug(
        self,
        instance_info: Mapping[str, str],
        selected_rp: Mapping[str, Any],
        flavor_extra_specs: Mapping[str, str],
    ) -> list[dict[str, str]]:
        """Hold accelerators for an instance, programmed and ready.

        :param instance_info: ``uuid``, ``name``, ``project_id`` and, unless
            it boots from a volume, ``image_id``
        :param selected_rp: ``uuid`` of the resource provider, its
            ``resources`` as they are allocated (resource class -> units) and
            its ``traits``
        :param flavor_extra_specs: the name of a device profile; or
            ``resources:<class>``, of a class that the provider has allocated,
            with ``trait:CUSTOM_<name>`` for it. Both may have
            ``accel:bitstream_id``, ``accel:function_id`` or
            ``accel:function_name``
        :returns: the ``pci_id`` of each accelerator, or its ``mdev_uuid`` if
            it is a mediated device
        :raises InvalidRequest: the flavor asks for nothing of the provider;
            or the flavor and the image ask for two bitstreams.
        :raises AcceleratorError: the instance holds no more than before.
        """
        allocation = provider_allocation.ProviderAllocation(
            selected_rp['uuid'],
            selected_rp['resources'],
            frozenset(selected_rp['traits']),
        )
        asked = extra_specs.get_requested(
            instance_info['name'], flavor_extra_specs, allocation
        )
        image_id = instance_info.get('image_id')
        instance = server_request.of_os_acc(
            instance_info,
            flavor_extra_specs,
            self._image(image_id) if image_id else {},
        )
        taken = self._not_held(instance.uuid)
        self.acquire(instance, asked, [allocation])
        with self._begun(None, instance, taken, lambda: False):
            return [_handle_field(arq) for arq in self.ready(instance)]

    def unplug(self, instance_info: Mapping[str, str]) -> int:
        """Give back an instance's accelerators, also those of its ports.

        Does not raise: a release that fails now is tried again later.

        :param instance_info: ``uuid``, by which the log names the instance
        :returns: how many accelerators are given back
        """
        return self._release(instance_info['uuid'], arq_types.OF_GUEST)

    @contextlib.contextmanager
    def acquired(
        self,
        context: nova_context.RequestContext | None,
        instance: objects.Instance,
        allocations: Collection[provider_allocation.ProviderAllocation],
        found: server_request.Split = server_request.NOTHING,
        keeps: Callable[[], bool] = lambda: False,
    ) -> Iterator[None]:
        """Hold what the instance's flavor asks for, and begin to program it.

        The body calls :meth:`ready`. If the body fails, the instance holds
        what it held before.

        :param context: the user's, who must be allowed to see the bitstreams;
            None for the service's
        :param allocations: those that the instance has of our providers
        :param found: the ARQs that Nova has got for the instance
        :param keeps: whether the instance keeps what it has although the
            body failed
        :raises AcceleratorError: the instance holds no more than before.
        """
        self._attachments.mend(instance.uuid)
        taken = self._not_held(instance.uuid)
        profile = server_request.profile(instance.flavor, found)
        try:
            if profile is not None and found.ours:
                self._attachments.hold(
                    intents.adopt(instance.uuid, found.ours, is_new=True)
                )
            elif profile is not None and (
                allocations or arq_types.Role.ACTIVE in taken
            ):
                self.acquire(instance, profile, allocations, is_new=True)
            elif profile is not None:
                # Nova removes those of a server whose rebuild failed.
                LOG.warning(
                    'Instance %s keeps its accelerators, although '
                    'Placement has none allocated to it',
                    instance.uuid,
                )
            with self._begun(context, instance, taken, keeps):
                yield
        except BaseException:
            # It had no free unit, or Nova is about to lose its allocations.
            if profile is not None:
                self._current.is_doubtful = True
            raise

    @contextlib.contextmanager
    def regained(
        self,
        context: nova_context.RequestContext,
        instance: objects.Instance,
        allocations: Callable[
            [], Collection[provider_allocation.ProviderAllocation]
        ],
    ) -> Iterator[None]:
        """Hold what is allocated to the instance, if it holds nothing.

        It is for a guest that is made again, and is otherwise like
        :meth:`acquired`. An instance holds nothing if its accelerators could
        not be acquired, for example on the destination of a resize. Nova then
        restores the instance's old flavor, but keeps the allocations of the
        new one.

        :param allocations: asks for those that the instance has of our
            providers
        :raises AcceleratorError: the instance holds nothing.
        """
        # Nova is about to destroy the guest.
        self._attachments.mend(instance.uuid)
        profile = server_request.profile(instance.flavor)
        if profile is None or self._recovered(instance.uuid):
            yield
            return
        profiles = [profile]
        if instance.new_flavor is not None:
            profiles.append(
                server_request.profile(instance.new_flavor) or profile
            )
        self._acquire_one(instance, profiles, allocations())
        # Nova starts guests with a context that no other service accepts.
        with self._begun(
            context if context.auth_token else None,
            instance,
            [arq_types.Role.ACTIVE],
            lambda: False,
        ):
            yield

    def acquire(
        self,
        instance: objects.Instance,
        asked: device_profile.Asked,
        allocations: Iterable[provider_allocation.ProviderAllocation],
        role: arq_types.Role = arq_types.Role.ACTIVE,
        is_new: bool = False,
    ) -> None:
        """Bind the instance's ARQs.

        :param is_new: whether the limits of the project matter: they do for
            what the instance does not hold yet, here or on another host
        :raises AcceleratorError: the instance holds no more than before.
        """
        self.initialize()
        owner = instance.uuid, instance.project_id
        near = self._cells.numa_nodes(instance, role)
        self._attachments.hold(
            intents.acquire(*owner, asked, allocations, role, near, is_new)
        )

    def ready(
        self,
        instance: objects.Instance,
        found: server_request.Split = server_request.NOTHING,
        role: arq_types.Role = arq_types.Role.ACTIVE,
    ) -> tuple[arq_types.Arq, ...]:
        """Make the devices of the instance ready for its guest.

        ARQs that the journal has lost are recovered from the API.

        :param found: the ARQs that Nova has got for the server, none if Nova
            did not ask
        :raises AcceleratorError: a device cannot be made ready, or there is
            none although the flavor has a device profile of ours.
        """
        self._attachments.mend(instance.uuid)
        held = {
            arq.uuid
            for arq in self._attachments.held.arqs_of(instance.uuid, role)
        }
        missing = set(found.ours) - held
        is_lost = not held and server_request.may_ask_us(
            instance.flavor, found
        )
        if is_lost:
            LOG.warning(
                'The journal has no accelerators of the instance; asking '
                'the accelerator API for them',
                instance=instance,
            )
        if is_lost or missing:
            # No host has adopted them, if the server was taken over.
            self._attachments.recover(instance.uuid, role, missing)
        arqs = self._ready(instance, role)
        if arqs:
            return arqs
        profile = server_request.profile(instance.flavor, found)
        if profile is not None:
            raise exceptions.DeviceError(
                f'instance {instance.uuid}, whose flavor asks for {profile}, '
                'has no accelerators on this host'
            )
        return ()

    def ready_ports(
        self,
        instance: objects.Instance,
        network_info: network_model.NetworkInfo,
    ) -> None:
        """Hold the devices of the instance's ports, and make them ready.

        :raises AcceleratorError: an ARQ cannot be held, or a device cannot be
            made ready.
        """
        self._attachments.mend(instance.uuid)
        held = {
            arq.uuid: str(arq.handle.address)
            for arq in self._attachments.held.arqs_of(
                instance.uuid, arq_types.Role.PORT
            )
        }
        named = nova_server.arqs_of_ports(
            network_info, self._current.view.functions.union(held.values())
        )
        if named - held.keys():
            if held or instance.vm_state == vm_states.BUILDING:
                self._attachments.hold(
                    intents.adopt(
                        instance.uuid, sorted(named), arq_types.Role.PORT
                    )
                )
            else:
                # A guest that is taken over has them already.
                self._attachments.recover(
                    instance.uuid, arq_types.Role.PORT, named
                )
        self._ready(instance, arq_types.Role.PORT)

    def split(
        self,
        accel_info: Iterable[server_request.WireArq] | None,
    ) -> server_request.Split:
        """Tell ARQs of our devices from those of a real Cyborg."""
        held = self._attachments.held.arqs()
        ours = self._current.view.layout.uuids | {
            arq.device_rp_uuid for arq in held
        }
        # After the first time, Nova passes the ARQs of ports, too.
        ports = {
            arq.uuid
            for arq in self._attachments.held.arqs(arq_types.Role.PORT)
        }
        return server_request.split(
            (arq for arq in accel_info or () if arq['uuid'] not in ports),
            self._nodename,
            ours,
            {arq.uuid for arq in held},
        )

    def owns_mdev(self, uuid: str) -> bool:
        """Whether a mediated device is one that we make and hand out."""
        return uuid in self._current.view.handles or any(
            arq.handle.uuid == uuid for arq in self._attachments.held.arqs()
        )

    def _ready(
        self, instance: objects.Instance, role: arq_types.Role
    ) -> tuple[arq_types.Arq, ...]:
        """Wait until the regions hold what is asked of them, then plug."""
        arqs = self._attachments.held.arqs_of(instance.uuid, role)
        if arqs:
            self._programmer.ready(
                arqs,
                programming_record.Asker(
                    instance.project_id, instance.user_id, instance.uuid
                ),
                server_request.image_properties(instance),
                is_new=role is arq_types.Role.INCOMING,
            )
        plugged = self._attachments.plug(instance.uuid, role)
        if role is not arq_types.Role.PORT:
            self._fabric.ready(instance.uuid, plugged)
        return plugged

    def _acquire_one(
        self,
        instance: objects.Instance,
        profiles: Sequence[str],
        allocations: Collection[provider_allocation.ProviderAllocation],
    ) -> None:
        """Acquire the first profile that fits the allocations.

        :raises AcceleratorError: none fits, or it cannot be acquired.
        """
        if not allocations:
            raise exceptions.DeviceError(
                f'instance {instance.uuid}, whose flavor asks for '
                f'{profiles[0]}, has no accelerators on this host, and '
                'Placement has none allocated to it',
                public=_UNALLOCATED,
            )
        LOG.warning(
            'Instance %s has no accelerators; acquiring what is '
            'allocated to it',
            instance.uuid,
        )
        *others, last = dict.fromkeys(profiles)
        for profile in others:
            with contextlib.suppress(exceptions.NoAssignment):
                self.acquire(instance, profile, allocations)
                return
        self.acquire(instance, last, allocations)

    @contextlib.contextmanager
    def _begun(
        self,
        context: nova_context.RequestContext | None,
        instance: objects.Instance,
        taken: Iterable[arq_types.Role],
        keeps: Callable[[], bool],
    ) -> Iterator[None]:
        """Program what is held while the body runs.

        :param taken: the roles that are released if the body fails
        """
        asking = instance if context is None else context
        try:
            self._programmer.start(
                self._attachments.held.arqs_of(instance.uuid),
                programming_record.Asker(
                    # The server's project: the user may be an administrator.
                    instance.project_id,
                    asking.user_id,
                    instance.uuid,
                ),
                server_request.image_properties(instance),
                context,
            )
            yield
        except BaseException:
            self._programmer.abandon(instance.uuid)
            if not keeps():
                self._release(instance.uuid, taken)
            raise

    def _recovered(self, instance_uuid: str) -> bool:
        """Whether the instance holds anything, also if only the API knows."""
        if not self._attachments.held.has(
            instance_uuid, arq_types.Role.ACTIVE
        ):
            self._attachments.recover(instance_uuid)
        return self._attachments.held.has(instance_uuid, arq_types.Role.ACTIVE)

    def _not_held(self, instance_uuid: str) -> list[arq_types.Role]:
        """The roles in which the instance holds nothing yet."""
        return [
            role
            for role in arq_types.OF_GUEST
            if not self._attachments.held.has(instance_uuid, role)
        ]

    def _release(
        self, instance_uuid: str, roles: Iterable[arq_types.Role]
    ) -> int:
        return sum(
            self._attachments.release(instance_uuid, role) for role in roles
        )


def _handle_field(arq: arq_types.Arq) -> dict[str, str]:
    if arq.handle.mdev_type is not None:
        return {'mdev_uuid': arq.handle.uuid}
    return {'pci_id': str(arq.handle.address)}
