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

"""The accelerators that the source of a resize or cold migration keeps.

It keeps them until the move ends. If Nova does not call the source's driver
then, :mod:`.reconcile` releases them, or makes them active again.
"""

from nova import objects

from nova_accel.model import arq_types
from nova_accel.virt.holding import attaching

_Attachments = attaching.Attachments


def restore(
    attachments: _Attachments, instance_uuid: str, is_reverted: bool = False
) -> None:
    """Make old accelerators active again, unless there are active ones.

    :param is_reverted: replace active ones. After a revert on one host they
        are those of the destination, which it could not release
    :raises DeviceError: a device that was active before is stuck.
    """
    if is_reverted or not attachments.held.has(instance_uuid):
        attachments.move(
            instance_uuid, arq_types.Role.OLD, arq_types.Role.ACTIVE
        )


def restore_reverted(
    attachments: _Attachments, instance: objects.Instance, service_host: str
) -> None:
    """:func:`restore`, if a revert brought the instance back and failed.

    :raises DeviceError: a device that was active before is stuck.
    """
    # Nova forgets the old flavor at the end of a revert, also if the revert
    # failed. It keeps the old flavor if a resize fails on the destination.
    if (
        attachments.held.has(instance.uuid, arq_types.Role.OLD)
        and instance.host == service_host
        and instance.old_flavor is None
    ):
        restore(attachments, instance.uuid)
