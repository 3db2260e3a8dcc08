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

"""Parts of a started nova-compute that its hooks do not use themselves."""

from nova.virt.libvirt import host as libvirt_host

from nova_accel import conf
from nova_accel.host import all_guests
from nova_accel.host import libvirt_devices
from nova_accel.model.providers import host_view
from nova_accel.virt import parts
from nova_accel.virt.holding import mdevs
from nova_accel.virt.holding import reconcile
from nova_accel.virt.publishing import publication

CONF = conf.CONF


def current_state(started: parts.Parts) -> host_view.CurrentState:
    return started.os_acc._current


def publisher(started: parts.Parts) -> publication.Publisher:
    return started.os_acc._publisher


def reconciler(
    started: parts.Parts, host: libvirt_host.Host
) -> reconcile.Reconciler:
    """Another reconciler of the host, for a pass at any moment.

    It remembers its own passes, and not those of the cycle.
    """
    node_devices = libvirt_devices.NodeDevices(host)
    guests = all_guests.AllGuests(host)
    return reconcile.Reconciler(
        started.node.service_host,
        CONF.nova_accel.reconcile_interval_s,
        started.api,
        started.attachments,
        guests,
        mdevs.UnusedMdevs(node_devices, guests, started.attachments),
        current_state(started),
        started.cycle.hurry,
    )


def count(started: parts.Parts, host: libvirt_host.Host) -> None:
    """The part of a pass that is about what the host holds in Placement."""
    reconciler(started, host).count()
