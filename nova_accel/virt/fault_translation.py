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

"""The translation of our faults into Nova's exceptions.

Nova shows the text of an exception to the owner of the server. It shows the
exception's cause to administrators only: in the details of the server's fault
and in the log.
"""

from collections.abc import Iterator
import contextlib

from nova import exception
from oslo_log import log as logging

from nova_accel import exceptions

LOG = logging.getLogger(__name__)


def public(fault: BaseException) -> str:
    """The text of a fault that the owner of the server may read.

    The texts of Nova's own exceptions are for the owner. For any fault that
    is neither Nova's nor ours, the text is the name of its class.
    """
    match fault:
        case exception.InstanceFaultRollback():
            return public(fault.inner_exception)
        case exceptions.AcceleratorError():
            return fault.public
        case exception.NovaException():
            return str(fault.format_message())
        case _:
            return type(fault).__name__


def as_unavailable() -> contextlib.AbstractContextManager[None]:
    """Translate our faults to the one that makes Nova try another host.

    :raises ImageUnacceptable: a bitstream is at fault. Nova tries no other
        host, and the server's owner reads why.
    :raises ComputeResourcesUnavailable: for every other fault.
    """
    return _translated(exception.ComputeResourcesUnavailable)


def as_failed() -> contextlib.AbstractContextManager[None]:
    """Translate our faults to those that make Nova call the server broken.

    It is for a rebuild in place, which has destroyed the guest by then. Nova
    would understand ComputeResourcesUnavailable as a claim that was refused
    before anything was done (``ComputeManager.rebuild_instance``). It would
    then leave a server without a guest ACTIVE.

    :raises ImageUnacceptable: a bitstream is at fault.
    :raises InstanceDeployFailure: for every other fault.
    """
    return _translated(exception.InstanceDeployFailure)


@contextlib.contextmanager
def as_aborted(instance_uuid: str) -> Iterator[None]:
    """Translate the fault that every other host would be answered, too.

    :raises BuildAbortException: the project may not have the accelerators.
        Nova tries no other host, and the server's owner reads why.
    """
    try:
        yield
    except exceptions.OverQuota as error:
        LOG.error('Accelerators cannot be had: %s', error)
        raise exception.BuildAbortException(
            instance_uuid=instance_uuid, reason=public(error)
        ) from error


@contextlib.contextmanager
def _translated(otherwise: type[exception.NovaException]) -> Iterator[None]:
    try:
        yield
    except exceptions.BitstreamUnusable as error:
        raise exception.ImageUnacceptable(
            image_id=error.bitstream_id, reason=public(error)
        ) from error
    except exceptions.AcceleratorError as error:
        LOG.error('Accelerators cannot be had: %s', error)
        raise otherwise(reason=public(error)) from error
