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

"""The traits that we gave to our resource providers, kept across restarts.

Placement does not say who set a trait. Traits of the operator are never
removed. Ours are removed when the device does not have them any more.
"""

from collections.abc import Mapping
import pathlib
from typing import Any

from nova_accel.model import decoding
from nova_accel.state import value_file

#: Resource provider uuid -> traits.
Given = Mapping[str, frozenset[str]]


class PublishedTraits:
    """The memory of one host, in a file.

    Without the file nothing is known, and no trait is taken away.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self._file: value_file.ValueFile[Given] = value_file.ValueFile(
            path,
            _from_json,
            _to_json,
            {},
            'traits that devices had before are not removed',
            'Traits that devices have now would not be removed after a '
            'restart',
        )

    def damaged(self) -> list[tuple[None, str]]:
        """The fault of the file, if it was damaged at the last start."""
        return [(None, why) for why in self._file.damaged]

    def read(self) -> Given:
        return self._file.value

    def write(self, given: Given) -> None:
        """Remember the traits. Does not raise.

        Nothing is written if nothing is new.
        """
        self._file.write(given)


def _from_json(value: Any) -> Given:
    given = decoding.mapped(decoding.uuid, decoding.traits, decoding.MANY)
    return {uuid: frozenset(traits) for uuid, traits in given(value).items()}


def _to_json(given: Given) -> Any:
    return {uuid: sorted(traits) for uuid, traits in given.items()}
