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

"""The programming of an FPGA region: results and history."""

import dataclasses
import datetime
import enum


class Result(enum.IntEnum):
    """The results of ``program_fpga_with_bitstream``, as in its spec."""

    PROGRAMMED = 0
    FAILED = 1
    NO_SUCH_DEPLOYABLE = 2
    #: It does not exist, cannot be downloaded, or cannot be trusted.
    NO_SUCH_BITSTREAM = 3


class ShellLoading(enum.StrEnum):
    """Whether a shell may be loaded on the card of a deployable."""

    ALLOWED = 'allowed'
    #: The caller may not load shells.
    FORBIDDEN = 'forbidden'
    #: Somebody uses a part of the card.
    IN_USE = 'in_use'


@dataclasses.dataclass(frozen=True)
class Asker:
    """The origin of a programming; ``instance_uuid`` is set for a server's."""

    project_id: str | None = None
    user_id: str | None = None
    instance_uuid: str | None = None


@dataclasses.dataclass(frozen=True)
class Record:
    """One programming in the history. Times are aware, in UTC.

    ``finished_at`` is None while the programming is running. ``failure`` is
    None unless it failed.
    """

    uuid: str
    device_uuid: str
    region: str
    bitstream_id: str
    asker: Asker
    started_at: datetime.datetime
    finished_at: datetime.datetime | None = None
    failure: str | None = None


@dataclasses.dataclass(frozen=True)
class Holder:
    """The project of an instance, and whether it is off and stays so for now.

    That is said before anything begins to start its guest, and a start looks
    afterwards whether its regions are programmed: so one of both waits for the
    other.
    """

    project_id: str
    is_stopped: bool
