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
"""Links what a distribution requires into an environment that has it alone.

``linked_requirements.py REQUIREMENT PREFIX``; the requirement may name extras.
"""

from collections.abc import Iterator
from importlib import metadata
import os
import pathlib
import sys

from packaging import requirements
from packaging import utils

#: An installed distribution may require others for some of its extras.
Extras = frozenset[str]


def required(
    distribution: metadata.Distribution, extras: Extras = frozenset()
) -> Iterator[requirements.Requirement]:
    """What it requires here, on this Python."""
    for text in distribution.requires or ():
        requirement = requirements.Requirement(text)
        if requirement.marker is None or any(
            requirement.marker.evaluate({'extra': extra})
            for extra in extras | {''}
        ):
            yield requirement


def closure(
    distribution: metadata.Distribution, extras: Extras = frozenset()
) -> dict[str, metadata.Distribution]:
    """All that it requires for these extras, by canonical names.

    :raises PackageNotFoundError: this environment lacks one
    """
    found: dict[str, metadata.Distribution] = {}
    seen: set[tuple[str, Extras]] = set()
    todo = list(required(distribution, extras))
    while todo:
        requirement = todo.pop()
        name = utils.canonicalize_name(requirement.name)
        extras = frozenset(requirement.extras)
        if (name, extras) not in seen:
            seen.add((name, extras))
            found[name] = metadata.distribution(name)
            todo.extend(required(found[name], extras))
    return found


def link(distribution: metadata.Distribution, site: pathlib.Path) -> None:
    """Link its files, without its programs and what Python has compiled."""
    for file in distribution.files or ():
        if file.parts[0] != '..' and file.suffix != '.pyc':
            target = site / file
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(distribution.locate_file(file), target)


def main(text: str, prefix: str) -> None:
    wanted = requirements.Requirement(text)
    [site] = pathlib.Path(prefix).glob('lib/python*/site-packages')
    [distribution] = metadata.distributions(name=wanted.name, path=[str(site)])
    for each in closure(distribution, frozenset(wanted.extras)).values():
        link(each, site)


if __name__ == '__main__':
    main(*sys.argv[1:])
