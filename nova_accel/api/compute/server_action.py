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

"""Entries in the lists of actions that Nova keeps of servers."""

from collections.abc import Collection

from nova import context as nova_context
from nova import objects
from oslo_log import log as logging

from nova_accel import reason
from nova_accel.api.compute import cell_instances

LOG = logging.getLogger(__name__)


def add(name: str, instance_uuids: Collection[str]) -> None:
    """Add an action that has ended to the lists of some servers.

    Does not raise. One line of the log names the servers that do not get it.

    :param instance_uuids: of servers of one cell
    """
    left = set(instance_uuids)
    why = 'Nova does not have them'
    try:
        # Nova finds an action by its request, so each context is of a new one.
        context = nova_context.get_admin_context()
        for instance in cell_instances.read(context, instance_uuids):
            of_cell = instance._context
            objects.InstanceAction.action_start(
                of_cell, instance.uuid, name, want_result=False
            )
            objects.InstanceAction.action_finish(
                of_cell, instance.uuid, want_result=False
            )
            left.remove(instance.uuid)
    except Exception as fault:
        why = str(fault) or type(fault).__name__
    if left:
        LOG.warning(
            'The action %s is not noted of servers %s: %s',
            name,
            ', '.join(sorted(left)),
            reason.printable(why),
        )
