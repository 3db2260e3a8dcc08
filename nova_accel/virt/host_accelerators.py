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

from nova import objects
from nova.compute import provider_tree

from nova_accel.bitstreams import store
from nova_accel.client import accelerator_api
from nova_accel.model import arq
from nova_accel.model import reshape
from nova_accel.virt import accel_info as accel_info_module
from nova_accel.virt import os_acc as os_acc_module
from nova_accel.virt.fpga import programmer as programmer_module
from nova_accel.virt.holding import attachments as attachments_module
from nova_accel.virt.holding import reconcile
from nova_accel.virt.publishing import providers as providers_module
from nova_accel.virt.publishing import publisher as publisher_module


class HostAccelerators:
    """One host's publisher and attachments, for the driver's hooks.

    What its servers get is had of ``os_acc``.
    """

    def __init__(self, node: publisher_module.Node,
                 api: accelerator_api.AcceleratorApi,
                 publisher: publisher_module.Publisher,
                 attachments: attachments_module.Attachments,
                 reconciler: reconcile.Reconciler,
                 providers: providers_module.Providers,
                 programmer: programmer_module.Programmer,
                 bitstreams: store.Store,
                 os_acc: os_acc_module.OsAcc) -> None:
        self.service_host = node.service_host
        self._nodename = node.nodename
        self._api = api
        self.attachments = attachments
        self.reconciler = reconciler
        self._publisher = publisher
        self._providers = providers
        self.programmer = programmer
        self.bitstreams = bitstreams
        self.os_acc = os_acc

    def begin_update(self) -> None:
        """See :meth:`~.publishing.providers.Providers.begin_update`."""
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

    def owns_mdev(self, uuid: str) -> bool:
        """Whether a mediated device is one that we make and hand out."""
        return (uuid in self._publisher.view.drivers
                or any(request.handle.uuid == uuid
                       for request in self.attachments.held_arqs()))
