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

"""Why a host could not give a server its accelerators, for who asked.

Nova then tries another host, and the fault of the server is the last one:
"Exceeded maximum number of retries". It tells no host's reason. So each host
adds an event to the server's action, as Nova does for each of its own steps:
``openstack server event show``.

The owner of a server reads an event's name and its result, by Nova's default
policy, and an administrator also host, details and traceback. Therefore the
name has the words for the owner.
"""

from collections.abc import Iterator
import contextlib
import traceback

from nova import context as nova_context
from nova import exception
from nova import objects
from oslo_log import log as logging
from oslo_utils import timeutils

from nova_accel import exceptions
from nova_accel import reason

LOG = logging.getLogger(__name__)

#: The event's name begins with it.
_NAME = 'accelerators: '

#: How many characters Nova's database stores.
_MAX_NAME = 255
_MAX_TRACEBACK = 16_000


@contextlib.contextmanager
def record_fault(
    context: nova_context.RequestContext | None, instance: objects.Instance
) -> Iterator[None]:
    """Add an event with the fault that ends the body.

    :param context: of the action; without one there is no event
    :raises AcceleratorError: of the body
    """
    try:
        yield
    except exceptions.AcceleratorError as fault:
        if context is not None:
            _tell(context, instance, fault)
        raise


def _tell(
    context: nova_context.RequestContext,
    instance: objects.Instance,
    fault: exceptions.AcceleratorError,
) -> None:
    now = timeutils.utcnow(with_timezone=True)
    try:
        objects.InstanceActionEvent(
            context,
            event=reason.sanitize(f'{_NAME}{fault.public}', _MAX_NAME),
            host=instance.host,
            start_time=now,
            finish_time=now,
            result='Error',
            details=reason.sanitize(fault.public),
            traceback=reason.sanitize(
                ''.join(traceback.format_exception(fault))[-_MAX_TRACEBACK:],
                _MAX_TRACEBACK,
            ),
        ).create(instance.uuid, context.request_id)
    except exception.InstanceActionNotFound:
        # Nova itself acts, for example when the host has rebooted.
        return
    except Exception as error:
        # Nova's conductor may be away. Nothing depends on the event.
        LOG.warning(
            'The action of the instance has no event of it: %s',
            error,
            instance=instance,
        )
