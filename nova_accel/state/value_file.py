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

"""A value that a host should not lose, in one durable JSON file.

Unlike with the journals, everything still works if it is lost.
"""

from collections.abc import Callable
import contextlib
import json
import pathlib
from typing import Any
from typing import Generic
from typing import TypeVar

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.state import durable_file

LOG = logging.getLogger(__name__)

#: The longest file, in bytes. A host may have ten thousands of devices.
MAX_BYTES = 64 * 1024 * 1024

_Value = TypeVar('_Value')


class ValueFile(Generic[_Value]):
    """A value, read from disk once, when nova-compute starts.

    A damaged file is put aside, see :func:`.durable_file.put_aside`.

    :param parse: the reverse of ``to_json``; it raises ValueError or
        AcceleratorError for malformed input
    :param to_json: makes plain JSON of a value
    :param nothing: the value without a file
    :param loss: the consequence of an unreadable file
    :param unwritten: the consequence of a failed write, as a sentence
    :ivar value: the present value, whether the disk has it or not
    :ivar damaged: what was wrong with the file, if anything was
    """

    def __init__(
        self,
        path: pathlib.Path,
        parse: Callable[[Any], _Value],
        to_json: Callable[[_Value], Any],
        nothing: _Value,
        loss: str,
        unwritten: str,
    ) -> None:
        self._path = path
        self._to_json = to_json
        self._unwritten = unwritten
        self._is_written = True
        self.value = nothing
        self.damaged: tuple[str, ...] = ()
        try:
            self.value = parse(durable_file.read_json(path, MAX_BYTES))
        except FileNotFoundError:
            LOG.debug('There is no %s yet', path)
        # One file must not keep nova-compute from starting.
        except Exception as error:
            self.damaged = (f'the file {path} is damaged ({error}): {loss}',)
            LOG.error(*self.damaged)
            with contextlib.suppress(exceptions.DiskError):
                durable_file.put_aside(path)

    def write(self, value: _Value) -> None:
        """Set the value, and write it to disk if it has changed.

        It does not raise. If the disk refuses, that is logged once and the
        next call tries again. Until then the value is lost if nova-compute
        ends.
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
