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

"""Which traits we gave to our resource providers, kept across restarts.

Placement does not say who set a trait. Those of an operator stay for ever;
ours have to go when the device does not have them any more.
"""

from collections.abc import Mapping
import json
import pathlib

from oslo_log import log as logging

from nova_accel import durable_file

LOG = logging.getLogger(__name__)

#: Resource provider uuid -> traits.
Given = Mapping[str, frozenset[str]]


class GivenTraits:
    """The memory of one host, in a file.

    Without the file nothing is known, and no trait is taken away.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._given: Given = {}
        try:
            self._given = {uuid: frozenset(traits) for uuid, traits
                           in json.loads(path.read_text()).items()}
        except FileNotFoundError:
            LOG.debug('No traits of an earlier nova-compute are known')
        except (ValueError, TypeError, AttributeError) as error:
            LOG.warning('%s is damaged (%s): traits that devices had before '
                        'are not removed', path, error)

    def read(self) -> Given:
        return self._given

    def write(self, given: Given) -> None:
        """Remember; nothing is written if nothing is new."""
        if given == self._given:
            return
        durable_file.write(self._path, json.dumps(
            {uuid: sorted(traits) for uuid, traits in given.items()}))
        self._given = given
