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

"""The choice of units in place of those that have failed, on one host."""

import collections
from collections.abc import Collection
from collections.abc import Iterable

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model.profiles import device_profile
from nova_accel.model.providers import provider_layout

#: The keys by which a unit is bound to others, or to places in the guest.
_BOUND_TO_OTHERS = {
    f'accel:{device_profile.LINK}',
    f'accel:{device_profile.SINGLE_NUMA_NODE}',
}

_MIGRATE = 'migrate the server to another host'


def choose(
    failed: Iterable[arq_types.Arq],
    layout: provider_layout.Layout,
    unavailable: Collection[str],
) -> dict[str, str]:
    """The provider of another unit for each ARQ, its own one if that has any.

    :param failed: the ARQs whose units have failed
    :param layout: the providers of the host
    :param unavailable: the uuids of attach handles that no one can get now
    :returns: ARQ uuid -> provider uuid
    :raises Conflict: names the ARQ for which there is none, and the cure.
    """
    free = collections.Counter(
        place
        for handle, place in layout.places.items()
        if handle not in unavailable
    )
    chosen = {}
    # Those that fewest units fit come first.
    for arq in sorted(
        failed, key=lambda each: len(_fitting(each, layout, free))
    ):
        if bound := _BOUND_TO_OTHERS & arq.group.keys():
            raise _none(arq, f'its group has {min(bound)}')
        fitting = _fitting(arq, layout, free)
        if not fitting:
            raise _none(arq, 'no unit of its group is free on this host')
        place = min(
            fitting,
            key=lambda each: (
                each.rp_uuid != arq.device_rp_uuid,
                -free[each],
                each.rp_uuid,
            ),
        )
        free[place] -= 1
        chosen[arq.uuid] = place.rp_uuid
    return chosen


def _fitting(
    arq: arq_types.Arq,
    layout: provider_layout.Layout,
    free: collections.Counter[provider_layout.Place],
) -> list[provider_layout.Place]:
    """The places that have a free unit for the ARQ."""
    group = device_profile.parse_group(arq.group)
    return [
        place
        for provider in layout.providers
        if group.required <= provider.traits
        and not group.forbidden & provider.traits
        and free[
            place := provider_layout.Place(provider.uuid, arq.resource_class)
        ]
        > 0
    ]


def _none(arq: arq_types.Arq, why: str) -> exceptions.Conflict:
    return exceptions.Conflict(
        f'ARQ {arq.uuid} with {arq.handle.address} gets no other unit: {why}; '
        f'{_MIGRATE}',
        public=f'an accelerator gets no other unit: {why}; {_MIGRATE}',
    )
