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

"""Requests of the API without its paste pipeline, on a real database."""

from collections.abc import Iterable
from collections.abc import Mapping
import json
from typing import Any

import fixtures
import sqlalchemy as sa
import testtools
import webob

from nova_accel import conf
from nova_accel.api import app
from nova_accel.api.http import caller
from nova_accel.api.middleware import context
from nova_accel.db.sql import clock
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import host_contract
from nova_accel.model import naming
from rig import quick_database
from unit.api import described

PROJECT = 'a' * 32
OTHER_PROJECT = 'c' * 32

ADMIN = ('admin', 'manager', 'member', 'reader')
MANAGER = ('manager', 'member', 'reader')
MEMBER = ('member', 'reader')
READER = ('reader',)
SERVICE = ('service',)

HOSTNAME = 'compute-1'
NODE = '3f2c7b1e-0b5a-4d59-9d3b-3a1b8f0a5c11'
RP = 'b59d4756-19a0-36bb-bfe9-e64e522f47ce'
INSTANCE = 'a4f042a3-66d5-42e6-9a32-5f237aa0402f'
NOBODY = '7710da71-3bec-4804-a07a-d3ddcd65933c'

GROUP = {'resources:FPGA': '1', 'trait:CUSTOM_FAKE_DEVICE': 'required'}
TRAITS = ['CUSTOM_FAKE_DEVICE', 'CUSTOM_NOVA_ACCEL', 'OWNER_CYBORG']

#: A request for one unit of the group.
WANTED: dict[str, Any] = {
    'device_profile_name': 'profile',
    'device_profile_group_id': 0,
    'group': GROUP,
    'device_rp_uuid': RP,
}

#: The device and the deployable of the host's report.
DEVICE = naming.derived_uuid(NODE, 'pci_0000_0c_00_0')
DEPLOYABLE = naming.derived_uuid(
    NODE, 'pci_0000_0c_00_0', 'deployable', 'region0'
)

#: What a host says of a programming that has ended.
RECORD = {
    'device_uuid': DEVICE,
    'region': 'region0',
    'bitstream_id': NOBODY,
    'project_id': PROJECT,
    'user_id': 'user',
    'instance_uuid': INSTANCE,
    'started_at': '2026-11-21T12:00:00.5+00:00',
    'finished_at': '2026-11-21T12:00:08+00:00',
    'failure': 'CRC error',
}


def numbered_uuid(number: int) -> str:
    return f'00000000-0000-4000-8000-{number:012x}'


def report(functions: int = 4, is_cleaned: bool = False) -> dict[str, Any]:
    """A host with one FPGA that has so many functions."""
    return {
        'node_uuid': NODE,
        'service_host': HOSTNAME,
        'orders_seen': None,
        'contract': host_contract.NEWEST,
        'digest': f'digest-{functions}-{is_cleaned}',
        'devices': [
            {
                'uuid': DEVICE,
                'name': 'pci_0000_0c_00_0',
                'type': 'FPGA',
                'vendor_id': '8086',
                'vendor': 'INTEL',
                'product_id': '09c4',
                'product': 'PAC_ARRIA10',
                'address': '0000:0c:00.0',
                'driver': 'fake',
                'numa_node': 0,
                'fault': None,
                'attributes': {'firmware': '1.2.3'},
                'link_sets': [],
                'deployables': [
                    {
                        'uuid': DEPLOYABLE,
                        'name': 'region0',
                        'rp_uuid': RP,
                        'resource_class': 'FPGA',
                        'traits': TRAITS,
                        'is_cleaned': is_cleaned,
                        'region': 'region0',
                        'bitstream_id': None,
                        'attach_handles': [
                            {
                                'uuid': numbered_uuid(16 + number),
                                'type': 'PCI',
                                'info': {
                                    'domain': '0000',
                                    'bus': '0c',
                                    'device': '00',
                                    'function': f'{number}',
                                },
                            }
                            for number in range(functions)
                        ],
                    }
                ],
            }
        ],
    }


def caller_headers(
    roles: Iterable[str] = ADMIN,
    project: str = PROJECT,
    service_roles: Iterable[str] = (),
) -> dict[str, str]:
    """What ``authtoken`` says of a caller, in WSGI's environment."""
    return {
        'HTTP_X_USER_ID': 'user',
        'HTTP_X_PROJECT_ID': project,
        'HTTP_X_ROLES': ','.join(roles),
        'HTTP_X_SERVICE_ROLES': ','.join(service_roles),
    }


