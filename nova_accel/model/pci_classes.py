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

"""Which PCI classes the devices of each type can have.

The class codes are those of the PCI Code and ID Assignment Specification
(https://pcisig.com/specifications). A class is written by its first digits.
"""

from collections.abc import Mapping
import dataclasses


@dataclasses.dataclass(frozen=True)
class Classes:
    """The classes of one type.

    ``usual`` are its own. ``vague`` are classes such as "other system
    peripheral" that some of its devices have, and many other functions of a
    host, too.
    """

    usual: tuple[str, ...]
    vague: tuple[str, ...] = ()


# Classes that tell nothing: before classes were defined, other memory
# controller, other system peripheral, other encryption controller, other
# signal processing controller, undefined.
_VAGUE = ('00', '0580', '0880', '1080', '1180', 'ff')

# Co-processors: 0b40, and 40 for those that are not defined further.
_PROCESSORS = ('0b40', '12', '40')

_GPU = Classes(('03', *_PROCESSORS), ('00', '0480', 'ff'))

#: Type -> its classes; a type that is not here has any.
CLASSES: Mapping[str, Classes] = {
    'AICHIP': Classes(('0302', '0380', *_PROCESSORS), _VAGUE),
    # A FPGA has the class that its designer chose.
    'FPGA': Classes(_PROCESSORS, (*_VAGUE, '02', '05', '07', '0b', '10')),
    'GPU': _GPU,
    # The Fabric controllers of clusters are 0207 and 0208; some SmartNICs
    # are processing accelerators, and the DMA of a BlueField is 0801.
    'NIC': Classes(('02', '0d'), ('00', '0801', '12', 'ff')),
    # DSA and IAA, which some call QAT, are 0880.
    'QAT': Classes(('0b40',), ('0880', '10', '12')),
    # The kernel's nvme driver takes no other class.
    'SSD': Classes(('01',)),
    'TIME': Classes((), (*_VAGUE, '02', '11', '12')),
    'VGPU': _GPU,
}


def fault(type_: str, class_code: str | None, is_named: bool) -> str | None:
    """Why a PCI function cannot be a device of the type, None if it can.

    :param class_code: six lower-case hexadecimal digits, None if unknown
    :param is_named: whether it is known by its product, not only by its vendor
        or address
    """
    classes = CLASSES.get(type_)
    if (
        classes is None
        or class_code is None
        or class_code.startswith(classes.usual)
    ):
        return None
    if not class_code.startswith(classes.vague):
        return f'its PCI class {class_code} is that of no {type_}'
    if is_named:
        return None
    return (
        f'its PCI class {class_code} does not show that its type is {type_}: '
        'the line must have its "product_id"'
    )
