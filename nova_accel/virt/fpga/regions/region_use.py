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

"""The users of this host's FPGA regions, and who may program them."""

from collections.abc import Callable

from nova_accel import exceptions
from nova_accel.host import all_guests
from nova_accel.model import attach_handle
from nova_accel.model import hardware
from nova_accel.model import programming_record
from nova_accel.virt.fpga.regions import host_regions
from nova_accel.virt.fpga.regions import region_target
from nova_accel.virt.holding import holdings

#: For tenants, who learn nothing of the card and its other users.
_NO_REGION = 'its accelerator is in no region that can be programmed'
_IN_USE = (
    'it is not programmed: not only this server uses its region. Ask an '
    'administrator'
)


class RegionUse:
    """The users of the regions of one host.

    :param server: returns what Nova knows of an instance, by its uuid, see
        :func:`nova_accel.client.servers.holder`
    """

    def __init__(
        self,
        node_uuid: str,
        regions: host_regions.Regions,
        held: holdings.Held,
        guests: all_guests.Guests,
        server: Callable[[str], programming_record.Holder],
    ) -> None:
        self._node_uuid = node_uuid
        self._regions = regions
        self._held = held
        self._guests = guests
        self._server = server

    def target_of(
        self, deployable_uuid: str, is_shell: bool
    ) -> region_target.Target:
        """The region that a deployable is in, or the shell of its card.

        :raises NotFound: it is in no region that can be programmed.
        """
        for target in (
            self._regions.shells() if is_shell else self._regions.targets()
        ):
            for deployable in target.deployables:
                if deployable_uuid == hardware.deployable_uuid(
                    self._node_uuid, target.device.name, deployable.name
                ):
                    return target
        raise exceptions.NotFound(
            f'this host has no deployable {deployable_uuid} that can be '
            'programmed',
            public=_NO_REGION,
        )

    def target_with(
        self,
        handle: attach_handle.AttachHandle,
    ) -> region_target.Target:
        """The region that an attach handle is in.

        :raises NotFound: it is in no region that can be programmed.
        """
        for target in self._regions.targets():
            for deployable in target.deployables:
                if any(
                    found.uuid == handle.uuid for found in deployable.handles
                ):
                    return target
        raise exceptions.NotFound(
            f'{handle.address} is in no region that can be programmed',
            public=_NO_REGION,
        )

    def check_free(
        self,
        target: region_target.Target,
        asker: programming_record.Asker,
        is_stopped: bool,
    ) -> None:
        """Make sure that a region may be programmed.

        :param is_stopped: whether it is known that the guest of the asker
            does not run, because the host is about to start it
        :raises Conflict: a guest has a part of the region. The guest is not
            the asker's, or may run.
        :raises DeviceError: libvirt does not list its guests.
        :raises ServiceUnavailable: Nova does not say whether the guest runs.
        """
        holders = self._holders()
        for deployable in target.deployables:
            for handle in deployable.handles:
                for name in (handle.uuid, *map(str, handle.functions)):
                    holder = holders.get(name)
                    if holder is None:
                        continue
                    if holder != asker.instance_uuid or target.region.is_shell:
                        raise exceptions.Conflict(
                            f'{target} is not programmed: a server has '
                            f'{deployable.name} of it',
                            public=_IN_USE,
                        )
                    if not is_stopped:
                        self._check_own(target, asker, holder)

    def _check_own(
        self,
        target: region_target.Target,
        asker: programming_record.Asker,
        instance_uuid: str,
    ) -> None:
        """:raises Conflict: the server is another project's, or may run."""
        # Somebody may have started the guest without Nova.
        runs = instance_uuid in self._guests.running()
        server = self._server(instance_uuid)
        if server.project_id != asker.project_id:
            raise exceptions.Conflict(
                f'{target} is not programmed: a server of another project '
                'has it',
                public=_IN_USE,
            )
        if (runs or not server.is_stopped) and not (
            target.driver.programs_under_guest
        ):
            raise exceptions.Conflict(
                f'{target} is not programmed: driver {target.device.driver} '
                'cannot do it under a guest, stop the server first',
                public=(
                    'it is not programmed: that cannot be done under a '
                    'guest, stop the server first'
                ),
            )

    def _holders(self) -> dict[str, str]:
        """Attach handle uuid, or PCI address -> the instance that has it.

        It includes guests whose journal is lost.

        :raises DeviceError: libvirt does not list its guests.
        """
        return {
            device: uuid
            for uuid, found in self._guests.devices().items()
            for device in found
        } | self._held.holders()
