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


"""Learning from the API what damaged entries of the journal had.

The host cannot trust a damaged entry, and must not lose what it said: the
guest may have these devices. The accelerator API knows the owner of each
attach handle. So the host asks it, and journals the answer. The damaged file
is put aside, where people can look at it. Until the API has answered, the
operations of that one instance fail, and nothing is released of it.

All code here runs under the instance's lock.
"""

from collections.abc import Callable
from collections.abc import Iterable

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.model import arq_types
from nova_accel.model import finding
from nova_accel.model import host_binding
from nova_accel.model import host_findings
from nova_accel.virt.holding import attach_journal

LOG = logging.getLogger(__name__)

_Bindings = Iterable[host_binding.Binding]


class Mending:
    """The damaged entries of one host.

    :param hold: journals a binding that only the API has
    """

    def __init__(
        self,
        journal: attach_journal.Journal,
        api: accelerator_api.AcceleratorApi,
        hold: Callable[[host_binding.Binding], None],
        findings: host_findings.Findings,
    ) -> None:
        self._journal = journal
        self._api = api
        self._hold = hold
        self._findings = findings

    def mend(
        self, instance_uuid: str, listed: _Bindings | None = None
    ) -> None:
        """Replace the damaged entries of an instance, if it has any.

        :param listed: the API's bindings of this host, None to ask for them
        :raises DeviceError: one stays damaged, because the API does not
            answer, or what it says cannot be held.
        """
        damaged = self._journal.damaged_of(instance_uuid)
        if not damaged:
            return
        try:
            known = {
                binding.role: binding
                for binding in (
                    self._api.bindings() if listed is None else listed
                )
                if binding.instance_uuid == instance_uuid
                and binding.role is not None
            }
            for role, why in damaged.items():
                self._mend(instance_uuid, role, known.get(role), why)
        except exceptions.AcceleratorError as error:
            raise exceptions.DeviceError(
                f'{"; ".join(damaged.values())}; that has failed: {error}'
            ) from error

    def mend_or_warn(self, instance_uuid: str) -> None:
        """Call :meth:`mend`; if it fails, leave the rest for the next time."""
        try:
            self.mend(instance_uuid)
        except exceptions.DeviceError as error:
            LOG.warning(
                'What instance %s holds is not known, trying again later: %s',
                instance_uuid,
                error,
                instance_uuid=instance_uuid,
            )

    def _mend(
        self,
        instance_uuid: str,
        role: arq_types.Role,
        binding: host_binding.Binding | None,
        why: str,
    ) -> None:
        """:raises AcceleratorError: the entry stays damaged."""
        moved = {
            arq.uuid
            for entry in self._journal.entries()
            if entry.instance_uuid == instance_uuid
            and entry.moved_from is not None
            for arq in entry.arqs
        }
        if binding is None or moved.issuperset(binding.arq_uuids):
            self._journal.put_aside(instance_uuid, role)
            outcome = 'by the accelerator API it holds nothing in this role'
        else:
            self._hold(binding)
            outcome = (
                'the accelerator API has told what it holds: ARQs '
                f'{", ".join(binding.arq_uuids)}'
            )
        LOG.info(
            'The journal of instance %s (%s) is whole again: %s',
            instance_uuid,
            role,
            outcome,
            instance_uuid=instance_uuid,
        )
        self._findings.put(
            'mended journal',
            [
                finding.Finding(
                    finding.Kind.JOURNAL,
                    f'{outcome}; {why}',
                    is_repaired=True,
                    instance_uuid=instance_uuid,
                )
            ],
        )
