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

"""The type of the columns that have a time."""

import datetime

import sqlalchemy as sa


class UtcDateTime(sa.types.TypeDecorator[datetime.datetime]):
    """Aware times in UTC, cut to whole seconds (MySQL would round them)."""

    impl = sa.DateTime
    cache_ok = True

    def process_bind_param(
        self, value: datetime.datetime | None, dialect: sa.Dialect
    ) -> datetime.datetime | None:
        if value is None:
            return None
        return value.astimezone(datetime.UTC).replace(
            microsecond=0, tzinfo=None
        )

    def process_result_value(
        self, value: datetime.datetime | None, dialect: sa.Dialect
    ) -> datetime.datetime | None:
        return None if value is None else value.replace(tzinfo=datetime.UTC)
