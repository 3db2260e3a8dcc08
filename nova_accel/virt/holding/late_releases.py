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

"""Releases of accelerators that fail, and are tried again."""

from collections.abc import Container
from collections.abc import Iterator
import contextlib

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import finding
from nova_accel.model import host_findings

LOG = logging.getLogger(__name__)

_LATER = (
    'The accelerators of instance %s (%s) are not released yet, trying again '
    'later'
)


class LateReleases:
    """The releases of one host that have failed, until they succeed."""

    def __init__(self, findings: host_findings.Findings) -> None:
        self._findings = findings
        self._failed: dict[tuple[str, arq_types.Role], finding.Finding] = {}

    @contextlib.contextmanager
    def tried(
        self, instance_uuid: str, role: arq_types.Role
    ) -> Iterator[None]:
        """Log a release that fails, and leave it for the next time.

        An API that does not answer is nothing amiss with the host.
        """
        fault = None
        try:
            yield
        except exceptions.AcceleratorError as error:
            LOG.warning(
                _LATER + ': %s',
                instance_uuid,
                role,
                error,
                instance_uuid=instance_uuid,
            )
            if not isinstance(error, exceptions.ServiceUnavailable):
                fault = str(error)
        except Exception as error:
            # A bug must prevent neither deletions nor the retries of others.
            LOG.exception(
                _LATER, instance_uuid, role, instance_uuid=instance_uuid
            )
            fault = repr(error)
        self._note(instance_uuid, role, fault)

    def keep(self, bindings: Container[tuple[str, arq_types.Role]]) -> None:
        """Forget all but these: the others are released some other way."""
        for instance_uuid, role in list(self._failed):
            if (instance_uuid, role) not in bindings:
                self._note(instance_uuid, role, None)

    def _note(
        self, instance_uuid: str, role: arq_types.Role, fault: str | None
    ) -> None:
        if fault is None:
            if self._failed.pop((instance_uuid, role), None) is None:
                return
        else:
            self._failed[instance_uuid, role] = finding.Finding(
                finding.Kind.NOT_RELEASED,
                f'its accelerators ({role}) are not released yet: {fault}',
                instance_uuid=instance_uuid,
            )
        self._findings.put('releases', list(self._failed.values()))
