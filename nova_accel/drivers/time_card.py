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

"""Time cards: precise clocks for High Precision Time Synchronization."""

from collections.abc import Mapping

from nova_accel.drivers import pci_kind
from nova_accel.host import pci_function

# Documentation/ABI/testing/sysfs-timecard of the kernel.
_FILES = ('serialnum', 'clock_source', 'gnss_sync')


class TimeCardDriver(pci_kind.PciKindDriver):
    """A whole card, such as the Open Compute Project's Time Card.

    The host's own clock must not depend on it, because the card goes into the
    guest. The attributes of the kernel's ``ptp_ocp`` exist while no guest has
    the card.
    """

    kind = 'TIME'

    def attributes(
        self, function: pci_function.PciFunction
    ) -> Mapping[str, str]:
        clocks = self._sysfs.optional.names(function.address, 'timecard')
        return (
            {}
            if not clocks
            else self.read_all(
                function,
                {name: f'timecard/{clocks[0]}/{name}' for name in _FILES},
            )
        )
