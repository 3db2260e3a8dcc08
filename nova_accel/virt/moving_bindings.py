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

"""What becomes of what a moving server holds when Nova does not say so.

If a resize fails on the destination, or the server is deleted while the
source is down, nobody calls the driver of the source; nor that of the
destination, if a live migration fails after the destination's last check.
"""

from collections.abc import Callable

from nova import context as nova_context
from nova import exception
from nova import objects
from oslo_log import log as logging
import oslo_messaging

from nova_accel import exceptions
from nova_accel.model import arq
from nova_accel.virt import attachments as attachments_module

LOG = logging.getLogger(__name__)

#: The states of Nova's migrations that can still be confirmed or reverted.
#: "finished" waits for its owner to do so.
#: Of a migration's statuses: its end is still to come.
UNFINISHED = frozenset({
    'accepted', 'pre-migrating', 'migrating', 'post-migrating', 'finished',
    'confirming', 'reverting', 'queued', 'preparing', 'running'})

_Attachments = attachments_module.Attachments

_HasGuest = Callable[[objects.Instance], bool]


def settle(attachments: _Attachments, service_host: str,
           has_guest: _HasGuest) -> None:
    """Release, or make active, what no migration of Nova's needs any more.

    Costs nothing while nothing is set aside or awaited.

    :param service_host: the host's name in Nova's RPC
    :param has_guest: whether the instance has a guest on this host
    """
    for role in (arq.Role.OLD, arq.Role.INCOMING):
        for instance_uuid, attempt in attachments.attempts(role).items():
            try:
                _settle(attachments, instance_uuid, role, attempt,
                        service_host, has_guest)
            except (exceptions.AcceleratorError, exception.NovaException,
                    oslo_messaging.MessagingException) as error:
                LOG.warning('It is not known whether instance %s still needs '
                            'its %s accelerators, trying again later: %s',
                            instance_uuid, role, error)


def restore(attachments: _Attachments, instance_uuid: str) -> None:
    """Make what was set aside active again; what is active stays so.

    :raises DeviceError: a device that was active before is stuck.
    """
    if not attachments.holds(instance_uuid):
        attachments.move(instance_uuid, arq.Role.OLD, arq.Role.ACTIVE)


def restore_reverted(attachments: _Attachments, instance: objects.Instance,
                     service_host: str) -> None:
    """:func:`restore`, if a revert brought the instance back and failed.

    :raises DeviceError: a device that was active before is stuck.
    """
    # Nova forgets the old flavor at the end of a revert, failed or not, and
    # keeps it when a resize fails on the destination.
    if (attachments.holds(instance.uuid, arq.Role.OLD)
            and instance.host == service_host
            and instance.old_flavor is None):
        restore(attachments, instance.uuid)


def _settle(attachments: _Attachments, instance_uuid: str, role: arq.Role,
            attempt: int, service_host: str, has_guest: _HasGuest) -> None:
    context = nova_context.get_admin_context()
    try:
        instance = objects.Instance.get_by_uuid(
            context, instance_uuid, expected_attrs=['flavor'])
    except exception.InstanceNotFound:
        attachments.release(instance_uuid, role, attempt)
        return
    migrations = objects.MigrationList.get_by_filters(
        context, {'instance_uuid': instance_uuid})
    if any(_needs(role, migration, service_host) for migration in migrations):
        return
    if role is arq.Role.OLD:
        restore_reverted(attachments, instance, service_host)
    elif instance.host == service_host:
        attachments.move(instance_uuid, role, arq.Role.ACTIVE)
    elif has_guest(instance):
        # It has arrived, and Nova does not know.
        return
    attachments.release(instance_uuid, role, attempt)


def _needs(role: arq.Role, migration: objects.Migration,
           service_host: str) -> bool:
    """Whether a migration goes on that may still need the role here."""
    if migration.status not in UNFINISHED:
        return False
    # While the scheduler's hosts are checked, none is the destination.
    return (role is arq.Role.OLD
            or migration.dest_compute in (None, service_host))
