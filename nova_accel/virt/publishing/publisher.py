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

"""Keeps three views of the host's accelerators in step.

What the hardware is, what the accelerator API was told, and what the provider
tree shows. Looking at hardware and talking to the API take time, so both are
done by a worker; Nova's resource tracker only ever reads the finished view.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import functools
import hashlib
import json
import threading
import time
from typing import Any

import futurist
from nova import thread_pool_factory
from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.model import attach_handle
from nova_accel.model import device as device_model
from nova_accel.model import naming
from nova_accel.model import orders as orders_model
from nova_accel.model import provider_layout
from nova_accel.model import publishable
from nova_accel.virt.publishing import discovery

LOG = logging.getLogger(__name__)

_UNPUBLISHED = 'The accelerators of this host could not be published'


@dataclasses.dataclass(frozen=True)
class Node:
    """A compute node, as its three neighbours name it.

    ``nodename`` is Nova's and Placement's name of the node and the wire's
    ``hostname``, ``uuid`` that of its root resource provider, ``service_host``
    the name of nova-compute in RPC.
    """

    nodename: str
    uuid: str
    service_host: str


@dataclasses.dataclass(frozen=True)
class View:
    """A finished, immutable look at the host's accelerators."""

    node_uuid: str = ''
    devices: tuple[device_model.Device, ...] = ()
    layout: provider_layout.Layout = dataclasses.field(
        default_factory=provider_layout.Layout)

    @functools.cached_property
    def drivers(self) -> Mapping[str, str]:
        """Attach handle uuid -> the name of the driver that plugs it."""
        return {handle.uuid: device.driver for device in self.devices
                for handle in device.handles}

    @functools.cached_property
    def handles(self) -> Mapping[str, attach_handle.AttachHandle]:
        """Attach handle uuid -> the handle."""
        return {handle.uuid: handle for device in self.devices
                for handle in device.handles}

    @functools.cached_property
    def cleaned(self) -> frozenset[str]:
        """The uuids of the attach handles that are cleaned after a guest."""
        return frozenset(
            handle.uuid for device in self.devices
            for deployable in device.deployables if deployable.is_cleaned
            for handle in deployable.handles)

    def unusable(self, orders: orders_model.Orders | None) -> frozenset[str]:
        """The uuids of the attach handles that nobody must be given.

        :param orders: None as long as the host has none
        """
        disabled = orders.disabled if orders else frozenset()
        return frozenset(
            handle.uuid for uuid, device in self._by_uuid.items()
            for deployable in device.deployables
            if (device.fault is not None or deployable.fault is not None
                or uuid in disabled)
            for handle in deployable.handles) | (
                orders.uncleaned if orders else frozenset())

    @functools.cached_property
    def _by_uuid(self) -> Mapping[str, device_model.Device]:
        return {naming.derived_uuid(self.node_uuid, device.name): device
                for device in self.devices}

    @functools.cached_property
    def functions(self) -> frozenset[str]:
        """The addresses of the PCI functions that guests can get."""
        return frozenset(
            str(address) for handle in self.handles.values()
            for address in handle.functions)


class Publisher:
    """Discovers, keeps the view, reports it and keeps the orders.

    :param discover: looks at the hardware
    :param before: called in each cycle, in the worker, before the report, in
        their order; each by what it means that it fails, as a sentence
    :param after: so, at the end of each cycle
    """

    def __init__(self, node: Node, interval_s: int,
                 discover: Callable[[], discovery.Inventory],
                 api: accelerator_api.AcceleratorApi,
                 before: Mapping[str, Callable[[], None]],
                 after: Mapping[str, Callable[[], None]]) -> None:
        self._node = node
        self._interval_s = interval_s
        self._discover = discover
        self._api = api
        self._steps = (
            (_UNPUBLISHED, self.refresh), *before.items(),
            (_UNPUBLISHED, self._report), *after.items())
        self._view = View(node.uuid)
        self._orders: orders_model.Orders | None = None
        self._refused: tuple[str, ...] = ()
        self._published = threading.Event()
        self._started_at = float('-inf')
        self._cycle: futurist.Future[None] | None = None
        self._is_running = False
        self._is_asked = False
        self._lock = threading.Lock()

    @property
    def view(self) -> View:
        return self._view

    @property
    def orders(self) -> orders_model.Orders | None:
        """What the API wants of the host, None before its first answer."""
        return self._orders

    def refresh(self) -> None:
        """Look at the hardware; say what is refused, once."""
        inventory = self._discover()
        published = publishable.of(self._node.nodename, inventory.devices)
        refused = (*inventory.refused, *published.left_out)
        for reason in refused:
            if reason not in self._refused:
                LOG.error('Accelerator refused: %s', reason)
        self._refused = refused
        view = View(self._node.uuid, published.devices,
                    provider_layout.layout(
                        self._node.nodename, self._node.uuid,
                        published.devices))
        if view != self._view:
            self._published.clear()
            self._view = view

    def start_cycle(self, at_once: bool = False) -> None:
        """Have a worker refresh and report, if it is time to.

        :param at_once: whenever the last one was; if one is running it may
            have looked already, and another follows
        """
        with self._lock:
            due = time.monotonic() - self._started_at >= self._interval_s
            if self._is_running:
                self._is_asked |= at_once
                return
            if not (due or at_once):
                return
            self._is_running = True
        try:
            self._cycle = thread_pool_factory.spawn(self._work)
        except RuntimeError as error:
            # Nova ends its threads before its last tasks, such as a delete.
            self._is_running = False
            LOG.info('The accelerators of this host are not reported any '
                     'more: %s', error)

    def wait_published(self, timeout_s: float) -> None:
        """Wait until the API knows the present view.

        :raises ServiceUnavailable: it does not after ``timeout_s`` seconds.
        """
        if self._published.is_set():
            return
        self.start_cycle(at_once=True)
        if not self._published.wait(timeout_s):
            raise exceptions.ServiceUnavailable(
                f'the accelerator API has not accepted the report of host '
                f'{self._node.nodename} within {timeout_s} s')

    def _work(self) -> None:
        while True:
            self._started_at = time.monotonic()
            try:
                self._run()
            except BaseException:
                # An error that ends a thread may not end all cycles to come.
                self._is_running = False
                raise
            with self._lock:
                if not self._is_asked:
                    self._is_running = False
                    return
                self._is_asked = False

    def _run(self) -> None:
        """A cycle; each step is on its own, whatever became of the others."""
        for fault, step in self._steps:
            try:
                step()
            except exceptions.AcceleratorError as error:
                LOG.warning('%s, trying again later: %s', fault, error)
            except Exception:
                LOG.exception('%s, trying again later', fault)

    def _report(self) -> None:
        view = self._view
        devices = [device.to_report(self._node.uuid, view.layout.rp_uuids)
                   for device in view.devices]
        orders = self._api.report(
            self._node.uuid, self._node.service_host,
            _digest(self._node, devices), devices,
            self._orders.revision if self._orders else None)
        if orders is not None:
            self._orders = orders
        if view is self._view:
            self._published.set()


def _digest(node: Node, devices: list[dict[str, Any]]) -> str:
    content = json.dumps([dataclasses.astuple(node), devices], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()
