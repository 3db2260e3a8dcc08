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

"""Steps that may fail, and are taken again later; a release is one."""

from collections.abc import Container
from collections.abc import Iterator
import contextlib
import dataclasses
from typing import Any

from nova import exception
from oslo_log import log as logging
import oslo_messaging

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.model import arq_types
from nova_accel.model import finding
from nova_accel.model import host_findings
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import cleaning
from nova_accel.virt.holding import plugging

LOG = logging.getLogger(__name__)

_Step = attach_journal.AttachStep

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
    answer: that is no fault of the host.
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
        """The finding of what was wrong: repaired, if the step is done.

        :param words: what was wrong, and what the step does about it
        """
        if not self.is_done:
            if self.fault is None:
                return []
            words = f'{words}; that has failed: {self.fault}'
        return [
            finding.Finding(kind, words, self.is_done, instance_uuid, device)
        ]

    def failure(
        self,
        sentence: str,
        kind: finding.Kind = finding.Kind.NOT_DONE,
        instance_uuid: str | None = None,
    ) -> list[finding.Finding]:
        """That the step has failed, if it has."""
        if self.fault is None:
            return []
        return [
            finding.Finding(
                kind, f'{sentence}: {self.fault}', instance_uuid=instance_uuid
            )
        ]


@contextlib.contextmanager
def retry_later(
    sentence: str, instance_uuid: str | None = None
) -> Iterator[Try]:
    """Log a failure of the body, which is tried again in the next pass.

    :param sentence: says what a failure means
    :param instance_uuid: the instance that the log names, if it is one's
    """
    of: dict[str, Any] = (
        {} if instance_uuid is None else {'instance_uuid': instance_uuid}
    )
    tried = Try()
    try:
        yield tried
        tried.is_done = True
    except _FAULTS as error:
        LOG.warning('%s, trying again later: %s', sentence, error, **of)
        if not isinstance(error, _AWAY):
            tried.fault = str(error)
    except Exception as error:
        LOG.exception('%s, trying again later', sentence, **of)
        tried.fault = repr(error)


class Releases:
    """The releases of one host.

    :param cleaner: is told which ARQs were just given back to the API
    """

    def __init__(
        self,
        journal: attach_journal.AttachJournal,
        api: accelerator_api.AcceleratorApi,
        devices: plugging.Devices,
        cleaner: cleaning.Cleaner,
        findings: host_findings.Findings,
    ) -> None:
        self._journal = journal
        self._api = api
        self._devices = devices
        self._cleaner = cleaner
        self._findings = findings
        self._failed: dict[
            tuple[str, arq_types.Role], list[finding.Finding]
        ] = {}
        # To be released, with their attempts; a full disk keeps no journal.
        self._unreleased: dict[tuple[str, arq_types.Role], int] = {}

    def is_due(self, entry: attach_journal.AttachEntry) -> bool:
        """Whether an entry is to be released, or its acquire was cut short."""
        return (
            entry.step is _Step.RELEASING
            # Otherwise it is a change, which is settled.
            or (entry.step is _Step.ACQUIRING and entry.leaving is None)
            or entry.attempt
            == self._unreleased.get((entry.instance_uuid, entry.role))
        )

    def release(self, entry: attach_journal.AttachEntry) -> None:
        """Unplug its devices, free its ARQs, and forget it.

        The caller has the instance's lock.

        :raises AcceleratorError: it is due from then on.
        """
        binding = entry.instance_uuid, entry.role
        self._unreleased[binding] = entry.attempt
        self._journal.write(
            dataclasses.replace(entry, step=_Step.RELEASING, leaving=None)
        )
        # The device must be free before the next tenant can get its handle.
        self._devices.unplug_all(entry.arqs)
        for role in filter(None, (entry.role, entry.moved_from)):
            self.free(entry.instance_uuid, role, entry.attempt)
        # The cleaner is told while the journal still reserves them.
        self._cleaner.released(entry.arqs)
        self._journal.remove(entry)
        self._unreleased.pop(binding, None)
        if entry.arqs:
            LOG.info(
                'Instance %s returned %s (%s)',
                entry.instance_uuid,
                arq_types.in_words(entry.arqs),
                entry.role,
                instance_uuid=entry.instance_uuid,
            )

    def free(
        self, instance_uuid: str, role: arq_types.Role, attempt: int
    ) -> None:
        """Have the API free handles that are unplugged.

        :raises ServiceUnavailable: it is not known whether it did.
        """
        try:
            self._api.release(instance_uuid, role, attempt)
        except exceptions.StaleAttempt as error:
            # A newer attempt has come after this journal was saved.
            LOG.info(
                'Nothing to release for instance %s (%s): %s',
                instance_uuid,
                role,
                error,
                instance_uuid=instance_uuid,
            )
        except exceptions.FarAttempt as error:
            # The API has forgotten the numbers, or this host's clock was once
            # far ahead.
            if error.newest is None:
                raise
            self._api.release(instance_uuid, role, error.newest)

    @contextlib.contextmanager
    def retry_later(
        self, instance_uuid: str, role: arq_types.Role
    ) -> Iterator[None]:
        """Log a release that fails, and leave it for the next time.

        It is a finding until it succeeds. An API that does not answer is
        no fault of the host.
        """
        with retry_later(
            f'The accelerators of instance {instance_uuid} ({role}) are not '
            'released yet',
            instance_uuid,
        ) as tried:
            yield
        found = tried.failure(
            f'its accelerators ({role}) are not released yet',
            finding.Kind.NOT_RELEASED,
            instance_uuid,
        )
        if found:
            self._failed[instance_uuid, role] = found
        else:
            # Servers come and go: what is released is not remembered.
            self._failed.pop((instance_uuid, role), None)
        self._put_failed()

    def keep_failed(
        self, bindings: Container[tuple[str, arq_types.Role]]
    ) -> None:
        """Forget all failures but these: the others are released by now."""
        for binding in list(self._failed):
            if binding not in bindings:
                self._failed.pop(binding, None)
        self._put_failed()

    def _put_failed(self) -> None:
        self._findings.put(
            'releases',
            [each for found in list(self._failed.values()) for each in found],
        )
