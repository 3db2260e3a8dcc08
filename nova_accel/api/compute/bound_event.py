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

"""The event ``accelerator-request-bound``, for ARQs that are bound again.

After its boot a host makes devices again, and their ARQs are not resolved
meanwhile. The event tells nova-compute whether the host has succeeded. If it
succeeds after a failure, another event says so.

An ARQ that a ``PATCH`` binds is resolved when the ``PATCH`` is answered.
nova-compute asks before it would wait, so this needs no event.

The event goes the way of Nova's own ``POST /os-server-external-events``, but
in process: a nova-api that called itself over HTTP could wait for itself.
"""

from collections.abc import Iterable
from collections.abc import Mapping

from nova import context as nova_context
from nova import objects
from nova.compute import api as compute_api
from oslo_log import log as logging

from nova_accel.api.compute import cell_instances
from nova_accel.db.rows import arq_rows
from nova_accel.model import arq_types

LOG = logging.getLogger(__name__)

_NAME = 'accelerator-request-bound'

#: The state of an ARQ -> the status that Nova is told.
_STATUSES: Mapping[str, str] = {
    arq_types.State.BOUND: 'completed',
    arq_types.State.PROVISIONING: 'failed',
}


def send(arqs: Iterable[arq_rows.BoundArqRow]) -> None:
    """Send an event for each ARQ whose instance is on a host.

    Does not raise, since the ARQs stay bound in any case.

    :param arqs: none costs nothing
    """
    arqs = list(arqs)
    if not arqs:
        return
    try:
        _send(arqs)
    except Exception:
        LOG.exception(
            'Nova is not notified of the binding of ARQs %s',
            ', '.join(arq['uuid'] for arq in arqs),
        )


def _send(arqs: Iterable[arq_rows.BoundArqRow]) -> None:
    context = nova_context.get_admin_context()
    instances = {
        instance.uuid: instance
        for instance in cell_instances.read(
            context,
            {arq['instance_uuid'] for arq in arqs},
            'migration_context',
        )
        if instance.host
    }
    events = [
        objects.InstanceExternalEvent(
            context,
            instance_uuid=arq['instance_uuid'],
            name=_NAME,
            status=_STATUSES[arq['state']],
            tag=arq['uuid'],
        )
        for arq in arqs
        if arq['instance_uuid'] in instances
    ]
    if events:
        compute_api.API().external_instance_event(
            context, list(instances.values()), events
        )
