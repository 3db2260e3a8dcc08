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

"""The partitions of this host's NVSwitches, also while nobody lists them."""

import pathlib
from typing import Any

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.host import fabric_manager
from nova_accel.model import fabric
from nova_accel.state import value_file

LOG = logging.getLogger(__name__)


class KnownPartitions:
    """What Fabric Manager has listed last, kept in a file.

    So the host's providers in Placement stay as they are while Fabric Manager
    is being restarted.
    """

    def __init__(
        self, path: pathlib.Path, manager: fabric_manager.FabricManager
    ) -> None:
        self._manager = manager
        self._file: value_file.ValueFile[tuple[fabric.Partition, ...]] = (
            value_file.ValueFile(
                path,
                _parsed,
                _plain,
                (),
                'the partitions of NVSwitches are unknown until Fabric '
                'Manager lists them',
                'The partitions of NVSwitches are not stored',
            )
        )
        self._said = ''

    def now(self) -> tuple[fabric.Partition, ...]:
        """The partitions; none of them is called active.

        It does not raise.
        """
        try:
            found = self._manager.usable_partitions() or ()
        except exceptions.DeviceError as error:
            if str(error) != self._said:
                LOG.warning(
                    'The partitions of NVSwitches are taken to be as before: '
                    '%s',
                    error,
                )
            self._said = str(error)
            return self._file.value
        self._said = ''
        self._file.write(
            tuple(each._replace(is_active=False) for each in found)
        )
        return self._file.value


def _plain(partitions: tuple[fabric.Partition, ...]) -> list[Any]:
    return [
        [each.number, list(each.order), each.is_supported]
        for each in partitions
    ]


def _parsed(value: Any) -> tuple[fabric.Partition, ...]:
    return tuple(
        fabric.Partition(
            number, frozenset(order), False, is_supported, tuple(order)
        )
        for number, order, is_supported in value
    )
