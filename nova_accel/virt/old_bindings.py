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

"""What becomes of what a source holds when Nova does not say so.

If a resize fails on the destination, or the server is deleted while the
source is down, nobody calls the driver of the source.
"""

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
UNFINISHED = frozenset({
    'accepted', 'pre-migrating', 'migrating', 'post-migrating', 'finished',
    'confirming', 'reverting'})

_Attachments = attachments_module.Attachments


def settle(attachments: _Attachments, service_host: str) -> None:
    """Release or restore what no migration of Nova's needs any more.

    Costs nothing while nothing is set aside.

    :param service_host: the host's name in Nova's RPC
    """
    for instance_uuid, attempt in attachments.attempts(arq.Role.OLD).items():
        try:
            _settle(attachments, instance_uuid, attempt, service_host)
        except (exceptions.AcceleratorError,
                oslo_messaging.MessagingException) as error:
            LOG.warning('It is not known whether instance %s still needs '
                        'its old accelerators, trying again later: %s',
                        instance_uuid, error)


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


def _settle(attachments: _Attachments, instance_uuid: str, attempt: int,
            service_host: str) -> None:
    context = nova_context.get_admin_context()
    try:
        instance = objects.Instance.get_by_uuid(
            context, instance_uuid, expected_attrs=['flavor'])
    except exception.InstanceNotFound:
        attachments.release(instance_uuid, arq.Role.OLD, attempt)
        return
    migrations = objects.MigrationList.get_by_filters(
        context, {'instance_uuid': instance_uuid})
    if not any(migration.status in UNFINISHED for migration in migrations):
        restore_reverted(attachments, instance, service_host)
        attachments.release(instance_uuid, arq.Role.OLD, attempt)
