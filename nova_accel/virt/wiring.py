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

"""The parts of nova-compute that are ours, put together."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import functools
import pathlib
from typing import Any

from nova.virt.libvirt import host as libvirt_host

from nova_accel import conf
from nova_accel.bitstreams import glance
from nova_accel.bitstreams import store
from nova_accel.client import accelerator_api
from nova_accel.client import servers
from nova_accel.client import service_user
from nova_accel.drivers import base
from nova_accel.drivers import catalogue
from nova_accel.drivers import loading
from nova_accel.host import guests
from nova_accel.host import host_use
from nova_accel.host import node_devices as node_devices_module
from nova_accel.host import nova_claims
from nova_accel.host import sysfs as sysfs_module
from nova_accel.host import virtual_functions
from nova_accel.model import attach_handle
from nova_accel.model import device_spec
from nova_accel.virt import host_accelerators
from nova_accel.virt import hot_plug
from nova_accel.virt import os_acc
from nova_accel.virt.fpga import programmer as programmer_module
from nova_accel.virt.fpga import programming_history
from nova_accel.virt.fpga import region_journal
from nova_accel.virt.fpga import region_use
from nova_accel.virt.fpga import regions as regions_module
from nova_accel.virt.fpga import rpc_agent
from nova_accel.virt.fpga import told_types
from nova_accel.virt.holding import attachments as attachments_module
from nova_accel.virt.holding import cleaning
from nova_accel.virt.holding import journal
from nova_accel.virt.holding import provisioning as provisioning_module
from nova_accel.virt.holding import reconcile
from nova_accel.virt.publishing import discovery
from nova_accel.virt.publishing import given_traits as given_traits_module
from nova_accel.virt.publishing import providers as providers_module
from nova_accel.virt.publishing import publisher as publisher_module

CONF = conf.CONF


def check_configured() -> None:
    """Refuse at once a configuration that :func:`start` would refuse.

    :raises InvalidDeviceSpec: a line of ``device_spec`` is malformed.
    :raises ConfigurationError: names the option that is wrong.
    """
    device_spec.parse(CONF.nova_accel.device_spec, loading.names())
    catalogue.entries()
    accelerator_api.adapter_from_conf()
    store.from_conf()


def start(host: libvirt_host.Host, service_host: str,
          ) -> host_accelerators.HostAccelerators:
    """What nova-compute needs of our parts, wired together.

    The devices are looked at, which is quick; they are reported later. Only
    virtual functions that are missing, after a reboot, take their time.

    :raises InvalidDeviceSpec: a line of ``device_spec`` is malformed.
    :raises ConfigurationError: names the option that is wrong.
    """
    node = publisher_module.Node(
        host.get_hostname(), host.get_node_uuid(), service_host)
    node_devices = node_devices_module.NodeDevices(host)
    sysfs = sysfs_module.of(host)
    drivers = loading.load(node_devices, sysfs, node.uuid)
    specs = device_spec.parse(CONF.nova_accel.device_spec, drivers)
    api = accelerator_api.AcceleratorApi(
        accelerator_api.adapter_from_conf(), node.nodename)
    state = pathlib.Path(CONF.state_path) / 'nova_accel'
    attachments = attachments_module.Attachments(
        node.nodename, journal.Journal(state / node.nodename), api, drivers,
        lambda: publisher.view.drivers,
        lambda handles: cleaner.released(publisher.view.cleaned.intersection(
            handle.uuid for handle in handles)),
        lambda: publisher.view.handles)
    cleaner = cleaning.Cleaner(
        api, CONF.nova_accel.max_concurrent_cleanings,
        lambda uuid: _unclean(
            publisher.view, drivers, fpgas.programmer, host_guests, uuid),
        attachments.held_handles, lambda: publisher.start_cycle(at_once=True))

    host_guests = guests.Guests(host)
    claims = nova_claims.NovaClaims(node.nodename, node.uuid)
    fpgas = _fpgas(node, state, drivers, api, attachments, host_guests,
                   lambda: publisher.start_cycle(at_once=True))
    reconciler = reconcile.Reconciler(
        service_host, CONF.nova_accel.reconcile_interval_s, api, attachments,
        node_devices, host_guests, lambda: publisher.view)

    def discover() -> discovery.Inventory:
        found = discovery.discover(
            node_devices, drivers, specs, claims, host_guests.strangers,
            lambda: host_use.HostUse(sysfs))
        return dataclasses.replace(
            found, devices=fpgas.regions.overlaid(found.devices))

    def clean() -> None:
        if publisher.orders is not None:
            cleaner.go_on(publisher.orders)

    publisher = publisher_module.Publisher(
        node, CONF.nova_accel.report_interval_s, discover, api,
        before={
            'How accelerators were cleaned is not told': cleaner.tell,
            'What was programmed is not told': fpgas.history.tell},
        after={
            'Accelerators are not cleaned': clean,
            'Lost accelerators are not made again':
                lambda: provisioning.go_on(),
            'Accelerators are not released': attachments.retry,
            'The accelerators of this host are not compared with what Nova '
            'has': reconciler.run,
            'Providers are not changed': lambda: providers.settle()})
    providers = providers_module.Providers(
        node.nodename, lambda: publisher.view, lambda: publisher.orders,
        lambda: cleaner.awaited, attachments,
        given_traits_module.GivenTraits(
            state / f'{node.nodename}.traits.json'))
    virtual_functions.VirtualFunctions(
        node_devices, sysfs, claims, host_guests).make(specs)
    attachments.finish_interrupted()
    provisioning = provisioning_module.Provisioning(
        api, attachments, {mdev.uuid for mdev in node_devices.mdevs()})
    hot_plug.attach_missing(host, attachments.held_by)
    publisher.refresh()
    for record in fpgas.regions.recover():
        fpgas.history.note(record)
    publisher.start_cycle()
    return host_accelerators.HostAccelerators(
        node, api, publisher, attachments, reconciler, providers,
        fpgas.programmer, fpgas.bitstreams, os_acc.OsAcc(
            publisher, attachments, fpgas.programmer, _image))


def agent(accelerators: host_accelerators.HostAccelerators,
          ) -> rpc_agent.RpcAgent:
    """What the API calls, when it is started."""
    return rpc_agent.RpcAgent(
        accelerators.service_host, rpc_agent.Endpoint(
            accelerators.programmer, accelerators.bitstreams))


@dataclasses.dataclass(frozen=True)
class _Fpgas:
    """What programs the host's FPGAs."""

    regions: regions_module.Regions
    history: programming_history.History
    bitstreams: store.Store
    programmer: programmer_module.Programmer


