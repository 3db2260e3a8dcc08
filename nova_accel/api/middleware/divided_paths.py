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

"""Divides the paths of a mount point: documents of versions, and the API.

The documents are public. The API below them asks for a token.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from typing import Any

from nova_accel.api.http import microversion

#: The path of the API below its mount point.
_API = '/v2'


class DividedPaths:
    """Sends requests for what is below ``/v2/`` to the API.

    :param documents: of the versions; it gets all other requests
    :param api: for it ``/v2`` is a part of the mount point
    """

    def __init__(
        self,
        documents: microversion.WSGIApplication,
        api: microversion.WSGIApplication,
    ) -> None:
        self._documents = documents
        self._api = api

    def __call__(
        self, environ: dict[str, Any], start_response: Any
    ) -> Iterable[bytes]:
        path = environ.get('PATH_INFO', '')
        below = path.removeprefix(_API)
        if below in (path, '', '/') or not below.startswith('/'):
            return self._documents(environ, start_response)
        environ['SCRIPT_NAME'] = environ.get('SCRIPT_NAME', '') + _API
        environ['PATH_INFO'] = below
        return self._api(environ, start_response)


def factory(
    loader: Any, global_conf: Mapping[str, str], documents: str, api: str
) -> DividedPaths:
    """``paste.composite_factory`` of it."""
    return DividedPaths(
        *(
            loader.get_app(name, global_conf=global_conf)
            for name in (documents, api)
        )
    )
