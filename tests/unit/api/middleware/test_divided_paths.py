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

from collections.abc import Callable
from collections.abc import Iterable
from typing import Any

import ddt
import testtools
import webob

from nova_accel.api.middleware import divided_paths


def _application(name: str) -> Callable[..., Iterable[bytes]]:
    """It says what it is, and where it thinks that it is."""

    def application(
        environ: dict[str, Any], start_response: Any
    ) -> Iterable[bytes]:
        answer: Iterable[bytes] = webob.Response(
            f'{name} {environ["SCRIPT_NAME"]} {environ["PATH_INFO"]}'
        )(environ, start_response)
        return answer

    return application


class _Loader:
    """As Paste's, of all applications."""

    def get_app(
        self, name: str, global_conf: object
    ) -> Callable[..., Iterable[bytes]]:
        return _application(name)


@ddt.ddt
class DividedPathsTest(testtools.TestCase):
    @ddt.data(
        ('', 'documents /accelerator '),
        ('/', 'documents /accelerator /'),
        ('/v2', 'documents /accelerator /v2'),
        ('/v2/', 'documents /accelerator /v2/'),
        ('/v2x/devices', 'documents /accelerator /v2x/devices'),
        ('/nothing', 'documents /accelerator /nothing'),
        ('/v2/devices', 'api /accelerator/v2 /devices'),
        ('/v2/v2/', 'api /accelerator/v2 /v2/'),
    )
    @ddt.unpack
    def test_paths(self, path: str, answer: str) -> None:
        application = divided_paths.factory(
            _Loader(), {}, documents='documents', api='api'
        )
        request = webob.Request.blank('/')
        request.environ.update(SCRIPT_NAME='/accelerator', PATH_INFO=path)
        self.assertEqual(answer, request.get_response(application).text)
