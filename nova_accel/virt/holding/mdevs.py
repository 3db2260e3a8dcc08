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

"""Mediated devices that the host has lost in a reboot, and makes again.

A guest that starts makes the devices of its server, and does not wait for
this module. Servers that are stopped hold their devices too, and this module
makes those. It also tells the API, which shows the ARQs as Provisioning until
their devices exist.
"""

from collections.abc import Container

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.client import accelerator_api
from nova_accel.model import arq_types
from nova_accel.model import finding
from nova_accel.model import host_findings
from nova_accel.virt.holding import attaching

LOG = logging.getLogger(__name__)


class LostMdevs:
    """The devices that were missing when nova-compute started.

    :param mdevs: the uuids of the mediated devices that exist
    """

    def __init__(
        self,
        api: accelerator_api.AcceleratorApi,
        attachments: attaching.Attachments,
        mdevs: Container[str],
        findings: host_findings.Findings,
    ) -> None:
        self._api = api
        self._findings = findings
        self._attachments = attachments
        self._missing = {
            held.instance_uuid: lost
            for held in attachments.held.bindings()
            if held.role is arq_types.Role.ACTIVE
            and (
                lost := [
                    arq.uuid
                    for arq in held.arqs
                    if arq.handle.mdev_type is not None
                    and arq.handle.uuid not in mdevs
                ]
            )
        }
        #: Instances whose devices refuse, and those that the API knows of.
        self._refusing: set[str] = set()
        self._known_refusing: set[str] = set()
        # An earlier nova-compute may have died before it had told the API.
        self._is_told = False

    def go_on(self) -> None:
        """Tell the API first; from the next call on, make missing devices.

        Nova starts guests in between. A device that refuses is told to the
        API once, and tried again at each call. If no device is missing, a
        call costs nothing.

        :raises ServiceUnavailable: the API does not know the news yet.
        """
        if self._is_told and not self._make():
            return
        self._is_told = False
        refusing = frozenset(self._refusing)
        self._api.provisioning(
            [arq_uuid for lost in self._missing.values() for arq_uuid in lost],
            [
                arq_uuid
                for instance_uuid in refusing - self._known_refusing
                for arq_uuid in self._missing[instance_uuid]
            ],
        )
        self._known_refusing |= refusing
        self._is_told = True

    def _make(self) -> bool:
        """Make missing devices.

        :returns: whether fewer are missing now, or another one refuses
        """
        before = len(self._missing)
        failed = []
        for instance_uuid in list(self._missing):
            try:
                self._attachments.plug(instance_uuid)
            except exceptions.AcceleratorError as error:
                LOG.warning(
                    'The accelerators of instance %s are not made '
                    'again yet: %s',
                    instance_uuid,
                    error,
                    instance_uuid=instance_uuid,
                )
                self._refusing.add(instance_uuid)
                failed.append(
                    finding.Finding(
                        finding.Kind.NOT_MADE,
                        'its accelerators are not made again yet, since the '
                        f'host has lost them: {error}',
                        instance_uuid=instance_uuid,
                    )
                )
            else:
                del self._missing[instance_uuid]
                self._refusing.discard(instance_uuid)
        self._findings.put('lost devices', failed)
        return (
            len(self._missing) < before
            or not self._refusing <= self._known_refusing
        )
