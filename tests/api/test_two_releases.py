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

"""The API and a host, one of this release and one of the release before.

Each is a process. They speak HTTP, also where a cloud has its message bus.
"""

import pathlib
from typing import Any

import fixtures
from oslo_utils import uuidutils
import requests
import sqlalchemy as sa
import testtools

from nova_accel import conf
from nova_accel.db import migration
from nova_accel.db import schema
from nova_accel.model import host_contract
from nova_accel.testing import database
from nova_accel.testing import reports
from rig.releases import sides

INSTANCE = uuidutils.generate_uuid()
BITSTREAM = uuidutils.generate_uuid()


class TestTwoReleases(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.before = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        try:
            sides.export(self.before)
        except sides.NoHistory as error:
            self.skipTest(f'there is no release before: {error}')
        # The schema comes first in an upgrade.
        self.database = self.useFixture(database.Database(tables=False))
        migration.sync()
        self.ports = sides.free_port(), sides.free_port()

    def start(
        self, api: pathlib.Path | None, host: pathlib.Path | None
    ) -> None:
        self.start_api(api)
        self.host = self.useFixture(
            sides.Side('host_side', host, self.ports[1], [self.api.url])
        )

    def start_api(self, release: pathlib.Path | None) -> None:
        self.api = self.useFixture(
            sides.Side(
                'api_side',
                release,
                self.ports[0],
                [
                    conf.CONF.nova_accel_database.connection,
                    reports.SimulatedHost().service_host,
                    f'http://127.0.0.1:{self.ports[1]}/take',
                ],
            )
        )

    def take(self, step: str, **arguments: Any) -> Any:
        """Have the host take a step, which must be well."""
        told = requests.post(
            f'{self.host.url}/{step}', json=arguments, timeout=60
        ).json()
        self.assertNotIn('fault', told, self.host.log() + self.api.log())
        return told['answer']

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What an administrator gets of the API."""
        answer = requests.request(
            method,
            self.api.url + path,
            json=body,
            headers={'OpenStack-API-Version': 'accelerator 2.6'},
            timeout=60,
        )
        self.assertLess(answer.status_code, 300, answer.text + self.api.log())
        return answer.json() if answer.content else None

    def known(self) -> tuple[int, list[str]]:
        """The contract of the host, and the link sets of its device."""
        with self.database.engine.connect() as connection:
            contract, sets = connection.execute(
                sa.select(
                    schema.HOSTS.c.contract, schema.DEVICES.c.link_sets
                ).join_from(schema.HOSTS, schema.DEVICES)
            ).one()
            return contract, sets or []

    def found(self) -> list[str]:
        """What the host has found amiss, by the database."""
        with self.database.engine.connect() as connection:
            return list(connection.scalars(sa.select(schema.FINDINGS.c.words)))

    def a_server_lives(self) -> None:
        """Report, boot, program and delete."""
        self.take('report')
        self.ask(
            'POST',
            '/device_profiles',
            [{'name': 'fpga', 'groups': [{'resources:FPGA': '1'}]}],
        )
        [arq] = self.take('boot', instance_uuid=INSTANCE)
        self.assertEqual([INSTANCE], self.take('bound'))
        self.program(arq)
        self.take('delete', instance_uuid=INSTANCE)
        self.assertEqual([], self.take('bound'))
        self.assertEqual([], self.ask('GET', '/accelerator_requests')['arqs'])

    def program(self, arq: str) -> None:
        """The owner of a server has its region programmed."""
        value = [{'image_uuid': BITSTREAM}]
        self.ask(
            'PATCH',
            f'/deployables/{arq}/program',
            [{'op': 'replace', 'path': '/bitstream_id', 'value': value}],
        )
        [record] = self.ask('GET', '/programmings')['programmings']
        self.assertEqual(
            (BITSTREAM, INSTANCE, None),
            (
                record['bitstream_id'],
                record['instance_uuid'],
                record['failure'],
            ),
        )

    def test_both_are_of_this_release(self) -> None:
        self.start(None, None)
        self.a_server_lives()
        self.assertEqual((host_contract.NEWEST, ['numa:0']), self.known())
        self.assertEqual(['the device is too hot'], self.found())
        self.assertNotIn('older than this host', self.host.log())

    def test_a_host_of_the_release_before(self) -> None:
        self.start(api=None, host=self.before)
        self.a_server_lives()
        self.assertEqual((0, []), self.known())

    def test_an_api_of_the_release_before_that_is_upgraded(self) -> None:
        self.start(api=self.before, host=None)
        self.a_server_lives()
        self.take('report')
        self.assertEqual((0, []), self.known())
        self.assertEqual(
            1, self.host.log().count('it is not told: findings, link_sets')
        )
        self.assertEqual([], self.found())
        self.api.stop()
        self.start_api(None)
        self.take('report')
        self.assertEqual((0, []), self.known())
        self.take('report')
        self.assertEqual((host_contract.NEWEST, ['numa:0']), self.known())
        self.assertEqual(['the device is too hot'], self.found())