def _fpgas(node: publisher_module.Node, state: pathlib.Path,
           drivers: Mapping[str, base.Driver],
           api: accelerator_api.AcceleratorApi,
           attachments: attachments_module.Attachments,
           host_guests: guests.Guests, report: Callable[[], None]) -> _Fpgas:
    boot_id = regions_module.boot_id()
    regions = regions_module.Regions(
        region_journal.RegionJournal(state / 'regions' / node.nodename),
        told_types.ToldTypes(
            state / f'{node.nodename}.region_types.json', boot_id),
        drivers, boot_id, attachments.held_handles)
    history = programming_history.History(api.programming)
    bitstreams = store.from_conf()
    return _Fpgas(regions, history, bitstreams, programmer_module.Programmer(
        node.uuid, regions, bitstreams,
        lambda: _holders(attachments, host_guests),
        lambda uuid: _server(uuid, host_guests), history.note, report,
        functools.cache(service_user.context),
        CONF.nova_accel.programming_timeout_s))


def _image(image_id: str) -> Mapping[str, Any]:
    """See :meth:`nova_accel.bitstreams.glance.Glance.image`."""
    return glance.Glance().image(image_id, service_user.context())


def _holders(attachments: attachments_module.Attachments,
             host_guests: guests.Guests) -> dict[str, str]:
    """What instances have: attach handle uuid or PCI address -> instance.

    Also of guests of which the journal is lost.

    :raises DeviceError: libvirt does not list them.
    """
    return {device: uuid for uuid, found in host_guests.devices().items()
            for device in found} | attachments.holders()


def _server(uuid: str, host_guests: guests.Guests) -> region_use.Server:
    """An instance as Nova and libvirt know it, see :func:`servers.use_of`.

    :raises DeviceError: libvirt does not list its guests.
    """
    # Whatever Nova thinks of a guest that somebody has started by hand.
    runs = uuid in host_guests.running()
    server = servers.use_of(uuid)
    return dataclasses.replace(
        server, is_stopped=server.is_stopped and not runs)


def _unclean(view: publisher_module.View, drivers: Mapping[str, base.Driver],
             programmer: programmer_module.Programmer,
             host_guests: guests.Guests, uuid: str,
             ) -> cleaning.Unclean | None:
    """An attach handle and who cleans it, None if it is gone."""
    if uuid not in view.handles:
        return None
    found = view.handles[uuid]
    clean = (programmer.blank if found.cleaning[:1] == ('program',)
             else drivers[view.drivers[uuid]].clean)

    def clean_unused(handle: attach_handle.AttachHandle) -> None:
        # The journal may be lost, or that of a host of another name.
        host_guests.check_unused(handle)
        clean(handle)

    return cleaning.Unclean(found, clean_unused)
