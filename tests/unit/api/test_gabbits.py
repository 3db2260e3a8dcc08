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

"""The main flows of the API, in files of YAML that an operator can read.

gabbi makes a test of each request in ``gabbits``. A file is one flow: before a
request is tested, the requests above it are made.

The API is mounted as in ``api-paste.ini``, but without ``authtoken``. A
request has the headers that ``authtoken`` would set, as with
``tools/serve-api``.
"""

from collections.abc import Iterable
import contextlib
import functools
import pathlib
import sys
from typing import Any
import unittest

import fixtures
from gabbi import driver
from gabbi import fixture
from nova.api.openstack import urlmap
import testtools
import webob
import webob.dec
import yaml

from nova_accel.api import app
from nova_accel.api.middleware import context
from nova_accel.testing import accelerator_api
from unit.api import base
from unit.api import described

_DIRECTORY = pathlib.Path(__file__).parent / 'gabbits'


class Cloud(fixture.GabbiFixture):
    """A new database, and one host that has reported an FPGA."""

    def start_fixture(self) -> None:
        with contextlib.ExitStack() as parts:
            parts.enter_context(fixtures.FakeLogger())
            api = parts.enter_context(accelerator_api.AcceleratorApi())
            answer = api.adapter.put(
                f'/hosts/{base.HOSTNAME}', json=base.report()
            )
            assert answer.status_code == 200, answer.text
            self._parts = parts.pop_all()

    def stop_fixture(self) -> None:
        self._parts.close()


@webob.dec.wsgify.middleware
def _described(request: webob.Request, api: Any) -> webob.Response:
    """The answer, which must be as the OpenAPI document says."""
    answer = request.get_response(api)
    described.check(request.method, request.environ['PATH_INFO'], answer)
    return answer


@functools.cache
def _application() -> urlmap.URLMap:
    applications = urlmap.URLMap()
    applications['/accelerator'] = app.versions_factory({})
    applications['/accelerator/v2/+'] = context.Context(
        _described(app.factory({}))
    )
    return applications


def _serve(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    # The API starts only with a database, and tests are made before that.
    answer: Iterable[bytes] = _application()(environ, start_response)
    return answer


def load_tests(
    loader: unittest.TestLoader, tests: unittest.TestSuite, pattern: str | None
) -> unittest.TestSuite:
    """What unittest asks a module for: here also a test of each request."""
    tests.addTest(
        driver.build_tests(
            str(_DIRECTORY),
            loader,
            intercept=lambda: _serve,
            fixture_module=sys.modules[__name__],
            test_loader_name=__name__,
        )
    )
    return tests


class FilesTest(testtools.TestCase):
    def test_a_name_is_of_one_request_and_has_no_dot(self) -> None:
        """A name is a part of the test's id, in lower case."""
        for path in _DIRECTORY.glob('*.yaml'):
            flow = yaml.safe_load(path.read_text())
            names = [request['name'].lower() for request in flow['tests']]
            self.assertEqual(sorted(set(names)), sorted(names), path)
            self.assertNotIn('.', ''.join(names), path)
