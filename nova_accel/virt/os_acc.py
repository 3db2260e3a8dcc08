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

"""The front that the specification of os-acc has, on this host.

See "Cyborg-Nova-Glance Interaction in Compute Node". Each call waits until it
is done, so whoever has other things to do meanwhile submits it to an executor,
as the specification shows. What the libvirt driver does with instances is the
same, in the same parts.
"""

from collections.abc import Callable
from collections.abc import Mapping
import types
from typing import Any

from nova_accel import exceptions
from nova_accel.model import arq
from nova_accel.model import device_profile
from nova_accel.model import matching
from nova_accel.model import programming
from nova_accel.virt import host_accelerators


class OsAcc:
    """The accelerators of one host.

    :param image_properties: those of a virtual machine's image in Glance, by
        its uuid
    """

    def __init__(self, accelerators: host_accelerators.HostAccelerators,
                 image_properties: Callable[[str], Mapping[str, Any]],
                 ) -> None:
        self._accelerators = accelerators
        self._image_properties = image_properties

    def initialize(self) -> None:
        """Wait until all devices are found and their traits published.

        :raises CyborgAgentUnavailable: they are not within
            ``publish_timeout_s``.
        """
        try:
            self._accelerators.wait_published()
        except exceptions.ServiceUnavailable as error:
            raise exceptions.CyborgAgentUnavailable(str(error)) from error

    def plug(self, instance_info: Mapping[str, str],
             selected_rp: Mapping[str, Any],
             flavor_extra_specs: Mapping[str, str]) -> list[dict[str, str]]:
        """Hold accelerators for an instance, programmed and ready.

        :param instance_info: ``uuid``, ``name``, ``project_id`` and, unless
            it boots from a volume, ``image_id``
        :param selected_rp: ``uuid`` of the resource provider, its
            ``resources`` as they are allocated (resource class -> units) and
            its ``traits``
        :param flavor_extra_specs: with the name of a device profile
        :returns: of each accelerator its ``pci_id``, or the ``mdev_uuid`` of
            a mediated device
        :raises InvalidRequest: the flavor has no device profile.
        :raises AcceleratorError: it holds no more than it did before.
        """
        profile = (flavor_extra_specs.get(device_profile.FLAVOR_KEY)
                   or flavor_extra_specs.get(device_profile.CYBORG_FLAVOR_KEY))
        if profile is None:
            raise exceptions.InvalidRequest(
                f'the flavor of {instance_info["name"]} has no '
                f'{device_profile.FLAVOR_KEY}')
        instance = types.SimpleNamespace(
            uuid=instance_info['uuid'],
            project_id=instance_info['project_id'])
        attachments = self._accelerators.attachments
        was_held = attachments.holds(instance.uuid)
        self._accelerators.acquire(instance, profile, [matching.Provider(
            selected_rp['uuid'], selected_rp['resources'],
            frozenset(selected_rp['traits']))])
        try:
            image_id = instance_info.get('image_id')
            arqs = attachments.held_by(instance.uuid)
            self._accelerators.programmer.ready(
                arqs, programming.Asker(
                    instance.project_id, instance_uuid=instance.uuid),
                self._image_properties(image_id) if image_id else {},
                is_new=True)
            return [_told(request)
                    for request in attachments.plug(instance.uuid)]
        except BaseException:
            if not was_held:
                attachments.release(instance.uuid)
            raise

    def unplug(self, instance_info: Mapping[str, str]) -> int:
        """Give back what an instance has.

        :param instance_info: ``uuid`` and ``name``
        :returns: how many accelerators
        :raises DeviceError: some are not given back yet; they are later.
        """
        attachments = self._accelerators.attachments
        uuid = instance_info['uuid']
        held = len(attachments.held_by(uuid))
        attachments.release(uuid)
        if (uuid, arq.Role.ACTIVE) in attachments.journaled():
            raise exceptions.DeviceError(
                f'the accelerators of {instance_info["name"]} are not '
                'released yet')
        return held


def _told(request: arq.Arq) -> dict[str, str]:
    if request.handle.mdev_type is not None:
        return {'mdev_uuid': request.handle.uuid}
    return {'pci_id': str(request.handle.address)}
