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
from collections.abc import Mapping
import socket
from typing import Any

from db import next_release
import fixtures
import webob

from nova_accel import conf
from nova_accel import exceptions
from nova_accel import guru_report
from nova_accel.api import app
from nova_accel.db.migrations import schema_version
from nova_accel.db.sql import engine
from unit.api import base


class FactoryTest(base.ApiTestCase):
    def test_does_not_start_without_a_database(self) -> None:
        conf.CONF.set_override('connection', None, 'nova_accel_database')
        error = self.assertRaises(
            exceptions.ConfigurationError, app.factory, {}
        )
        self.assertIn('[nova_accel_database] connection', str(error))

    def set_version(self, version: str | None) -> None:
        with engine.writer() as connection:
            connection.execute(schema_version.TABLE.delete())
            if version is not None:
                connection.execute(
                    schema_version.TABLE.insert().values(version_num=version)
                )

    def test_does_not_start_on_an_older_schema(self) -> None:
        older = schema_version.NEWEST
        self.useFixture(next_release.NextRelease())
        for version, told in (
            (older, f'is at version {older}'),
            (None, 'has no schema'),
        ):
            self.set_version(version)
            error = self.assertRaises(
                exceptions.ConfigurationError, app.factory, {}
            )
            self.assertIn(told, str(error))
            self.assertIn(schema_version.NEWEST, str(error))
            self.assertIn('nova-accel-manage db sync', str(error))

    def test_the_report_of_the_process_has_a_section(self) -> None:
        facts: dict[str, Callable[[], Mapping[str, Any]]] = {}
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.guru_report._FACTS', facts)
        )
        app.factory({})
        self.assertEqual(
            schema_version.NEWEST,
            facts[guru_report.TITLE]()['schema of the database'],
        )

    def test_starts_on_a_newer_schema(self) -> None:
        self.set_version(next_release.VERSION)
        app.factory({})

    def test_starts_without_an_answer_of_the_database(self) -> None:
        with socket.create_server(('127.0.0.1', 0)) as closed:
            port = closed.getsockname()[1]
        conf.CONF.set_override(
            'connection',
            f'mysql+pymysql://root@127.0.0.1:{port}/a',
            'nova_accel_database',
        )
        app.factory({})

    def test_versions_are_public(self) -> None:
        request = webob.Request.blank('/v2')
        answer = request.get_response(app.versions_factory({}))
        self.assertEqual(200, answer.status_int)

    def test_only_versions_are_public(self) -> None:
        request = webob.Request.blank('/v2/device_profiles')
        answer = request.get_response(app.versions_factory({}))
        self.assertEqual(404, answer.status_int)
