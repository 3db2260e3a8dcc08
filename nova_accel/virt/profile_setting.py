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

"""Giving a server another device profile, or none, while it stays here.

New devices go into a running guest before anything else changes. If that
fails, the server has what it had. Leaving devices are taken out last. A guest
that does not let go of one keeps it until the guest is stopped.
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import itertools

from nova import conf
from nova import context as nova_context
from nova import objects
from nova.virt.libvirt import guest as libvirt_guest
from nova.virt.libvirt import host as libvirt_host
from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import flavor_key
from nova_accel.model.units import local_choice
from nova_accel.virt import changing
from nova_accel.virt import hot_plug

CONF = conf.CONF
LOG = logging.getLogger(__name__)

_STOP = 'stop the server first'


class ProfileMixin(changing.ChangeMixin):
    """Gives a server what another device profile asks for."""

    def set_profile(
        self,
        context: nova_context.RequestContext,
        instance_uuid: str,
        name: str | None,
        groups: Sequence[Mapping[str, str]],
    ) -> None:
        """Give a server the accelerators of a device profile.

        It keeps those of each group that it has already. The same again
        changes nothing.

        :param context: of the caller, who may change the server
        :param name: the device profile's, None to take away what it has
        :param groups: those of the device profile
        :raises Conflict: the server is not here, is busy, or is in a state
            that forbids it; its flavor forbids it; there are not enough units;
            or its guest cannot get them while it runs.
        :raises AcceleratorError: another cause. In all cases the server has
            what it had before.
        """
        self._change(
            context,
            instance_uuid,
            'set_accelerators',
            lambda instance: self._set(instance, name, groups),
        )

    def _set(
        self,
        instance: objects.Instance,
        name: str | None,
        groups: Sequence[Mapping[str, str]],
    ) -> None:
        """See :meth:`set_profile` for the errors."""
        held = self._held.arqs_of(instance.uuid)
        self._check_flavor(instance, held)
        kept = local_choice.stays(held, groups)
        leaving = [arq for arq in held if arq.uuid not in kept]
        wanted = (
            []
            if name is None
            else self._choice().for_groups(
                name,
                {
                    number: group
                    for number, group in enumerate(groups)
                    if number not in kept.values()
                },
            )
        )
        if not (held or wanted):
            return
        guest = self._running_guest(instance)
        attachments = self._accelerators.attachments
        with attachments.changing(instance.uuid):
            added = self._add(instance, wanted, kept) if wanted else ()
            arqs = [*_renamed(held, kept, name), *added]
            arqs.sort(key=lambda arq: arq.device_profile_group_id)
            if guest is None:
                attachments.commit(instance.uuid, arqs, is_renamed=True)
            else:
                self._check_joined(instance, [*leaving, *added])
                try:
                    self._plug_in(instance, guest, added)
                    attachments.commit(instance.uuid, arqs, is_renamed=True)
                finally:
                    # The new devices, if they are not committed.
                    self._take_out(
                        instance, guest, self._held.left_by(instance.uuid)
                    )
        # The devices that have left are free.
        self._accelerators.current.is_doubtful = True
        LOG.info(
            'Has device profile %s now; added: %s; taken away: %s',
            name,
            arq_types.in_words(added),
            arq_types.in_words(leaving),
            instance=instance,
        )

    def _check_flavor(
        self, instance: objects.Instance, held: Sequence[arq_types.Arq]
    ) -> None:
        """:raises Conflict: the server's flavor forbids a change."""
        specs = instance.flavor.extra_specs
        flavor_key.check_not_cyborgs(specs)
        if device_profile.FLAVOR_KEY in specs and not held:
            raise exceptions.Conflict.for_all(
                'its flavor has a device profile, and the server has none of '
                'its accelerators: reboot it hard first'
            )

    def _check_joined(
        self, instance: objects.Instance, changed: Sequence[arq_types.Arq]
    ) -> None:
        """:raises Conflict: a set of GPUs changes, and the guest runs."""
        fabric = self._accelerators.fabric
        if fabric.has(instance.uuid) or fabric.is_for(changed):
            raise exceptions.Conflict.for_all(
                f'{_STOP}: NVSwitches join its GPUs'
            )

    def _plug_in(
        self,
        instance: objects.Instance,
        guest: libvirt_guest.Guest,
        added: Sequence[arq_types.Arq],
    ) -> None:
        """Have a running guest get devices.

        :raises AcceleratorError: it may have got some of them.
        """
        if not added:
            return
        self._made_ready_beside(instance, added)
        try:
            with self._unbinding(added):
                hot_plug.put_in(guest, added, itertools.repeat(None))
        except libvirt_host.libvirt.libvirtError as error:
            words = f'the running guest has no free PCIe port: {_STOP}'
            raise exceptions.Conflict(
                f'libvirt refuses: {error}; {words}', public=words
            ) from error

    def _take_out(
        self,
        instance: objects.Instance,
        guest: libvirt_guest.Guest,
        leaving: Sequence[arq_types.Arq],
    ) -> None:
        """Take devices out of a running guest, if it lets go of them."""
        if not leaving:
            return
        try:
            with self._unbinding(leaving):
                hot_plug.take_out(
                    guest, leaving, CONF.libvirt.device_detach_timeout
                )
        except (
            libvirt_host.libvirt.libvirtError,
            exceptions.DeviceError,
        ) as error:
            LOG.warning(
                'Its guest keeps %s until it is stopped: %s',
                arq_types.in_words(leaving),
                error,
                instance=instance,
            )


def _renamed(
    held: Iterable[arq_types.Arq], kept: Mapping[str, int], name: str | None
) -> Iterator[arq_types.Arq]:
    """The ARQs that stay, as those of their new device profile."""
    for arq in held:
        if arq.uuid in kept:
            yield dataclasses.replace(
                arq,
                device_profile_name=str(name),
                device_profile_group_id=kept[arq.uuid],
            )