def a_caller(
    roles: Iterable[str] = ADMIN,
    project: str = PROJECT,
    service_roles: Iterable[str] = (),
    **headers: str,
) -> caller.Caller:
    """A caller without a request."""
    return caller.of(
        {**caller_headers(roles, project, service_roles), **headers}
    )


class ConfiguredTestCase(testtools.TestCase):
    """All options have their defaults.

    :ivar log: what is logged
    """

    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        conf.CONF(
            [], project='nova', default_config_files=[], default_config_dirs=[]
        )
        self.addCleanup(conf.CONF.reset)


class ApiTestCase(ConfiguredTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.useFixture(quick_database.QuickDatabase())
        self.api = context.Context(app.factory({}))

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        roles: tuple[str, ...] = ADMIN,
        project: str = PROJECT,
        token: bool = False,
        version: str | None = '2.3',
        raw: bytes | None = None,
        said: Mapping[str, str] | None = None,
    ) -> webob.Response:
        """The answer to a request below ``/accelerator/v2``.

        :param token: whether Nova vouches for it with a service token
        :param raw: a body that is not JSON
        :param said: what else ``authtoken`` says of the caller
        """
        request = webob.Request.blank(
            path, method=method, base_url='http://HOST/accelerator/v2'
        )
        if body is not None or raw is not None:
            request.body = json.dumps(body).encode() if raw is None else raw
            request.content_type = 'application/json'
        if version is not None:
            request.headers['OpenStack-API-Version'] = f'accelerator {version}'
        request.environ.update(
            caller_headers(
                roles, project, service_roles=('service',) if token else ()
            )
            | (said or {})
        )
        answer = request.get_response(self.api)
        # Whose text is not always UTF-8.
        described.check(method, request.environ['PATH_INFO'], answer)
        return answer

    def ok(self, *args: Any, **kwargs: Any) -> Any:
        """The JSON of an answer that must be good; None if it has none."""
        answer = self.call(*args, **kwargs)
        self.assertLess(answer.status_int, 400, answer.text)
        return answer.json if answer.body else None

    def refused(self, status: int, *args: Any, **kwargs: Any) -> str:
        """The reason in an answer that must be this error."""
        answer = self.call(*args, **kwargs)
        self.assertEqual(status, answer.status_int, answer.text)
        fault = json.loads(answer.json['error_message'])
        return str(fault['faultstring'])

    def report_host(self, functions: int = 4, is_cleaned: bool = False) -> Any:
        """What the host is told."""
        return self.ok(
            'PUT',
            f'/hosts/{HOSTNAME}',
            report(functions, is_cleaned),
            roles=SERVICE,
        )

    def clean_host(self, functions: int = 4) -> None:
        """Report what is cleaned after each guest, and that it is clean."""
        orders = self.report_host(functions, is_cleaned=True)['orders']
        self.ok(
            'PUT',
            f'/hosts/{HOSTNAME}/cleaning',
            {
                'revision': orders['revision'],
                'cleaned': orders['uncleaned'],
                'failed': {},
            },
            roles=SERVICE,
        )

    def create_profile(self, name: str = 'profile', *groups: Any) -> Any:
        return self.ok(
            'POST',
            '/device_profiles',
            [{'name': name, 'groups': list(groups) or [GROUP]}],
        )

    def create_arq(self, project: str = PROJECT) -> str:
        [arq] = self.ok(
            'POST',
            '/accelerator_requests',
            {'device_profile_name': 'profile'},
            roles=MEMBER,
            project=project,
        )['arqs']
        return str(arq['uuid'])

    def bind(self, *arqs: str, instance: str = INSTANCE) -> None:
        self.ok(
            'PATCH',
            '/accelerator_requests',
            {arq: patch(instance) for arq in arqs},
            roles=MEMBER,
            token=True,
        )


def patch(
    instance: str = INSTANCE,
    rp: str = RP,
    hostname: str = HOSTNAME,
    **more: str,
) -> list[dict[str, str]]:
    """The operations that bind one ARQ."""
    fields = {
        'hostname': hostname,
        'device_rp_uuid': rp,
        'instance_uuid': instance,
        **more,
    }
    return [
        {'op': 'add', 'path': f'/{name}', 'value': value}
        for name, value in fields.items()
    ]


class SilentHosts(fixtures.Fixture):
    """No host has reported for an hour."""

    def _setUp(self) -> None:
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.HOSTS).values(reported_at=clock.ago(3600))
            )
