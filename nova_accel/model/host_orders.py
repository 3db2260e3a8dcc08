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

"""The control plane's orders to a host, in the answer to its report."""

from collections.abc import Mapping
import dataclasses
from typing import Any

from nova_accel.model import decoding


@dataclasses.dataclass(frozen=True)
class Orders:
    """All orders for a host; they replace any earlier ones.

    ``revision`` grows with each change. ``disabled`` are the uuids of the
    devices that an administrator has closed to new guests. ``uncleaned`` are
    the uuids of attach handles that a guest has had, or may have had, and that
    must be cleaned before another guest gets them. Some of these may be
    missing on the host at the moment. ``stock`` maps some of them to the
    bitstream that is best programmed to clean them, if the host allows it.
    ``has_unadopted`` says that clients have bound ARQs to the host that it has
    not made its own yet. Such a binding is a change, its end is none.
    """

    revision: int
    disabled: frozenset[str] = frozenset()
    uncleaned: frozenset[str] = frozenset()
    stock: Mapping[str, str] = dataclasses.field(default_factory=dict)
    has_unadopted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, between the planes."""
        return {
            'revision': self.revision,
            'disabled': sorted(self.disabled),
            'uncleaned': sorted(self.uncleaned),
            **({'stock': dict(self.stock)} if self.stock else {}),
            **({'has_unadopted': True} if self.has_unadopted else {}),
        }


def from_dict(value: Any) -> Orders:
    """The reverse of :meth:`Orders.to_dict`.

    :raises Malformed: the value is no orders.
    """
    field = decoding.Fields(value)
    uuids = decoding.listed(decoding.uuid, decoding.MANY)
    return Orders(
        field('revision', decoding.integer(0, 2**63 - 1)),
        frozenset(field('disabled', uuids)),
        frozenset(field('uncleaned', uuids)),
        # They are left out where there is nothing to say.
        field(
            'stock',
            decoding.mapped(decoding.uuid, decoding.uuid, decoding.MANY),
            {},
        ),
        field('has_unadopted', decoding.boolean, False),
    )
