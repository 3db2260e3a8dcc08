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

"""The question of nova-scheduler to Placement for a device profile."""

from collections.abc import Sequence
from typing import Any
from urllib import parse

from nova_accel.model import naming
from nova_accel.model.profiles import device_profile


def ask(
    placement: Any, groups: Sequence[device_profile.Group]
) -> list[tuple[str, ...]]:
    """The allocation candidates of the groups at the moment.

    :param placement: Nova's client of its Placement fixture
    :returns: for each candidate, the uuid of each group's provider
    """
    query = {'group_policy': 'none'}
    suffixes = [
        device_profile.requester_id(index) for index in range(len(groups))
    ]
    for suffix, group in zip(suffixes, groups, strict=True):
        query[f'resources{suffix}'] = ','.join(
            f'{resource_class}:{amount}'
            for resource_class, amount in group.resources.items()
        )
        query[f'required{suffix}'] = ','.join(
            [
                naming.OWNERSHIP_TRAIT,
                *sorted(group.required),
                *(f'!{trait}' for trait in sorted(group.forbidden)),
            ]
        )
    answer = placement.get(
        f'/allocation_candidates?{parse.urlencode(query)}', version='1.36'
    ).body
    return [
        tuple(request['mappings'][suffix][0] for suffix in suffixes)
        for request in answer['allocation_requests']
    ]
