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

"""Ascend, the AI processors of Huawei."""

from nova_accel.drivers import pci_kind


class AscendDriver(pci_kind.PciKindDriver):
    """A whole processor; a card may have several, each is a PCI function.

    Huawei's virtual instances (``vnpu``) are mediated devices. The driver
    ``mdev`` serves them, with ``"type": "AICHIP"``.
    """

    kind = 'AICHIP'
    vendors = {'19e5': 'Huawei'}
