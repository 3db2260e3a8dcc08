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

"""Plugging the devices of ARQs through their drivers."""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import contextlib
import dataclasses

from oslo_concurrency import lockutils

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.host import liveness
from nova_accel.host import sysfs_tree
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model.providers import host_view


class Devices:
    """The devices of one host, and their drivers.

    :param drivers: name -> device driver
    :param let_go: is told the uuid of each attach handle that no guest has
        any more, before it is unplugged
    :param sysfs: tells whether a device answers
    """

    def __init__(
        self,
        nodename: str,
        current: host_view.CurrentState,
        drivers: Mapping[str, base.Driver],
        let_go: Callable[[str], None],
        sysfs: sysfs_tree.Sysfs,
    ) -> None:
        self._nodename = nodename
        self._current = current
        self._drivers = drivers
        self._let_go = let_go
        self._sysfs = sysfs

    def plug(self, arq: arq_types.Arq) -> None:
        """Make the device of an ARQ ready to go into a guest.

        :raises DeviceError: the device is gone, does not answer, or refused.
        """
        driver = self.check(arq)
        with self.locked(arq.handle):
            driver.plug(self._as_its_line_says(arq.handle))
            # A step of the driver may have reset it.
            self._check_answers(arq.handle)

    def plug_all(self, arqs: Collection[arq_types.Arq]) -> None:
        """Plug the devices of ARQs; none is changed if one cannot be.

        :raises DeviceError: as for :meth:`plug`.
        """
        for arq in arqs:
            self.check(arq)
        for arq in arqs:
            self.plug(arq)

    def check(self, arq: arq_types.Arq) -> base.Driver:
        """Check that a guest can have the device of an ARQ; nothing changes.

        :returns: the driver of the device
        :raises DeviceError: it is gone, is another one, or does not answer.
        """
        driver = self._present_driver(arq)
        self._check_answers(arq.handle)
        return driver

    def check_migratable(self, arq: arq_types.Arq) -> None:
        """Make sure that the device of an ARQ allows a live migration.

        :raises DeviceError: the device does not allow it, or is gone.
        """
        driver = self._present_driver(arq)
        handle = self._as_its_line_says(arq.handle)
        if handle.live_migratable is False:
            raise exceptions.DeviceError(
                f'{arq.handle.address} cannot be migrated live: its line of '
                'device_spec has "live_migratable": false',
                public='an accelerator of the server cannot be migrated live',
            )
        driver.check_migratable(handle)

    def migration_facts(
        self, arqs: Iterable[arq_types.Arq], are_plugged: bool
    ) -> dict[str, Mapping[str, str]]:
        """The facts that both hosts of a live migration must share.

        :param are_plugged: whether their guest has them, else it is to get
            them as their lines say
        :returns: address of a PCI function -> its facts, if it has any
        :raises DeviceError: one cannot be learnt, or a device is gone.
        """
        of_drivers: dict[base.Driver, list[attach_handle.AttachHandle]] = {}
        for arq in arqs:
            if arq.handle.functions:
                of_drivers.setdefault(self._present_driver(arq), []).append(
                    arq.handle
                    if are_plugged
                    else self._as_its_line_says(arq.handle)
                )
        return {
            str(handle.address): facts
            for driver, handles in of_drivers.items()
            for handle, facts in zip(
                handles, driver.migration_facts(handles), strict=True
            )
            if facts
        }

    def unplug(self, handle: attach_handle.AttachHandle) -> None:
        """Unplug a device, unless it is gone.

        :raises DeviceError: it refused, or does not answer and is not
            published as faulty yet; until then it would count as free.
        """
        self._let_go(handle.uuid)
        driver = self._driver_of(handle.uuid)
        # All that was made of a device has gone with it.
        if driver is not None:
            driver.unplug(handle)
            if handle.uuid not in self._current.view.unusable(None):
                self._check_answers(handle)

    def unplug_all(self, arqs: Iterable[arq_types.Arq]) -> None:
        """Unplug the devices of ARQs that are not gone.

        :raises DeviceError: one refused; the ones after it are not unplugged.
        """
        for arq in arqs:
            self.unplug(arq.handle)

    def locked(
        self,
        handle: attach_handle.AttachHandle,
    ) -> contextlib.AbstractContextManager[object]:
        """Keep others from plugging a device while the body runs."""
        return lockutils.lock(f'nova_accel-{self._nodename}-{handle.uuid}')

    def _as_its_line_says(
        self, handle: attach_handle.AttachHandle
    ) -> attach_handle.AttachHandle:
        """The handle, with what only this host knows of it."""
        present = self._current.view.handles.get(handle.uuid, handle)
        return dataclasses.replace(
            handle,
            live_migratable=present.live_migratable,
            vgpu_params=present.vgpu_params,
        )

    def _present_driver(self, arq: arq_types.Arq) -> base.Driver:
        """:raises DeviceError: the device is gone, or is another one."""
        driver = self._driver_of(arq.handle.uuid)
        if driver is None:
            raise exceptions.DeviceError(
                f'device {arq.handle.address} of ARQ {arq.uuid} is '
                f'gone from {self._nodename}'
            )
        arq.handle.check_same(
            self._current.view.handles.get(arq.handle.uuid, arq.handle)
        )
        return driver

    def _check_answers(self, handle: attach_handle.AttachHandle) -> None:
        """:raises DeviceError: a function of it does not answer."""
        liveness.check(
            self._sysfs, (handle.address, *handle.further_functions)
        )

    def _driver_of(self, handle_uuid: str) -> base.Driver | None:
        name = self._current.view.drivers.get(handle_uuid)
        return None if name is None else self._drivers[name]
