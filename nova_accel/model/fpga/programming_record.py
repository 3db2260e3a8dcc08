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

from collections.abc import Mapping
import dataclasses
import datetime
import enum
from typing import Any

from nova_accel import exceptions
from nova_accel import reason
from nova_accel.model import decoding


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

    def check(self, shell: object) -> None:
        """Make sure that a shell may be loaded.

        :param shell: its name
        :raises NotAllowed, Conflict: it may not be loaded.
        """
        if self is ShellLoading.FORBIDDEN:
            raise exceptions.NotAllowed(
                f'{shell} is a shell, which this caller may not load'
            )
        if self is ShellLoading.IN_USE:
            raise exceptions.Conflict(
                f'{shell} is a shell, and somebody has something of the card'
            )


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

    def ended(self, at: datetime.datetime, failure: str | None) -> 'Record':
        """The record of the programming after it has ended."""
        return dataclasses.replace(self, finished_at=at, failure=failure)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, for the journal."""
        return {
            **dataclasses.asdict(self),
            'started_at': _to_text(self.started_at),
            'finished_at': (
                None
                if self.finished_at is None
                else _to_text(self.finished_at)
            ),
        }

    def to_report(self) -> dict[str, Any]:
        """The record as its host reports it; the URL has the uuid."""
        value = self.to_dict()
        asker = value.pop('asker')
        del value['uuid']
        return {
            **value,
            **asker,
            'failure': (
                None if self.failure is None else reason.sanitize(self.failure)
            ),
        }


def from_dict(value: Any) -> Record:
    """The reverse of :meth:`Record.to_dict`.

    :raises Malformed: the value is no record.
    """
    field = decoding.Fields(value)
    return Record(
        field('uuid', decoding.uuid),
        field('device_uuid', decoding.uuid),
        field('region', decoding.name),
        field('bitstream_id', decoding.uuid),
        field('asker', _asker),
        field('started_at', _to_time),
        field('finished_at', decoding.optional(_to_time)),
        field('failure', decoding.optional(decoding.words)),
    )


def _asker(value: Any) -> Asker:
    field = decoding.Fields(value)
    return Asker(
        field('project_id', decoding.optional(decoding.text)),
        field('user_id', decoding.optional(decoding.text)),
        field('instance_uuid', decoding.optional(decoding.uuid)),
    )


def from_report(uuid: str, value: Mapping[str, Any]) -> Record:
    """The record with this uuid, from :meth:`Record.to_report`.

    :raises InvalidRequest: a time is malformed.
    """
    asker = {
        field.name: value[field.name] for field in dataclasses.fields(Asker)
    }
    others = {name: each for name, each in value.items() if name not in asker}
    try:
        return from_dict({**others, 'uuid': uuid, 'asker': asker})
    except ValueError as error:
        raise exceptions.InvalidRequest(str(error)) from error


def _to_text(time: datetime.datetime) -> str:
    return time.astimezone(datetime.UTC).isoformat()


def _to_time(value: Any) -> datetime.datetime:
    """:raises ValueError: the value is no time with its zone."""
    text = decoding.text(value)
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f'{text}: {error}') from error
    if time.tzinfo is None:
        raise ValueError(f'{text} has no time zone')
    return time


@dataclasses.dataclass(frozen=True)
class Holder:
    """The project of an instance, and whether it is off and stays so for now.

    That is said before anything begins to start its guest, and a start looks
    afterwards whether its regions are programmed: so one of both waits for the
    other.
    """

    project_id: str
    is_stopped: bool
