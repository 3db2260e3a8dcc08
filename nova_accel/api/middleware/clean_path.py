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

"""Refuses URLs that are not what they seem, before anything reads them.

Nova's ``request_log`` writes the decoded path, where ``%0A`` is a new line. A
server such as uWSGI has a buffer for the URL, the path and the query, and
leaves out what does not fit: a list would not be filtered then.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

import webob

from nova_accel.api.http import errors
from nova_accel.api.http import microversion

#: Characters of a URL without the server's name. The uuids of 256 requests
#: take 9500. The file of uWSGI has a buffer for four times as much.
MAX_URL = 16 * 1024


class CleanPath:
    """A filter that stands before all filters that log."""

    def __init__(self, application: microversion.WSGIApplication) -> None:
        self._application = application

    def __call__(
        self, environ: dict[str, Any], start_response: Any
    ) -> Iterable[bytes]:
        refusal = _refusal(environ)
        if refusal is None:
            return self._application(environ, start_response)
        answer: Iterable[bytes] = refusal(environ, start_response)
        return answer


def _refusal(environ: Mapping[str, Any]) -> webob.Response | None:
    """The answer to a URL that no one may read, None if it is good."""
    path = environ.get('PATH_INFO', '')
    query = environ.get('QUERY_STRING', '')
    # As it was sent. Not every server tells it.
    url = environ.get('REQUEST_URI')
    if len(path) + len(query) > MAX_URL or (
        url is not None and (len(url) > MAX_URL or _is_cut(environ, url))
    ):
        return errors.refused(
            414,
            'Request-URI Too Long',
            f'The URL is longer than {MAX_URL} characters, or than the server '
            'can read',
        )
    # "GET *" asks the server for what it can do, which no one needs.
    if path and not path.startswith('/'):
        return errors.refused(
            400, 'Bad Request', 'The path does not begin with "/"'
        )
    # WSGI gives the bytes of the path as characters of Latin 1.
    if not path.encode('latin-1').decode('utf-8', 'replace').isprintable():
        return errors.refused(
            400, 'Bad Request', 'The path has a control character'
        )
    return None


def _is_cut(environ: Mapping[str, Any], url: str) -> bool:
    """Whether the server has left out the path or the query."""
    return (
        'PATH_INFO' not in environ
        or 'QUERY_STRING' not in environ
        or bool(url.partition('?')[2] and not environ['QUERY_STRING'])
    )


def factory(
    global_conf: Mapping[str, str],
    **local_conf: str,
) -> Callable[[microversion.WSGIApplication], CleanPath]:
    """The ``paste.filter_factory`` of the filter."""
    return CleanPath
