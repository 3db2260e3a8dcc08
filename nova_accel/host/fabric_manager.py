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

"""Fabric Manager of one host, which programs its NVSwitches."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Protocol

from nova_accel import exceptions
from nova_accel import privileged
from nova_accel.model import pci_address
from nova_accel.model.links import fabric
from nova_accel.model.links import fabric_listing
from nova_accel.privileged import fabric_manager
from nova_accel.privileged import vendor_tool

_Outcome = fabric_listing.Outcome


class Client(Protocol):
    """An interface to Fabric Manager: here a tool and a library.

    Each call gets the seconds that it may take. It returns the library's
    return value as an exit status, and what was said.
    """

    def partitions(self, timeout_s: float) -> tuple[int, str]: ...
    def unsupported(self, timeout_s: float) -> tuple[int, str]: ...
    def failed(self, timeout_s: float) -> tuple[int, str]: ...
    def activate(
        self, number: int, functions: Sequence[str], timeout_s: float
    ) -> tuple[int, str]: ...
    def deactivate(self, number: int, timeout_s: float) -> tuple[int, str]: ...
    def restore(
        self, numbers: Sequence[int], timeout_s: float
    ) -> tuple[int, str]: ...


class FabricManager:
    """The partitions of one host's NVSwitches.

    :param timeout_s: the seconds that one call may take
    """

    def __init__(
        self, timeout_s: float, client: Client = fabric_manager
    ) -> None:
        self._timeout_s = timeout_s
        self._client = client

    def partitions(self) -> tuple[fabric.Partition, ...] | None:
        """All partitions, None if Fabric Manager does not manage any.

        :raises FabricNotReady: it starts, or waits for :meth:`tell`.
        :raises DeviceError: it gave no usable answer.
        """
        found, output = self._asked('list partitions', self._client.partitions)
        if found is _Outcome.NOT_SUPPORTED:
            return None
        if found is not _Outcome.DONE:
            raise _refusal('list partitions', found, output)
        return fabric_listing.partitions(output)

    def usable_partitions(self) -> tuple[fabric.Partition, ...] | None:
        """As :meth:`partitions`, with what faults have taken away.

        A Fabric Manager that was restarted does not say which links are down.

        :raises FabricNotReady: as for :meth:`partitions`.
        :raises DeviceError: as for :meth:`partitions`.
        """
        if self.partitions() is None:
            return None
        found, output = self._asked(
            'list unsupported partitions', self._client.unsupported
        )
        numbers = (
            fabric_listing.unsupported(output)
            if found is _Outcome.DONE
            else {}
        )
        found, output = self._asked('list failed links', self._client.failed)
        unusable = fabric_listing.Unusable(
            numbers,
            fabric_listing.failed(output)
            if found is _Outcome.DONE
            else frozenset(),
        )
        found, output = self._asked('list partitions', self._client.partitions)
        if found is not _Outcome.DONE:
            raise _refusal('list partitions', found, output)
        return fabric_listing.partitions(output, unusable)

    def activate(
        self, number: int, functions: Iterable[pci_address.PciAddress] = ()
    ) -> bool:
        """Activate a partition.

        :param functions: see
            :class:`nova_accel.model.links.fabric.PartitionEntry`
        :returns: False if it, or one of its GPUs, is in use
        :raises FabricNotReady: as for :meth:`partitions`.
        :raises DeviceError: it refused, or gave no usable answer.
        """
        named = [str(function) for function in functions]
        return self._change(
            f'activate partition {number}',
            lambda timeout_s: self._client.activate(number, named, timeout_s),
            _Outcome.IN_USE,
        )

    def deactivate(self, number: int) -> bool:
        """Deactivate a partition.

        :returns: False if it is not active
        :raises FabricNotReady: as for :meth:`partitions`.
        :raises DeviceError: it refused, or gave no usable answer.
        """
        return self._change(
            f'deactivate partition {number}',
            lambda timeout_s: self._client.deactivate(number, timeout_s),
            _Outcome.NOT_IN_USE,
        )

    def restore(self, numbers: Sequence[int]) -> bool:
        """Say which partitions are active, after a restart.

        :returns: False if Fabric Manager does not wait for that
        :raises FabricNotReady: it starts.
        :raises DeviceError: it refused, or gave no usable answer.
        """
        return self._change(
            f'say that partitions {list(numbers)} are active',
            lambda timeout_s: self._client.restore(numbers, timeout_s),
            _Outcome.NOT_SUPPORTED,
        )

    def _change(
        self,
        what: str,
        call: Callable[[float], tuple[int, str]],
        unchanged: fabric_listing.Outcome,
    ) -> bool:
        found, output = self._asked(what, call)
        if found in (_Outcome.DONE, unchanged):
            return found is _Outcome.DONE
        raise _refusal(what, found, output)

    def _asked(
        self, what: str, call: Callable[[float], tuple[int, str]]
    ) -> tuple[fabric_listing.Outcome, str]:
        """:raises FabricError: there is no answer."""
        try:
            status, output = call(self._timeout_s)
        except privileged.ERRORS as error:
            raise exceptions.FabricError(
                f'cannot {what} of the NVSwitch fabric: {error!r}'
            ) from error
        if status == vendor_tool.BUSY:
            reason = 'another call of Fabric Manager has not ended'
        elif status in vendor_tool.TIMED_OUT:
            reason = f'no answer within {self._timeout_s:g} s'
        else:
            return fabric_listing.outcome(status), output
        raise exceptions.FabricError(
            f'cannot {what} of the NVSwitch fabric: {reason}'
        )


def _refusal(
    what: str, found: fabric_listing.Outcome, output: str
) -> exceptions.FabricError:
    reason = (
        f'cannot {what} of the NVSwitch fabric: {found.value} '
        f'({fabric_listing.message(output)})'
    )
    if found is _Outcome.NOT_READY:
        return exceptions.FabricNotReady(reason)
    return exceptions.FabricError(reason)
