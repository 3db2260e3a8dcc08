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

"""Parts of a well-formed device profile that are mistakes, or may be."""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence

from nova_accel import exceptions
from nova_accel.model import naming
from nova_accel.model.profiles import device_profile

#: The traits that all our providers have; hosts do not report them.
_OF_ALL = frozenset({naming.OWNER_TRAIT, naming.OWNERSHIP_TRAIT})


def check_classes(
    groups: Sequence[device_profile.Group],
    together: Collection[frozenset[str]],
) -> None:
    """Refuse a group whose classes hosts report, but no provider together.

    :param together: the resource classes of each provider
    :raises Conflict: the text names the group
    """
    known = frozenset[str]().union(*together)
    for number, group in enumerate(groups):
        classes = group.resources.keys()
        if classes <= known and not any(classes <= each for each in together):
            raise exceptions.Conflict(
                f'group {number} asks for {" and ".join(sorted(classes))}, '
                'and no device has them together: make one group for each'
            )


def doubts(
    groups: Sequence[device_profile.Group],
    reported: Mapping[str, Collection[str]],
) -> Iterator[str]:
    """Classes and traits that no one knows: no server gets such a device.

    :param reported: resource class -> all traits that its devices have
    """
    for number, group in enumerate(groups):
        for name in sorted(group.resources.keys() - reported.keys()):
            yield (
                f'no host reports a device of {name}, which group {number} '
                'asks for: is it misspelt?'
            )
        there = [
            reported[name] for name in group.resources if name in reported
        ]
        if there:
            for trait in sorted(group.required.difference(_OF_ALL, *there)):
                yield (
                    f'no host reports a device of '
                    f'{" and ".join(sorted(group.resources))} with {trait}, '
                    f'which group {number} requires: is it misspelt?'
                )
