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

"""The publisher, which keeps three views of the host's accelerators in step.

They are the hardware, the host's report to the accelerator API, and Nova's
provider tree. It takes time to look at the hardware and to talk to the API,
so a worker does both. Nova's resource tracker only reads the finished view.
"""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import hashlib
import json
import threading
from typing import Any

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel import reason
from nova_accel.client import accelerator_api
from nova_accel.model import finding
from nova_accel.model.providers import host_view
from nova_accel.model.providers import provider_layout
from nova_accel.model.providers import publishable
from nova_accel.virt.publishing import discovery
from nova_accel.virt.publishing import periodic_work

LOG = logging.getLogger(__name__)

#: How many devices that are not published a line of the log names.
_MAX_LEFT_OUT = 8


class Publisher:
    """Discovers and reports devices; makes view and orders current.

    :param discover: looks at the hardware
    """

    def __init__(
        self,
        node: host_view.Node,
        discover: Callable[[], discovery.Discovered],
        api: accelerator_api.AcceleratorApi,
        current: host_view.CurrentState,
        cycle: periodic_work.Cycle,
    ) -> None:
        self._node = node
        self._discover = discover
        self._api = api
        self._current = current
        self._cycle = cycle
        self._told: tuple[str, ...] = ()
        self._left_out: tuple[str, ...] = ()
        self._unmatched: tuple[str, ...] = ()
        self._published = threading.Event()

    def refresh(self) -> None:
        """Look at the hardware, and log once what is not published of it."""
        inventory = self._discover()
        published = publishable.of(self._node.nodename, inventory.devices)
        refused = (*inventory.refused, *published.left_out)
        self._current.findings.put(
            'devices',
            (finding.Finding(finding.Kind.REFUSED, text) for text in refused),
        )
        for text in refused:
            if text in self._told:
                continue
            if text in inventory.noted:
                LOG.warning('Accelerator: %s', text)
            else:
                LOG.error('Accelerator refused: %s', text)
        self._told = refused
        self._left_out = tuple(
            text for text in refused if text not in inventory.noted
        )
        for line in inventory.unmatched:
            if line not in self._unmatched:
                LOG.warning(
                    '[nova_accel] device_spec = %s matches no device of this '
                    'host that an earlier line has not: correct it, or remove '
                    'it',
                    line,
                )
        self._unmatched = inventory.unmatched
        view = host_view.View(
            self._node.uuid,
            published.devices,
            provider_layout.layout(
                self._node.nodename,
                self._node.uuid,
                published.devices,
                inventory.links,
            ),
        )
        if view != self._current.view:
            self._published.clear()
            self._current.view = view

    def wait_published(self, timeout_s: float) -> None:
        """Wait until the API knows the present view.

        :raises ServiceUnavailable: it does not after ``timeout_s`` seconds.
        """
        if self._published.is_set():
            return
        self._cycle.hurry()
        if not self._published.wait(timeout_s):
            raise exceptions.ServiceUnavailable(
                f'the accelerator API has not accepted the report of host '
                f'{self._node.nodename} within {timeout_s} s'
            )

    def report(self) -> None:
        """Report the view and the findings to the API, and get its orders.

        :raises AcceleratorError: it has not accepted the report.
        """
        view, orders = self._current.view, self._current.orders
        published = self._current.published
        devices = [
            device.to_report(self._node.uuid, view.layout.rp_uuids)
            for device in view.devices
        ]
        findings = finding.to_dicts(self._current.findings.all())
        newer = self._api.report(
            self._node.uuid,
            self._node.service_host,
            _digest(self._node, devices, findings),
            devices,
            orders.revision if orders else None,
            findings,
            published.revision if published else None,
        )
        if newer is not None:
            self._current.orders = newer
        if view is self._current.view and not self._published.is_set():
            self._published.set()
            LOG.info('Published %s', _words(view, self._left_out))


def _words(view: host_view.View, refused: Sequence[str]) -> str:
    """The publication of a host, for its log.

    :param refused: texts that begin with what was left out
    """
    units = ', '.join(
        f'{amount} {"unit" if amount == 1 else "units"} of {resource_class}'
        for resource_class, amount in sorted(view.units.items())
    )
    devices = list(
        dict.fromkeys(text.split()[0].rstrip(':,') for text in refused)
    )
    return (units or 'no accelerators') + (
        f' (left out: {reason.some(devices, _MAX_LEFT_OUT)})'
        if devices
        else ''
    )


def _digest(
    node: host_view.Node,
    devices: list[dict[str, Any]],
    findings: list[dict[str, Any]],
) -> str:
    content = json.dumps(
        [dataclasses.astuple(node), devices, findings], sort_keys=True
    )
    return hashlib.sha256(content.encode()).hexdigest()
