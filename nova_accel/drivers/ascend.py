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
    """A whole PCI function; a card may have several.

    Two chips may be behind one function: ``npu-smi`` shows both of an Atlas
    300I Duo (310P) at one bus id (ollama#5315). A guest gets both or none.

    The two dies of an Ascend 910C are functions on two buses, such as 9d and
    9f (vllm-ascend#2035). Huawei's driver joins them, unless its
    ``multi-die-policy`` is 1 (HAMi#2005). No file of sysfs is known to tell
    which two are a pair, so only an operator's ``links`` can.

    Huawei's virtual instances (``vnpu``) are mediated devices. The driver
    ``mdev`` serves them, with ``"type": "AICHIP"``.
    """

    kind = 'AICHIP'
    vendors = {'19e5': 'Huawei'}
