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

"""Times as clients of the API write them, in ISO 8601."""

import datetime

from nova_accel import exceptions
from nova_accel import reason

#: The form of a time of ISO 8601 with a time zone.
TIME = (
    '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?'
    r'([.][0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})\Z'
)

#: The years that any database stores, in UTC, with room for any time zone.
_YEARS = range(2000, 9999)


def parse(
    name: str, text: str, zone: datetime.tzinfo | None = None
) -> datetime.datetime:
    """The time of an ISO 8601 text with a time zone, in UTC.

    :param name: of the field, for the fault
    :param zone: of a time that does not say, None to refuse it
    :raises InvalidRequest: it is none, has no time zone, or is out of reach.
    """
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise exceptions.InvalidRequest(
            f'{name}: {reason.printable(text[:255])} is not a time in '
            'ISO 8601, such as 2026-11-24T06:00:00+00:00'
        ) from error
    if time.tzinfo is None:
        time = time.replace(tzinfo=zone)
    if time.tzinfo is None:
        raise exceptions.InvalidRequest(
            f'{name}: the time has no time zone, such as Z or +01:00'
        )
    if time.year not in _YEARS:
        raise exceptions.InvalidRequest(
            f'{name}: the year {time.year} is not from {_YEARS.start} to '
            f'{_YEARS.stop - 1}'
        )
    return time.astimezone(datetime.UTC)
