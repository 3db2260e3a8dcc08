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

"""The fields that all resources have in common."""

from collections.abc import Mapping
import datetime
from typing import Any

import webob


def link(request: webob.Request, *path: str) -> list[dict[str, str]]:
    """``links`` of a resource, under the URL that the client called."""
    return [
        {'href': '/'.join((request.application_url, *path)), 'rel': 'self'}
    ]


def bookmark(request: webob.Request, *path: str) -> list[dict[str, str]]:
    """Cyborg's second link of some resources, without the version."""
    root = request.application_url.rpartition('/')[0]
    return [{'href': '/'.join((root, *path)), 'rel': 'bookmark'}]


def times(row: Mapping[str, Any]) -> dict[str, str | None]:
    """``created_at`` and ``updated_at``: ``2026-11-20T19:10:25+00:00``.

    :param row: of the database, whose times are in UTC and whole seconds
    """
    return {name: iso(row[name]) for name in ('created_at', 'updated_at')}


def iso(time: datetime.datetime | None) -> str | None:
    """A time of the database, as answers have it."""
    return None if time is None else time.isoformat()
