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

"""The accelerators of the host that one nova-compute runs on."""

from collections.abc import Iterable

from nova import context as nova_context
from nova import objects
from nova.compute import provider_tree
from nova.network import model as network_model
from oslo_log import log as logging

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.bitstreams import store
from nova_accel.client import accelerator_api
from nova_accel.model import arq
from nova_accel.model import matching
from nova_accel.model import programming
from nova_accel.model import reshape
from nova_accel.virt import accel_info as accel_info_module
from nova_accel.virt import attachments as attachments_module
from nova_accel.virt import flavor
from nova_accel.virt import image_properties
from nova_accel.virt import programming as programming_module
from nova_accel.virt import providers as providers_module
from nova_accel.virt import publisher as publisher_module
from nova_accel.virt import reconcile

CONF = conf.CONF
LOG = logging.getLogger(__name__)


class HostAccelerators:
    """One host's publisher and attachments, for the driver's hooks."""

    def __init__(self, node: publisher_module.Node,
                 api: accelerator_api.AcceleratorApi,
                 publisher: publisher_module.Publisher,
                 attachments: attachments_module.Attachments,
                 reconciler: reconcile.Reconciler,
                 providers: providers_module.Providers,
                 programmer: programming_module.Programmer,
                 bitstreams: store.Store) -> None:
        self.service_host = node.service_host
        self._nodename = node.nodename
        self._api = api
        self.attachments = attachments
        self.reconciler = reconciler
        self._publisher = publisher
        self._providers = providers
        self.programmer = programmer
        self.bitstreams = bitstreams

    def begin_update(self) -> None:
        """See :meth:`nova_accel.virt.providers.Providers.begin_update`."""
        self._providers.begin_update()

    def update_provider_tree(
        self, tree: provider_tree.ProviderTree,
        allocations: reshape.Allocations | None = None,
    ) -> bool:
        """Apply what is known; say whether it changed the tree.

        :raises ReshapeNeeded: Nova is to call again, with the allocations.
        :raises ReshapeFailed: nothing is changed.
        """
        self._publisher.start_cycle()
        return self._providers.update(tree, allocations)

    def wait_published(self) -> None:
        """Wait until the API knows the host's devices.

        :raises ServiceUnavailable: it does not within ``publish_timeout_s``.
        """
        self._publisher.wait_published(CONF.nova_accel.publish_timeout_s)

    def acquire(self, instance: objects.Instance, profile: str,
                providers: Iterable[matching.Provider],
                role: arq.Role = arq.Role.ACTIVE) -> None:
        """Bind the instance's ARQs.

        :raises AcceleratorError: it holds no more than it did before.
        """
        self.wait_published()
        self.attachments.acquire(
            instance.uuid, instance.project_id, profile, providers, role)

    def start_programming(self, context: nova_context.RequestContext,
                          instance: objects.Instance) -> None:
        """Begin to program what the instance's regions are to hold.

        :meth:`plug` waits for it; otherwise it is to be abandoned.

        :raises AcceleratorError: it cannot begin.
        """
        self.programmer.start(
            self.attachments.held_by(instance.uuid),
            programming.Asker(context.project_id, context.user_id,
                              instance.uuid),
            image_properties.of(instance), context)

    def abandon_programming(self, instance: objects.Instance) -> None:
        """Touch no region for the instance any more."""
        self.programmer.abandon(instance.uuid)

    def held_on(self, nodename: str,
                instance: objects.Instance) -> tuple[arq.Arq, ...]:
        """The active ARQs of an instance on another host.

        :raises AcceleratorError: the API does not say.
        """
        return self._api.held_on(nodename, instance.uuid, arq.Role.ACTIVE)

    def split(self, accel_info: Iterable[accel_info_module.WireArq] | None,
              ) -> accel_info_module.Split:
        """Tell ARQs of our devices from those of a real Cyborg."""
        ours = self._publisher.view.layout.uuids | {
            request.device_rp_uuid
            for request in self.attachments.held_arqs()}
        # Except for the first time, Nova puts those of ports in as well.
        ports = {request.uuid for request
                 in self.attachments.held_arqs(arq.Role.PORT)}
        return accel_info_module.split(
            (request for request in accel_info or ()
             if request['uuid'] not in ports), self._nodename, ours)

    def plug(self, instance: objects.Instance,
             found: accel_info_module.Split = accel_info_module.NOTHING,
             role: arq.Role = arq.Role.ACTIVE) -> tuple[arq.Arq, ...]:
        """Make the devices of the instance ready for its guest.

        What the journal has lost is recovered from the API.

        :param found: the ARQs that Nova has got for the server, none if it
            did not ask
        :raises AcceleratorError: one cannot be made ready, or there is none
            although the flavor has a device profile of ours.
        """
        arqs = self._plug(instance, role)
        if arqs or not flavor.may_ask_us(instance.flavor, found):
            return arqs
        LOG.warning('The journal has no accelerators of instance %s; asking '
                    'the accelerator API for them', instance.uuid)
        self.attachments.recover_of(instance.uuid, role)
        arqs = self._plug(instance, role)
        profile = flavor.profile(instance.flavor, found)
        if profile is not None and not arqs:
            raise exceptions.DeviceError(
                f'instance {instance.uuid}, whose flavor asks for {profile}, '
                'has no accelerators on this host')
        return arqs

    def plug_ports(self, instance: objects.Instance,
                   network_info: network_model.NetworkInfo) -> None:
        """Hold, and make ready, the devices that the instance's ports have.

        :raises AcceleratorError: an ARQ cannot be held, or a device not be
            made ready.
        """
        held = {request.uuid: str(request.handle.address) for request
                in self.attachments.held_by(instance.uuid, arq.Role.PORT)}
        named = accel_info_module.of_ports(
            network_info,
            self._publisher.view.functions.union(held.values()))
        if named - held.keys():
            self.attachments.adopt(
                instance.uuid, sorted(named), arq.Role.PORT)
        self._plug(instance, arq.Role.PORT)

    def _plug(self, instance: objects.Instance,
              role: arq.Role) -> tuple[arq.Arq, ...]:
        """Have regions hold what they are to, then plug."""
        arqs = self.attachments.held_by(instance.uuid, role)
        if arqs:
            self.programmer.ready(
                arqs, programming.Asker(
                    instance.project_id, instance.user_id, instance.uuid),
                image_properties.of(instance),
                is_new=role is arq.Role.INCOMING)
        return self.attachments.plug(instance.uuid, role)

    def owns_mdev(self, uuid: str) -> bool:
        """Whether a mediated device is one that we make and hand out."""
        return (uuid in self._publisher.view.drivers
                or any(request.handle.uuid == uuid
                       for request in self.attachments.held_arqs()))
