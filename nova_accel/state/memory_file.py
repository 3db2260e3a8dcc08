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

"""What a host had better not forget: one durable JSON file.

Unlike the journals nothing is wrong without it.
"""

from collections.abc import Callable
import json
import pathlib
from typing import Any
from typing import Generic
from typing import TypeVar

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.state import durable_file

LOG = logging.getLogger(__name__)

_Value = TypeVar('_Value')


class MemoryFile(Generic[_Value]):
    """A value, read from disk once, when nova-compute starts.

    :param parse: the reverse of ``to_json``; it raises ValueError, KeyError,
        TypeError or AttributeError for what is none
    :param to_json: makes plain JSON of a value
    :param nothing: the value without a file
    :param loss: what it means that a file cannot be understood
    :param unwritten: what it means that it cannot be written, as a sentence
    :ivar value: that is known, whether the disk has it or not
    """

    def __init__(self, path: pathlib.Path, parse: Callable[[Any], _Value],
                 to_json: Callable[[_Value], Any], nothing: _Value,
                 loss: str, unwritten: str) -> None:
        self._path = path
        self._to_json = to_json
        self._unwritten = unwritten
        self._is_written = True
        self.value = nothing
        try:
            self.value = parse(json.loads(path.read_text()))
        except FileNotFoundError:
            LOG.debug('There is no %s yet', path)
        except (OSError, ValueError, KeyError, TypeError,
                AttributeError) as error:
            LOG.warning('%s is damaged (%r): %s', path, error, loss)

    def write(self, value: _Value) -> None:
        """Remember; nothing is written if nothing is new.

        Does not raise. What the disk refuses is told once, and written the
        next time; until then it is forgotten if nova-compute ends.
        """
        if value == self.value and self._is_written:
            return
        self.value = value
        try:
            durable_file.write(self._path, json.dumps(self._to_json(value)))
        except exceptions.DiskError as error:
            if self._is_written:
                LOG.error('%s: %s', self._unwritten, error)
            self._is_written = False
        else:
            if not self._is_written:
                LOG.info('%s is written again', self._path)
            self._is_written = True
