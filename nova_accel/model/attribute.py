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


"""Attributes of a deployable: keys and values for people to read.

Some are reported by its host, the others are set by operators.
"""

from collections.abc import Mapping
from collections.abc import Sequence

#: The maximum length of a value that an operator sets, in characters.
MAX_VALUE_LENGTH = 4095


def of_placement(traits: Sequence[str], resource_class: str) -> dict[str, str]:
    """A deployable's traits and resource class, under Cyborg's keys."""
    return {
        **{f'traits{number}': trait for number, trait in enumerate(traits, 1)},
        'rc': resource_class,
    }


def reported(
    traits: Sequence[str], resource_class: str, facts: Mapping[str, str]
) -> dict[str, str]:
    """All attributes that the host of a deployable reports.

    :param facts: the attributes of its device; they never replace those of
        :func:`of_placement`
    """
    known = of_placement(traits, resource_class)
    return {
        **known,
        **{key: value for key, value in facts.items() if key not in known},
    }
