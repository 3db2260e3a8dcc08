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

"""Replacing the accelerators of a server that have failed.

The server keeps all others, and its place on this host. Another unit of the
same group takes the place of a failed one in the guest: at once, if a running
guest lets go of the failed one, or at its next start.
"""

from collections.abc import Sequence

from nova import conf
from nova import context as nova_context
from nova import objects
from nova.virt.libvirt import guest as libvirt_guest
from nova.virt.libvirt import host as libvirt_host
from oslo_log import log as logging

from nova_accel import conf as our_conf
from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.virt import changing
from nova_accel.virt import hot_plug
from nova_accel.virt import server_flavor

CONF = conf.CONF
OUR_CONF = our_conf.CONF
LOG = logging.getLogger(__name__)

_HINT = 'a hard reboot replaces what has failed'


class ReplacementMixin(changing.ChangeMixin):
    """Replaces when it is asked to, and when a guest is made again."""

    def replace_failed(
        self,
        context: nova_context.RequestContext,
        instance_uuid: str,
        arq_uuids: Sequence[str],
    ) -> None:
        """Give a server other units for some of its ARQs.

        :param context: of the caller, who may change the server
        :raises Conflict: the server is not here, is busy, or is in a state
            that forbids it; there is no other unit; or the guest does not let
            go. The server has what it had before.
        :raises AcceleratorError: another cause; the server has what it had.
        """
        self._change(
            context,
            instance_uuid,
            'replace_accelerators',
            lambda instance: self._replace(
                instance, self._named(instance, arq_uuids)
            ),
        )

    def _made_again(self, instance: objects.Instance) -> None:
        """End a change that was cut short, and replace what has failed.

        The guest is destroyed, and is about to be made again. Nothing here
        keeps it from that: a device that has failed will.
        """
        try:
            if self._accelerators.attachments.settle(instance.uuid):
                server_flavor.read_again(instance)
            view = self._accelerators.current.view
            # The content of a device that is cleaned is its tenant's.
            failed = [
                arq
                for arq in self._held.arqs_of(instance.uuid)
                if arq.handle.uuid in view.faulty - view.cleaned
            ]
            if failed and OUR_CONF.nova_accel.replace_failed:
                self._replace(instance, failed)
        except exceptions.AcceleratorError as error:
            LOG.warning(
                'Its failed accelerators are not replaced: %s',
                error,
                instance=instance,
            )

    def _named(
        self, instance: objects.Instance, arq_uuids: Sequence[str]
    ) -> list[arq_types.Arq]:
        """:raises Conflict: the server does not hold one of them."""
        held = {arq.uuid: arq for arq in self._held.arqs_of(instance.uuid)}
        for uuid in arq_uuids:
            if uuid not in held:
                raise exceptions.Conflict(
                    f'instance {instance.uuid} does not hold ARQ {uuid}',
                    public='the server does not have one of them any more',
                )
        return [held[uuid] for uuid in arq_uuids]

    def _replace(
        self, instance: objects.Instance, failed: Sequence[arq_types.Arq]
    ) -> None:
        """See :meth:`replace_failed` for the errors."""
        guest = self._running_guest(instance)
        if guest is not None and self._accelerators.fabric.has(instance.uuid):
            raise exceptions.Conflict(
                f'the guest of instance {instance.uuid} has a partition of '
                'NVSwitches: stop the server first',
                public='stop the server first: its GPUs are joined',
            )
        attachments = self._accelerators.attachments
        wanted = self._choice().in_place_of(failed)
        with attachments.changing(instance.uuid):
            added = _in_order(failed, self._add(instance, wanted))
            replaced = {
                old.uuid: new for old, new in zip(failed, added, strict=True)
            }
            arqs = [
                replaced.get(arq.uuid, arq)
                for arq in self._held.arqs_of(instance.uuid)
            ]
            if guest is None:
                attachments.commit(instance.uuid, arqs)
            else:
                self._exchange(instance, guest, failed, added, arqs)
        # The failed units are to be reserved.
        self._accelerators.current.is_doubtful = True
        LOG.info(
            'Replaced %s by %s',
            arq_types.in_words(failed),
            arq_types.in_words(added),
            instance=instance,
        )

    def _exchange(
        self,
        instance: objects.Instance,
        guest: libvirt_guest.Guest,
        failed: Sequence[arq_types.Arq],
        added: Sequence[arq_types.Arq],
        arqs: Sequence[arq_types.Arq],
    ) -> None:
        """Exchange devices of a running guest.

        :param arqs: all that the guest then has
        :raises Conflict: the guest does not let go.
        :raises DeviceError: the guest gets the new ones at its next start.
        """
        self._made_ready_beside(instance, added)
        try:
            with self._unbinding([*failed, *added]):
                places = hot_plug.take_out(
                    guest, failed, CONF.libvirt.device_detach_timeout
                )
                self._accelerators.attachments.commit(instance.uuid, arqs)
                hot_plug.put_in(guest, added, places)
        except libvirt_host.libvirt.libvirtError as error:
            raise exceptions.DeviceError(
                f'libvirt refuses: {error}; {_HINT}',
                public=f'the running guest cannot be changed: {_HINT}',
            ) from error
        except exceptions.DeviceError as error:
            raise exceptions.Conflict(
                f'{error}; {_HINT}', public=f'{error.public}; {_HINT}'
            ) from error


def _in_order(
    failed: Sequence[arq_types.Arq], added: Sequence[arq_types.Arq]
) -> list[arq_types.Arq]:
    """For each failed ARQ the new one of the same group."""
    left = list(added)
    found = []
    for arq in failed:
        found.append(
            next(
                each
                for each in left
                if each.device_profile_group_id == arq.device_profile_group_id
                and each.resource_class == arq.resource_class
            )
        )
        left.remove(found[-1])
    return found
