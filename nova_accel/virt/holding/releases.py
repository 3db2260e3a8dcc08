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

"""Giving back what bindings hold, step by step.

All code here runs under the instance's lock.
"""

import dataclasses

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.model import arq_types
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import cleaning
from nova_accel.virt.holding import plugging

LOG = logging.getLogger(__name__)

_Step = attach_journal.Step


class Releases:
    """The releases of one host.

    :param cleaner: is told which ARQs were just given back to the API
    """

    def __init__(
        self,
        journal: attach_journal.Journal,
        api: accelerator_api.AcceleratorApi,
        devices: plugging.Devices,
        cleaner: cleaning.Cleaner,
    ) -> None:
        self._journal = journal
        self._api = api
        self._devices = devices
        self._cleaner = cleaner
        # To be released, with their attempts; a full disk keeps no journal.
        self._unreleased: dict[tuple[str, arq_types.Role], int] = {}

    def is_due(self, entry: attach_journal.Entry) -> bool:
        """Whether an entry is to be released, or its acquire was cut short."""
        return (
            entry.step is not _Step.HELD
            or entry.attempt
            == self._unreleased.get((entry.instance_uuid, entry.role))
        )

    def release(self, entry: attach_journal.Entry) -> None:
        """Unplug its devices, free its ARQs, and forget it.

        :raises AcceleratorError: it is due from then on.
        """
        binding = entry.instance_uuid, entry.role
        self._unreleased[binding] = entry.attempt
        self._journal.write(dataclasses.replace(entry, step=_Step.RELEASING))
        # The device must be free before the next tenant can get its handle.
        self._devices.unplug_all(entry.arqs)
        for role in filter(None, (entry.role, entry.moved_from)):
            self._free(entry.instance_uuid, role, entry.attempt)
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

    def _free(
        self, instance_uuid: str, role: arq_types.Role, attempt: int
    ) -> None:
        """Have the API free handles that are unplugged."""
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
