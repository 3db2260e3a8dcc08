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

"""Refusing what the API gives, because another instance has it on the host.

A database may be restored, or fail over without its last transactions. It then
gives an instance a device that the guest of another one has. By the host's
journal the other one keeps it.
"""

from collections.abc import Mapping

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.virt.holding import attach_journal

LOG = logging.getLogger(__name__)


def of(
    nodename: str, entry: attach_journal.Entry, taken: Mapping[str, str]
) -> exceptions.Conflict:
    """The fault that names what is refused. It is logged here.

    :param entry: has what the API gives to its instance
    :param taken: attach handle uuid -> the instance that has it, as
        :meth:`nova_accel.virt.holding.holdings.Holdings.by_others` says
    """
    refusal = exceptions.Conflict(
        '; '.join(
            f'the accelerator API gives {arq.handle.address} of host '
            f'{nodename} to instance {entry.instance_uuid}, and by '
            f"the host's journal instance {taken[arq.handle.uuid]} "
            'has it'
            for arq in entry.arqs
            if arq.handle.uuid in taken
        )
    )
    LOG.error(
        'Accelerators are refused: %s. Has the database of '
        'accelerators lost its last transactions?',
        refusal,
        instance_uuid=entry.instance_uuid,
    )
    return refusal
