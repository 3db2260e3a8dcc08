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

"""The section of a compute host in a guru meditation report."""

from typing import Any

from nova_accel import reason
from nova_accel.model import host_orders
from nova_accel.model import naming
from nova_accel.model.devices import hardware
from nova_accel.model.providers import host_view

#: A host with more devices is simulated, or mad.
MAX_DEVICES = 500


def facts(
    node: host_view.Node, current: host_view.CurrentState
) -> dict[str, Any]:
    """The present knowledge of the host of its devices."""
    view, orders = current.view, current.orders
    devices = [
        _device(view.node_uuid, device, orders)
        for device in view.devices[:MAX_DEVICES]
    ]
    left_out = len(view.devices) - len(devices)
    return {
        'host': node.nodename,
        'orders of the API': (
            'none came' if orders is None else f'revision {orders.revision}'
        ),
        'units': dict(sorted(view.units.items())),
        'devices': {
            **dict(devices),
            **({'left out': left_out} if left_out else {}),
        },
    }


def _device(
    node_uuid: str,
    device: hardware.Device,
    orders: host_orders.Orders | None,
) -> tuple[str, str]:
    """A device, and what its host thinks of it."""
    uuid = naming.derived_uuid(node_uuid, device.name)
    is_disabled = orders is not None and uuid in orders.disabled
    faults = [
        fault
        for fault in (
            device.fault,
            *(deployable.fault for deployable in device.deployables),
        )
        if fault is not None
    ]
    return device.name, reason.printable(
        f'{device.driver}, {sum(1 for _ in device.handles)} units'
        + (', disabled' if is_disabled else '')
        + ''.join(f', faulty: {fault}' for fault in faults)
    )
