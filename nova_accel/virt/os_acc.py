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

"""What servers get of this host's accelerators, and give back.

It is the front that the specification of os-acc has, see "Cyborg-Nova-Glance
Interaction in Compute Node": ``initialize``, ``plug`` and ``unplug``. Each
waits until it is done, so whoever has other things to do meanwhile submits it
to an executor, as the specification shows.

Nova's libvirt driver makes a guest step by step, and so its hooks take
``plug`` in its two halves: :meth:`OsAcc.acquired`, which has workers program
while Nova downloads the image, and :meth:`OsAcc.ready`, which waits for them
where the guest's XML is made.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
from typing import Any

from nova import context as nova_context
from nova import objects
from nova import utils
from nova.network import model as network_model
from oslo_log import log as logging

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.model import arq
from nova_accel.model import device_profile
from nova_accel.model import matching
from nova_accel.model import programming
from nova_accel.virt import accel_info as accel_info_module
from nova_accel.virt import attachments as attachments_module
from nova_accel.virt import flavor
from nova_accel.virt import image_properties
from nova_accel.virt import programming as programming_module
from nova_accel.virt import publisher as publisher_module

CONF = conf.CONF
LOG = logging.getLogger(__name__)

#: The roles of what a guest has.
_OF_GUESTS = (arq.Role.ACTIVE, arq.Role.PORT)


class OsAcc:
    """The accelerators of one host, for its servers.

    :param image: an image as Nova's image API has it, by its uuid
    """

    def __init__(self, publisher: publisher_module.Publisher,
                 attachments: attachments_module.Attachments,
                 programmer: programming_module.Programmer,
                 image: Callable[[str], Mapping[str, Any]]) -> None:
        self._publisher = publisher
        self._attachments = attachments
        self._programmer = programmer
        self._image = image

    def initialize(self) -> None:
        """Wait until all devices are found and their traits published.

        :raises CyborgAgentUnavailable: they are not within
            ``publish_timeout_s``.
        """
        try:
            self._publisher.wait_published(CONF.nova_accel.publish_timeout_s)
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
        instance = self._instance(instance_info, flavor_extra_specs)
        with self.acquired(None, instance, [matching.Provider(
                selected_rp['uuid'], selected_rp['resources'],
                frozenset(selected_rp['traits']))]):
            return [_told(request) for request in self.ready(instance)]

    def unplug(self, instance_info: Mapping[str, str]) -> int:
        """Give back what an instance has, that of its ports too.

        Does not raise: what is not given back now is later.

        :param instance_info: ``uuid``; the log has no other name of it
        :returns: how many accelerators are given back
        """
        return self._release(instance_info['uuid'], _OF_GUESTS)

    @contextlib.contextmanager
    def acquired(self, context: nova_context.RequestContext | None,
                 instance: objects.Instance,
                 providers: Iterable[matching.Provider],
                 found: accel_info_module.Split = accel_info_module.NOTHING,
                 keeps: Callable[[], bool] = lambda: False,
                 ) -> Iterator[None]:
        """Hold what the instance's flavor asks for, and begin to program it.

        The body calls :meth:`ready`. If it fails the instance holds what it
        did before.

        :param context: the user's, who must be allowed to see the bitstreams;
            None for the service's
        :param providers: what is allocated to the instance of ours
        :param found: the ARQs that Nova has got for it
        :param keeps: whether it is to keep what it has although the body
            failed
        :raises AcceleratorError: it holds no more than it did before.
        """
        taken = [role for role in _OF_GUESTS
                 if not self._attachments.holds(instance.uuid, role)]
        profile = flavor.profile(instance.flavor, found)
        if profile is not None and found.ours:
            self._attachments.adopt(instance.uuid, found.ours)
        elif profile is not None:
            self.acquire(instance, profile, providers)
        asking = instance if context is None else context
        try:
            self._programmer.start(
                self._attachments.held_by(instance.uuid),
                programming.Asker(
                    asking.project_id, asking.user_id, instance.uuid),
                image_properties.of(instance), context)
            yield
        except BaseException:
            self._programmer.abandon(instance.uuid)
            if not keeps():
                self._release(instance.uuid, taken)
            raise

    def acquire(self, instance: objects.Instance, profile: str,
                providers: Iterable[matching.Provider],
                role: arq.Role = arq.Role.ACTIVE) -> None:
        """Bind the instance's ARQs.

        :raises AcceleratorError: it holds no more than it did before.
        """
        self.initialize()
        self._attachments.acquire(
            instance.uuid, instance.project_id, profile, providers, role)

    def ready(self, instance: objects.Instance,
              found: accel_info_module.Split = accel_info_module.NOTHING,
              role: arq.Role = arq.Role.ACTIVE) -> tuple[arq.Arq, ...]:
        """Make the devices of the instance ready for its guest.

        What the journal has lost is recovered from the API.

        :param found: the ARQs that Nova has got for the server, none if it
            did not ask
        :raises AcceleratorError: one cannot be made ready, or there is none
            although the flavor has a device profile of ours.
        """
        arqs = self._ready(instance, role)
        if arqs or not flavor.may_ask_us(instance.flavor, found):
            return arqs
        LOG.warning('The journal has no accelerators of instance %s; asking '
                    'the accelerator API for them', instance.uuid)
        self._attachments.recover_of(instance.uuid, role)
        arqs = self._ready(instance, role)
        profile = flavor.profile(instance.flavor, found)
        if profile is not None and not arqs:
            raise exceptions.DeviceError(
                f'instance {instance.uuid}, whose flavor asks for {profile}, '
                'has no accelerators on this host')
        return arqs

    def ready_ports(self, instance: objects.Instance,
                    network_info: network_model.NetworkInfo) -> None:
        """Hold, and make ready, the devices that the instance's ports have.

        :raises AcceleratorError: an ARQ cannot be held, or a device not be
            made ready.
        """
        held = {request.uuid: str(request.handle.address) for request
                in self._attachments.held_by(instance.uuid, arq.Role.PORT)}
        named = accel_info_module.of_ports(
            network_info,
            self._publisher.view.functions.union(held.values()))
        if named - held.keys():
            self._attachments.adopt(
                instance.uuid, sorted(named), arq.Role.PORT)
        self._ready(instance, arq.Role.PORT)

    def _ready(self, instance: objects.Instance,
               role: arq.Role) -> tuple[arq.Arq, ...]:
        """Have regions hold what they are to, then plug."""
        arqs = self._attachments.held_by(instance.uuid, role)
        if arqs:
            self._programmer.ready(
                arqs, programming.Asker(
                    instance.project_id, instance.user_id, instance.uuid),
                image_properties.of(instance),
                is_new=role is arq.Role.INCOMING)
        return self._attachments.plug(instance.uuid, role)

    def _release(self, instance_uuid: str, roles: Iterable[arq.Role]) -> int:
        return sum(self._attachments.release(instance_uuid, role)
                   for role in roles)

    def _instance(self, info: Mapping[str, str],
                  extra_specs: Mapping[str, str]) -> objects.Instance:
        """What ``plug`` is told of an instance, as Nova has instances.

        :raises InvalidRequest: the flavor has no device profile.
        """
        profile = (extra_specs.get(device_profile.FLAVOR_KEY)
                   or extra_specs.get(device_profile.CYBORG_FLAVOR_KEY))
        if profile is None:
            raise exceptions.InvalidRequest(
                f'the flavor of {info["name"]} has no '
                f'{device_profile.FLAVOR_KEY}')
        image_id = info.get('image_id')
        return objects.Instance(
            uuid=info['uuid'], project_id=info['project_id'], user_id=None,
            flavor=objects.Flavor(
                extra_specs={device_profile.FLAVOR_KEY: profile}),
            system_metadata=utils.get_system_metadata_from_image(
                self._image(image_id) if image_id else {}))


def _told(request: arq.Arq) -> dict[str, str]:
    if request.handle.mdev_type is not None:
        return {'mdev_uuid': request.handle.uuid}
    return {'pci_id': str(request.handle.address)}
