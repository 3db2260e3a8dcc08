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


"""Tell of damaged files in which the host keeps its state."""

from collections.abc import Sequence
from typing import Protocol
from typing import TypeVar

from nova_accel.model import finding
from nova_accel.model import host_findings


class Files(Protocol):
    """A journal, or a memory in one file."""

    def damaged(self) -> Sequence[tuple[str | None, str]]:
        """The instance of each damaged file, if known, and what is wrong."""


_F = TypeVar('_F', bound=Files)


class DamagedFiles:
    """The damaged files of one host."""

    def __init__(self, findings: host_findings.Findings) -> None:
        self._findings = findings
        self._journals: list[Files] = []

    def of_journal(self, made: _F) -> _F:
        """Tell of the damaged entries of a journal, as long as they are so.

        :returns: the journal
        """
        self._journals.append(made)
        return made

    def of_memory(self, made: _F) -> _F:
        """Tell once of a memory whose file was damaged.

        The host learns anew what it had.

        :returns: the memory
        """
        self._findings.put(
            'memories',
            [
                finding.Finding(finding.Kind.JOURNAL, why, is_repaired=True)
                for _nobody, why in made.damaged()
            ],
        )
        return made

    def report(self) -> None:
        """Add what is damaged now to the findings of the host."""
        self._findings.put(
            'files',
            [
                finding.Finding(
                    finding.Kind.JOURNAL, why, instance_uuid=instance_uuid
                )
                for journal in self._journals
                for instance_uuid, why in journal.damaged()
            ],
        )
