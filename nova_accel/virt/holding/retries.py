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

"""Steps that may fail, and are taken again later."""

from collections.abc import Iterator
import contextlib

from nova import exception
from oslo_log import log as logging
import oslo_messaging

from nova_accel import exceptions
from nova_accel.model import finding

LOG = logging.getLogger(__name__)

_AWAY = (
    exceptions.ServiceUnavailable,
    oslo_messaging.MessagingException,
)

_FAULTS = (
    exceptions.AcceleratorError,
    exception.NovaException,
    oslo_messaging.MessagingException,
)


class Try:
    """How a step has ended.

    ``fault`` says why it failed. It is None, too, if another service did not
    answer: that is nothing amiss with the host.
    """

    def __init__(self) -> None:
        self.is_done = False
        self.fault: str | None = None

    def outcome(
        self,
        kind: finding.Kind,
        words: str,
        instance_uuid: str | None = None,
        device: str | None = None,
    ) -> list[finding.Finding]:
        """The finding of what was amiss: repaired, if the step is done.

        :param words: what was amiss, and what the step does about it
        """
        if not self.is_done:
            if self.fault is None:
                return []
            words = f'{words}; that has failed: {self.fault}'
        return [
            finding.Finding(kind, words, self.is_done, instance_uuid, device)
        ]

    def failure(self, sentence: str) -> list[finding.Finding]:
        """That the step has failed, if it has."""
        if self.fault is None:
            return []
        return [
            finding.Finding(finding.Kind.NOT_DONE, f'{sentence}: {self.fault}')
        ]


@contextlib.contextmanager
def retry_later(sentence: str) -> Iterator[Try]:
    """Log a failure of the body, which is tried again in the next pass."""
    tried = Try()
    try:
        yield tried
        tried.is_done = True
    except _FAULTS as error:
        LOG.warning('%s, trying again later: %s', sentence, error)
        if not isinstance(error, _AWAY):
            tried.fault = str(error)
    except Exception as error:
        LOG.exception('%s, trying again later', sentence)
        tried.fault = repr(error)
