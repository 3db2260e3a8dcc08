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
import functools
import pathlib

from nova import objects
from nova.compute import provider_tree
from nova.network import model as network_model
from nova.virt.libvirt import host as libvirt_host

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.drivers import loading
from nova_accel.host import discovery
from nova_accel.host import guests
from nova_accel.host import node_devices as node_devices_module
from nova_accel.host import nova_claims
from nova_accel.model import arq
from nova_accel.model import device_spec
from nova_accel.model import matching
from nova_accel.model import provider_layout
from nova_accel.virt import accel_info as accel_info_module
from nova_accel.virt import attachments as attachments_module
from nova_accel.virt import given_traits as given_traits_module
from nova_accel.virt import hot_plug
from nova_accel.virt import journal
from nova_accel.virt import provider_tree as tree_module
from nova_accel.virt import provisioning as provisioning_module
from nova_accel.virt import publisher as publisher_module
from nova_accel.virt import reconcile

CONF = conf.CONF


def check_configured() -> None:
    """Refuse at once a configuration that :func:`start` would refuse.

    :raises InvalidDeviceSpec: a line of ``device_spec`` is malformed.
    :raises ConfigurationError: names the option that is wrong.
    """
    device_spec.parse(CONF.nova_accel.device_spec, loading.names())
    accelerator_api.adapter_from_conf()


def start(host: libvirt_host.Host, service_host: str) -> 'HostAccelerators':
    """What nova-compute needs of our parts, wired together.

    The devices are looked at, which is quick; they are reported later.

    :raises InvalidDeviceSpec: a line of ``device_spec`` is malformed.
    :raises ConfigurationError: names the option that is wrong.
    """
    node = publisher_module.Node(
        host.get_hostname(), host.get_node_uuid(), service_host)
    node_devices = node_devices_module.NodeDevices(host)
    drivers = loading.load(node_devices, node.uuid)
    specs = device_spec.parse(CONF.nova_accel.device_spec, drivers)
    api = accelerator_api.AcceleratorApi(
        accelerator_api.adapter_from_conf(), node.nodename)
    state = pathlib.Path(CONF.state_path) / 'nova_accel'
    attachments = attachments_module.Attachments(
        node.nodename, journal.Journal(state / node.nodename), api, drivers,
        lambda: publisher.view.drivers)

    reconciler = reconcile.Reconciler(
        service_host, CONF.nova_accel.reconcile_interval_s, api, attachments,
        node_devices, guests.Guests(host), lambda: publisher.view)

    def end_of_cycle() -> None:
        provisioning.go_on()
        attachments.retry()
        reconciler.run()

    publisher = publisher_module.Publisher(
        node, CONF.nova_accel.report_interval_s,
        functools.partial(discovery.discover, node_devices, drivers, specs,
                          nova_claims.NovaClaims()),
        api, after=end_of_cycle)
    attachments.undo_interrupted()
    provisioning = provisioning_module.Provisioning(
        api, attachments, {mdev.uuid for mdev in node_devices.mdevs()})
    hot_plug.attach_missing(host, attachments.held_by)
    publisher.refresh()
    publisher.start_cycle()
    return HostAccelerators(
        node, api, publisher, attachments, reconciler,
        given_traits_module.GivenTraits(
            state / f'{node.nodename}.traits.json'))


class HostAccelerators:
    """One host's publisher and attachments, for the driver's hooks."""

    def __init__(self, node: publisher_module.Node,
                 api: accelerator_api.AcceleratorApi,
                 publisher: publisher_module.Publisher,
                 attachments: attachments_module.Attachments,
                 reconciler: reconcile.Reconciler,
                 given_traits: given_traits_module.GivenTraits) -> None:
        self.service_host = node.service_host
        self._nodename = node.nodename
        self._api = api
        self.attachments = attachments
        self.reconciler = reconciler
        self._publisher = publisher
        self._given_traits = given_traits

    def update_provider_tree(self, tree: provider_tree.ProviderTree,
                             nodename: str) -> bool:
        """Apply the finished view; say whether it changed the tree."""
        self._publisher.start_cycle()
        in_use = frozenset(request.device_rp_uuid
                           for request in self.attachments.held_arqs())
        layout = self._publisher.view.layout
        given = self._given_traits.read()
        changes = tree_module.apply(tree, nodename, layout, in_use, given)
        self._given_traits.write(
            provider_layout.now_given(layout, changes, given))
        return bool(changes)

    def acquire(self, instance: objects.Instance, profile: str,
                providers: Iterable[matching.Provider],
                role: arq.Role = arq.Role.ACTIVE) -> None:
        """Bind the instance's ARQs.

        :raises AcceleratorError: it holds no more than it did before.
        """
        self._publisher.wait_published(CONF.nova_accel.publish_timeout_s)
        self.attachments.acquire(
            instance.uuid, instance.project_id, profile, providers, role)

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

    def plug(self, instance: objects.Instance, profile: str | None,
             role: arq.Role = arq.Role.ACTIVE) -> tuple[arq.Arq, ...]:
        """Make the devices of the instance ready for its guest.

        :param profile: the device profile that its flavor names
        :raises DeviceError: one cannot be, or the host knows of none
            although there is a profile.
        """
        arqs = self.attachments.plug(instance.uuid, role)
        if profile is not None and not arqs:
            raise exceptions.DeviceError(
                f'the journal of this host has no accelerators for instance '
                f'{instance.uuid}, whose flavor asks for {profile}')
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
        self.attachments.plug(instance.uuid, arq.Role.PORT)

    def owns_mdev(self, uuid: str) -> bool:
        """Whether a mediated device is one that we make and hand out."""
        return (uuid in self._publisher.view.drivers
                or any(request.handle.uuid == uuid
                       for request in self.attachments.held_arqs()))
