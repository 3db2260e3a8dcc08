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

"""The wiring: it makes all our parts of nova-compute, and starts them."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import functools
import pathlib
from typing import Any

from nova.virt.libvirt import host as libvirt_host

from nova_accel import conf
from nova_accel import guru_report
from nova_accel.bitstreams import bitstream_images
from nova_accel.bitstreams import store
from nova_accel.client import accelerator_api
from nova_accel.client import servers
from nova_accel.client import service_user
from nova_accel.drivers import catalogue
from nova_accel.drivers import configured_lines
from nova_accel.host import fabric_manager
from nova_accel.host import host_use
from nova_accel.model import host_findings
from nova_accel.model.providers import host_view
from nova_accel.virt import damaged_files
from nova_accel.virt import guest_cells
from nova_accel.virt import host_hardware
from nova_accel.virt import hot_plug
from nova_accel.virt import os_acc
from nova_accel.virt import parts
from nova_accel.virt import report_section
from nova_accel.virt import server_flavor
from nova_accel.virt.fabric import fabric_need
from nova_accel.virt.fabric import guest_partitions
from nova_accel.virt.fabric import no_fabric
from nova_accel.virt.fabric import partition_journal
from nova_accel.virt.fpga.programming import programming_history
from nova_accel.virt.fpga.programming import programming_job
from nova_accel.virt.fpga.programming import region_loader
from nova_accel.virt.fpga.programming import region_programmer
from nova_accel.virt.fpga.regions import host_regions
from nova_accel.virt.fpga.regions import region_journal
from nova_accel.virt.fpga.regions import region_target
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import attaching
from nova_accel.virt.holding import cleaning
from nova_accel.virt.holding import holdings
from nova_accel.virt.holding import mdevs
from nova_accel.virt.holding import plugging
from nova_accel.virt.holding import reconcile
from nova_accel.virt.holding import taking_over
from nova_accel.virt.publishing import device_links
from nova_accel.virt.publishing import discovery
from nova_accel.virt.publishing import gpu_links
from nova_accel.virt.publishing import held_answers
from nova_accel.virt.publishing import host_providers
from nova_accel.virt.publishing import known_types
from nova_accel.virt.publishing import last_answers
from nova_accel.virt.publishing import link_memory
from nova_accel.virt.publishing import order_publication
from nova_accel.virt.publishing import periodic_work
from nova_accel.virt.publishing import publication
from nova_accel.virt.publishing import published_traits
from nova_accel.virt.publishing import units_in_use

CONF = conf.CONF

_UNPUBLISHED = 'The accelerators of this host could not be published'


def check_configured() -> None:
    """Refuse at once a configuration that :func:`start` would refuse.

    :raises InvalidDeviceSpec: a line of ``device_spec`` is malformed, or
        contradicts itself.
    :raises ConfigurationError: names the option that is wrong.
    """
    configured_lines.read()
    catalogue.entries()
    accelerator_api.adapter_from_conf()
    store.from_conf()


def start(
    host: libvirt_host.Host,
    service_host: str,
    update_resources: Callable[[], None],
) -> parts.Parts:
    """Make the parts of a host, and start them.

    Each part is made of parts that were made before it. The devices are
    discovered here, which is quick, and reported later. Only virtual
    functions that a reboot has removed take long to make.

    :param update_resources: has Nova update its resources; not called before
        Nova has done so itself
    :raises InvalidDeviceSpec: a line of ``device_spec`` is malformed, or
        contradicts itself.
    :raises ConfigurationError: names the option that is wrong.
    """
    common = _common(host, service_host)
    fpgas = _fpgas(common)
    holding = _holding(common, fpgas.programmer)
    publishing = _publishing(common, fpgas, holding)

    common.hardware.virtual_functions.make(common.hardware.specs)
    common.fabric.begin()
    holding.attachments.finish_interrupted()
    lost_mdevs = mdevs.LostMdevs(
        common.api,
        holding.attachments,
        {mdev.uuid for mdev in common.hardware.node_devices.mdevs()},
        common.current.findings,
    )
    hot_plug.attach_missing(host, common.held.arqs_of, common.current.findings)
    publishing.publisher.refresh()
    for record in fpgas.regions.recover():
        fpgas.history.note(record)
    orders = order_publication.OrderPublication(
        common.current,
        publishing.providers,
        update_resources,
        publishing.publisher.report,
    )
    common.cycle.begin(
        _steps(common, fpgas, holding, publishing, orders, lost_mdevs)
    )
    guru_report.add_section(
        guru_report.TITLE,
        functools.partial(report_section.facts, common.node, common.current),
    )
    return parts.Parts(
        common.node,
        common.hardware.sysfs,
        common.api,
        common.cycle,
        holding.attachments,
        publishing.providers,
        fpgas.programmer,
        fpgas.bitstreams,
        os_acc.OsAcc(
            common.node.nodename,
            common.current,
            publishing.publisher,
            holding.attachments,
            fpgas.programmer,
            _image,
            guest_cells.GuestCells(host),
            common.fabric,
        ),
        common.fabric,
        common.current,
    )


@dataclasses.dataclass(frozen=True)
class _Common:
    """The parts of which most others are made."""

    node: host_view.Node
    state: pathlib.Path
    hardware: host_hardware.Hardware
    api: accelerator_api.AcceleratorApi
    current: host_view.CurrentState
    cycle: periodic_work.Cycle
    files: damaged_files.DamagedFiles
    journal: attach_journal.AttachJournal
    held: holdings.Holdings
    fabric: no_fabric.NoFabric


def _common(host: libvirt_host.Host, service_host: str) -> _Common:
    """See :func:`start` for the errors."""
    node = host_view.Node(
        host.get_hostname(), host.get_node_uuid(), service_host
    )
    hardware = host_hardware.of(host, node)
    api = accelerator_api.AcceleratorApi(
        accelerator_api.adapter_from_conf(), node.nodename
    )
    state = pathlib.Path(CONF.state_path) / 'nova_accel'
    current = host_view.CurrentState(host_view.View(node.uuid))
    files = damaged_files.DamagedFiles(current.findings)
    journal = files.of_journal(
        attach_journal.AttachJournal(state / node.nodename)
    )
    held = holdings.Holdings(journal)
    return _Common(
        node,
        state,
        hardware,
        api,
        current,
        periodic_work.Cycle(
            CONF.nova_accel.report_interval_s, current.findings
        ),
        files,
        journal,
        held,
        _fabric(
            node.nodename,
            state,
            files,
            fabric_need.Need(current, held, hardware.guests),
            current.findings,
        ),
    )


def _fabric(
    nodename: str,
    state: pathlib.Path,
    files: damaged_files.DamagedFiles,
    need: fabric_need.Need,
    findings: host_findings.Findings,
) -> no_fabric.NoFabric:
    options = CONF.nova_accel
    if not options.fabric_manager:
        return no_fabric.NoFabric()
    manager = fabric_manager.FabricManager(options.fabric_manager_timeout_s)
    return guest_partitions.GuestPartitions(
        nodename,
        region_journal.boot_id(),
        files.of_journal(
            partition_journal.PartitionJournal(state / 'partitions' / nodename)
        ),
        manager,
        need,
        options.fabric_manager_timeout_s,
        options.fabric_manager_interval_s,
        findings,
    )


@dataclasses.dataclass(frozen=True)
class _Fpgas:
    """The parts that know what the regions of FPGAs hold."""

    regions: host_regions.Regions
    history: programming_history.History
    bitstreams: store.Store
    programmer: region_programmer.Programmer
    types: known_types.KnownTypes


def _fpgas(common: _Common) -> _Fpgas:
    node, hardware = common.node, common.hardware
    boot_id = region_journal.boot_id()
    regions = host_regions.Regions(
        common.files.of_journal(
            region_journal.RegionJournal(
                common.state / 'regions' / node.nodename, boot_id
            )
        ),
        hardware.drivers,
        common.held,
        common.cycle.hurry,
    )
    history = programming_history.History(common.api)
    bitstreams = store.from_conf()
    users = region_target.Users(common.held, hardware.guests, servers.holder)
    loader = region_loader.Loader(
        regions,
        programming_job.Jobs(node.uuid, regions, users, history),
        bitstreams,
        functools.cache(service_user.context),
    )
    return _Fpgas(
        regions,
        history,
        bitstreams,
        region_programmer.Programmer(
            node.uuid,
            regions,
            loader,
            CONF.nova_accel.programming_timeout_s,
            CONF.nova_accel.clean_with_stock,
        ),
        common.files.of_memory(
            known_types.KnownTypes(
                common.state / f'{node.nodename}.region_types.json', boot_id
            )
        ),
    )


@dataclasses.dataclass(frozen=True)
class _Holding:
    """The parts that change what instances hold."""

    cleaner: cleaning.Cleaner
    attachments: attaching.Attachments
    reconciler: reconcile.Reconciler
    taking_over: taking_over.TakingOver


def _holding(
    common: _Common, programmer: region_programmer.Programmer
) -> _Holding:
    hardware = common.hardware
    cleaner = cleaning.Cleaner(
        common.api,
        CONF.nova_accel.max_concurrent_cleanings,
        common.current,
        hardware.drivers,
        hardware.guests,
        common.held,
        programmer.clean,
        common.cycle.hurry,
    )
    attachments = attaching.Attachments(
        common.node.nodename,
        common.journal,
        common.held,
        common.api,
        plugging.Devices(
            common.node.nodename,
            common.current,
            hardware.drivers,
            common.fabric.let_go,
            hardware.sysfs,
        ),
        cleaner,
        common.current,
        hardware.guests,
        server_flavor.name_profile,
    )
    unused = mdevs.UnusedMdevs(
        hardware.node_devices, hardware.guests, attachments
    )
    return _Holding(
        cleaner,
        attachments,
        reconcile.Reconciler(
            common.node.service_host,
            CONF.nova_accel.reconcile_interval_s,
            common.api,
            attachments,
            hardware.guests,
            unused,
            common.current,
            common.cycle.hurry,
        ),
        taking_over.TakingOver(
            common.node.service_host,
            common.api,
            attachments,
            hardware.guests,
            unused,
            common.current,
        ),
    )


@dataclasses.dataclass(frozen=True)
class _Publishing:
    """The parts that tell the API and Placement of the devices."""

    publisher: publication.Publisher
    providers: host_providers.Providers


def _publishing(
    common: _Common, fpgas: _Fpgas, holding: _Holding
) -> _Publishing:
    nodename = common.node.nodename
    return _Publishing(
        publication.Publisher(
            common.node,
            functools.partial(
                _discover,
                common.hardware,
                fpgas,
                _links(common),
                units_in_use.UnitsInUse(
                    common.held, common.hardware.guests, common.current
                ),
                last_answers.LastAnswers(
                    common.files.of_memory(
                        held_answers.HeldAnswers(
                            common.state / f'{nodename}.answers.json'
                        )
                    )
                ),
            ),
            common.api,
            common.current,
            common.cycle,
        ),
        host_providers.Providers(
            nodename,
            common.current,
            holding.cleaner,
            holding.attachments,
            common.files.of_memory(
                published_traits.PublishedTraits(
                    common.state / f'{nodename}.traits.json'
                )
            ),
        ),
    )


def _steps(
    common: _Common,
    fpgas: _Fpgas,
    holding: _Holding,
    publishing: _Publishing,
    orders: order_publication.OrderPublication,
    lost_mdevs: mdevs.LostMdevs,
) -> tuple[periodic_work.Step, ...]:
    """The steps of each cycle, in their order."""
    return (
        ('Damaged files are not reported', common.files.report),
        (taking_over.NOT_TAKEN_OVER, holding.taking_over.look),
        (_UNPUBLISHED, publishing.publisher.refresh),
        ('Partitions are not compared with the guests', common.fabric.repair),
        (
            'The cleaning of accelerators is not reported',
            holding.cleaner.report,
        ),
        ('The programming of regions is not reported', fpgas.history.report),
        (_UNPUBLISHED, publishing.publisher.report),
        ('Placement does not know of the orders', orders.go_on),
        (taking_over.NOT_TAKEN_OVER, holding.taking_over.go_on),
        ('Accelerators are not cleaned', holding.cleaner.go_on),
        ('Lost accelerators are not made again', lost_mdevs.go_on),
        ('Accelerators are not released', holding.attachments.retry),
        (
            'The accelerators of this host are not compared with what '
            'Nova has',
            holding.reconciler.run,
        ),
        ('Providers are not changed', publishing.providers.settle),
    )


def _links(common: _Common) -> device_links.DeviceLinks:
    sysfs = common.hardware.sysfs
    memory = common.files.of_memory(
        link_memory.LinkMemory(
            common.state / f'{common.node.nodename}.links.json'
        )
    )
    return device_links.DeviceLinks(
        sysfs,
        memory,
        gpu_links.GpuLinks(sysfs, memory),
        common.fabric.partitions if CONF.nova_accel.fabric_manager else None,
    )


def _discover(
    hardware: host_hardware.Hardware,
    fpgas: _Fpgas,
    links: device_links.DeviceLinks,
    in_use: units_in_use.UnitsInUse,
    answers: last_answers.LastAnswers,
) -> discovery.Discovered:
    found = discovery.discover(
        hardware.node_devices,
        hardware.drivers,
        hardware.specs,
        hardware.claims,
        in_use.look,
        functools.partial(host_use.HostUse, hardware.sysfs),
        answers,
    )
    found = links.joined(found)
    devices = fpgas.types.remembered(found.devices)
    return dataclasses.replace(found, devices=fpgas.regions.overlaid(devices))


def _image(image_id: str) -> Mapping[str, Any]:
    """See :meth:`nova_accel.bitstreams.bitstream_images.Glance.image`."""
    return bitstream_images.Glance().image(image_id, service_user.context())
