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

"""The request groups that we add to a request."""

from collections.abc import Iterable
from typing import Any

from nova import objects
from nova.objects import base
from nova.objects import request_spec as nova_request_spec

from nova_accel.model import naming
from nova_accel.model.profiles import device_profile

#: The kinds of fields that are changed in place.
_CHANGEABLE = (dict, set)


class OurGroup(nova_request_spec.RequestGroup):
    """A request group that only our providers can serve.

    For Nova it is a RequestGroup. It lives in nova-scheduler only. Each
    request has a copy of its own, because Nova changes it.

    :ivar asked: the group of the profile that it is made of. Nova's request
        groups have no place for a bitstream. Nova's copies of the request do
        not have it.
    """

    asked: device_profile.Group | None = None

    def __init__(self, context: Any = None, **fields: Any) -> None:
        # Nova's own sets all other fields, too, which takes most of its time.
        base.NovaObject.__init__(self, context, **fields)

    def obj_load_attr(self, attrname: str) -> None:
        """Set a field that is read for the first time to its default."""
        self.obj_set_defaults(attrname)

    def copy(self) -> 'OurGroup':
        """The same for another request, which shares nothing that changes.

        It is many times quicker than to set the fields of a new one.
        """
        made = object.__new__(type(self))
        made.__dict__.update(
            {
                name: value.copy() if isinstance(value, _CHANGEABLE) else value
                for name, value in vars(self).items()
            }
        )
        return made

    @classmethod
    def obj_name(cls) -> str:
        return str(nova_request_spec.RequestGroup.obj_name())


def make(
    requester_id: str,
    group: device_profile.Group,
    traits: Iterable[str] = (),
    share: int = 0,
) -> OurGroup:
    """The request group that asks for a group of a profile.

    :param traits: further ones that the provider must have
    :param share: of its card that the group takes, 0 if it shares none
    """
    made = OurGroup(
        requester_id=requester_id,
        resources=dict(group.resources)
        | ({naming.CARD_SHARE: share} if share else {}),
        required_traits={*group.required, naming.OWNERSHIP_TRAIT, *traits},
    )
    if group.forbidden:
        made.forbidden_traits = set(group.forbidden)
    made.asked = group
    return made


def units_of(request_group: 'objects.RequestGroup') -> dict[str, int]:
    """Resource class -> how many units the group asks for."""
    return {
        resource_class: amount
        for resource_class, amount in request_group.resources.items()
        if resource_class != naming.CARD_SHARE
    }


def to_group(request_group: 'objects.RequestGroup') -> device_profile.Group:
    """The group of the profile; without properties if it is not known."""
    known = getattr(request_group, 'asked', None)
    return known or device_profile.Group(
        units_of(request_group),
        frozenset(request_group.required_traits) - {naming.OWNERSHIP_TRAIT},
        frozenset(request_group.forbidden_traits),
    )
