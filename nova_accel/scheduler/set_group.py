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

"""Request groups for sets of joined devices.

The provider of a set has no inventory. Placement takes a group without
resources, if it is in a ``same_subtree`` with others (since microversion
1.36). Nova sends an empty list of resources for such a group, which Placement
refuses. So these groups write their own part of the query.
"""

from collections.abc import Iterable

from nova import objects

from nova_accel.model import naming
from nova_accel.scheduler import our_group


class SetGroup(our_group.OurGroup):
    """A request group that has traits and no resources."""

    def to_queryparams(self) -> list[tuple[str, str]]:
        """As Nova's, without the resources."""
        return [
            (name, value)
            for name, value in super().to_queryparams()
            if value or not name.startswith('resources')
        ]


def make(requester_id: str, trait: str) -> SetGroup:
    """The group of a set that has the trait."""
    return SetGroup(
        requester_id=requester_id,
        resources={},
        required_traits={trait, naming.OWNERSHIP_TRAIT},
    )


def join(
    request_spec: 'objects.RequestSpec', requester_ids: Iterable[str]
) -> None:
    """Have the providers of groups be in one subtree.

    The same again changes nothing.
    """
    ids = sorted(requester_ids)
    level = request_spec.request_level_params
    if ids not in level.same_subtree:
        level.same_subtree = [*level.same_subtree, ids]
