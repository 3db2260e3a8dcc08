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

"""The examples of the manual: one of each call, made to the API itself.

``doc/api_examples.json`` has them, and the manual shows that file. Times and
uuids that the API makes are replaced by others that are always the same.
NOVA_ACCEL_REWRITE_GOLDEN=1 rewrites the file.
"""

from collections.abc import Sequence
import datetime
import json
import os
import pathlib
import re
from typing import Any

import sqlalchemy as sa

from nova_accel.api.http import microversion
from nova_accel.db import host_arqs
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.testing import reports
from unit import nova_servers
from unit.api import base
from unit.api import described
from unit.api import programming

_FILE = pathlib.Path(__file__).parents[3] / 'doc/api_examples.json'

_UUID = re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_TIME = re.compile(r'\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(\+00:00)?')

_INSTANCE = f'/hosts/{base.HOSTNAME}/instances/{base.INSTANCE}'
_ARQS = '/accelerator_requests'
_PROFILES = '/device_profiles'
_DEVICE = f'/devices/{base.DEVICE}'
_DEPLOYABLE = f'/deployables/{programming.DEPLOYABLE}'
_DRAIN = f'/hosts/{base.HOSTNAME}/drain'

_NOVA = {'roles': base.MEMBER, 'token': True}
_HOST = {'roles': base.SERVICE}
_OWNER = {'roles': base.MEMBER}


class ExamplesTest(programming.ProgrammingTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.examples: list[dict[str, Any]] = []
        self._names: dict[str, str] = {}

    def test_each_call_is_answered_as_the_manual_says(self) -> None:
        self._profiles()
        self._devices()
        self._requests()
        self._of_nova()
        self._of_hosts()
        self._fleet()
        self._of_owners()
        self._fpgas()
        self._room()
        self._ends()
        text = json.dumps(self.examples, indent=1) + '\n'
        if os.environ.get('NOVA_ACCEL_REWRITE_GOLDEN'):
            _FILE.write_text(text)
        self.assertEqual(_FILE.read_text(), text)
        self.assertEqual(
            {(path, method) for path, method, _ in described.OPERATIONS},
            {
                (described.template(path), method)
                for method, path in (
                    example['call'].split() for example in self.examples
                )
            },
        )

    def _show(
        self, method: str, path: str, body: Any = None, **who: Any
    ) -> Any:
        """Make the call, keep it as an example, and give its answer."""
        who = {'roles': base.ADMIN, 'version': _newest(), **who}
        answer = self.call(method, path, body, **who)
        self.assertLess(answer.status_int, 300, answer.text)
        json_answer = answer.json if answer.body else None
        self.examples.append(
            {
                'call': f'{method} {self._stable(path)}',
                'role': _who(who['roles'], who.get('token', False)),
                'version': who['version'],
                'body': self._stable(body),
                'status': answer.status_int,
                'answer': self._stable(json_answer),
            }
        )
        return json_answer

    def _stable(self, value: Any) -> Any:
        """Without what differs each time."""
        text = _TIME.sub(
            '2026-11-24T06:00:00+00:00',
            json.dumps(value),
        )
        return json.loads(_UUID.sub(self._name, text))

    def _name(self, found: re.Match[str]) -> str:
        uuid = found[0]
        if uuid.startswith('00000000-') or uuid in (
            base.NODE,
            base.DEVICE,
            base.DEPLOYABLE,
            base.RP,
            base.INSTANCE,
            base.NOBODY,
        ):
            return uuid
        return self._names.setdefault(
            uuid, f'00000000-0000-4000-9000-{len(self._names) + 1:012x}'
        )

    def _profiles(self) -> None:
        profile = {'name': 'profile', 'groups': [base.GROUP]}
        made = self._show('POST', _PROFILES, [profile])
        path = f'{_PROFILES}/{made["uuid"]}'
        self._show('GET', _PROFILES, roles=base.READER)
        self._show('GET', path, roles=base.READER)
        self._show(
            'PUT',
            path,
            {'groups': [base.GROUP], 'description': 'any FPGA'},
        )
        self._show('GET', f'{path}/availability')
        self._show('GET', f'{path}/explain')

    def _devices(self) -> None:
        self._show('GET', '/devices?type=FPGA')
        self._show('GET', _DEVICE)
        self._show('POST', f'{_DEVICE}/disable')
        self._show('POST', f'{_DEVICE}/enable')
        self._show('GET', '/deployables')
        self._show('GET', _DEPLOYABLE)
        rack = self._show(
            'POST',
            '/attributes',
            {'deployable_id': 1, 'key': 'rack', 'value': '7'},
        )
        self._show('GET', '/attributes?key=rack')
        self._show('GET', f'/attributes/{rack["uuid"]}')
        self._show('DELETE', f'/attributes/{rack["uuid"]}')

    def _make_arq(self) -> str:
        [arq] = self._show(
            'POST', _ARQS, {'device_profile_name': 'profile'}, **_OWNER
        )['arqs']
        return str(arq['uuid'])

    def _requests(self) -> None:
        """Those of a tenant, and of a client of Cyborg."""
        arq = self._make_arq()
        self._show('GET', _ARQS, roles=base.READER)
        self._show('GET', f'{_ARQS}/{arq}', roles=base.READER)
        self._show('DELETE', f'{_ARQS}/{arq}', **_OWNER)

    def _of_nova(self) -> None:
        """As for a server with Cyborg's flavor key."""
        arq, other = self.create_arq(), self.create_arq()
        self._show('PATCH', _ARQS, {arq: base.patch()}, **_NOVA)
        self._show(
            'PATCH',
            f'{_ARQS}/{other}',
            {other: base.patch(base.numbered_uuid(99))},
            **_NOVA,
        )
        self._show(
            'PUT',
            f'{_INSTANCE}/active/arqs',
            {'attempt': 1, 'arqs': [arq]},
            **_HOST,
        )
        self._show(
            'DELETE',
            f'/hosts/{base.HOSTNAME}/instances/{base.numbered_uuid(99)}'
            f'?arqs={other}',
            **_HOST,
        )
        self._show(
            'PUT',
            f'{_INSTANCE}/active/additions',
            {
                'attempt': 2,
                'project_id': base.PROJECT,
                'arqs': [base.WANTED],
                'kept': [arq],
            },
            **_HOST,
        )
        self.ok('DELETE', f'{_INSTANCE}/active?attempt=2', roles=base.SERVICE)
        third = self.create_arq()
        self._show('DELETE', f'{_ARQS}?arqs={third}', **_OWNER)

    def _of_hosts(self) -> None:
        report = base.report(functions=1, is_cleaned=True)
        orders = self._show('PUT', f'/hosts/{base.HOSTNAME}', report, **_HOST)[
            'orders'
        ]
        self._show(
            'PUT',
            f'/hosts/{base.HOSTNAME}/cleaning',
            {
                'revision': orders['revision'],
                'cleaned': orders['uncleaned'],
                'failed': {},
            },
            **_HOST,
        )
        [arq] = self._show(
            'PUT',
            f'{_INSTANCE}/active',
            {
                'attempt': 3,
                'project_id': base.PROJECT,
                'device_profile_name': 'profile',
                'providers': {
                    base.RP: {
                        'allocated': {'FPGA': 1},
                        'traits': base.TRAITS,
                    }
                },
            },
            **_HOST,
        )['arqs']
        self._show('GET', f'{_INSTANCE}/active', **_HOST)
        self._show('GET', f'/hosts/{base.HOSTNAME}/instances', **_HOST)
        self._show(
            'PUT',
            f'/hosts/{base.HOSTNAME}/provisioning',
            {'arqs': [arq['uuid']], 'failed': []},
            **_HOST,
        )

    def _of_owners(self) -> None:
        nova = self.useFixture(nova_servers.NovaServers(self.bus))
        nova.add(base.INSTANCE, base.PROJECT, base.HOSTNAME)
        self._show(
            'PUT',
            f'/servers/{base.INSTANCE}/accelerators',
            {'device_profile': 'profile'},
        )
        self.report_host(functions=0)
        self._show(
            'POST',
            f'/servers/{base.INSTANCE}/accelerators/replace',
            {},
            **_OWNER,
        )
        self.report_host(functions=1, is_cleaned=True)

    def _fleet(self) -> None:
        tomorrow = datetime.datetime.now(datetime.UTC) + datetime.timedelta(1)
        self._show('GET', '/topology')
        self._show(
            'PUT',
            _DRAIN,
            {'reason': 'new fans', 'until': tomorrow.isoformat()},
        )
        self._show('GET', _DRAIN)
        server = f'/servers/{base.INSTANCE}/accelerators'
        self._show('GET', server, roles=base.READER)
        asked = {'project-id': base.PROJECT, 'instance-id': base.INSTANCE}
        self._show('POST', '/vendordata', asked, version='2.0', **_HOST)
        self._show('GET', '/drains')
        self._let_time_pass()
        self._show('GET', '/usage', roles=base.READER)
        self._show('DELETE', _DRAIN)

    def _let_time_pass(self) -> None:
        """All that was ever held began two hours ago, and ended after one."""
        hour = datetime.timedelta(hours=1)
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.HELD_PERIODS).values(
                    began_at=schema.now() - 2 * hour,
                    ended_at=schema.now() - hour,
                )
            )

    def _fpgas(self) -> None:
        self._show('DELETE', f'{_INSTANCE}/active?attempt=3', **_HOST)
        self._show(
            'POST',
            f'/fpga/{programming.DEPLOYABLE}',
            {'glance_bitstream_uuid': programming.BITSTREAM},
        )
        patch = [
            {
                'op': 'replace',
                'path': '/bitstream_id',
                'value': [{'image_uuid': programming.BITSTREAM}],
            }
        ]
        self._show('PATCH', f'{_DEPLOYABLE}/program', patch)
        self._show(
            'PATCH',
            f'{_DEPLOYABLE}/program/{programming.DEPLOYABLE}',
            [{**patch[0], 'path': '/program'}],
        )
        self._show(
            'PUT',
            f'/hosts/{base.HOSTNAME}/programmings/{base.numbered_uuid(88)}',
            base.RECORD,
            **_HOST,
        )
        self._show('GET', f'/programmings?hostname={base.HOSTNAME}')
        self._show(
            'POST',
            f'/bitstreams/{programming.BITSTREAM}/prefetch',
            {'hostnames': [base.HOSTNAME]},
        )

    def _room(self) -> None:
        """One of two servers has to leave its host for a third one."""
        for number, name in enumerate(('single', 'pair'), 1):
            self.create_profile(name, {'resources:CUSTOM_QAT': f'{number}'})
        servers = [base.numbered_uuid(90 + number) for number in (0, 1)]
        for number, server in enumerate(servers):
            host = reports.SimulatedHost(
                f'compute-{number + 2}', regions=(), functions=2
            )
            host.report()
            host_arqs.acquire(
                host_arqs.AcquireRequest(
                    instance_uuid=server,
                    hostname=host.hostname,
                    role='active',
                    attempt=1,
                    project_id=base.PROJECT,
                    device_profile_name='single',
                    allocations=(host.allocated_functions(1),),
                )
            )
        self._show(
            'POST',
            f'{_PROFILES}/pair/room',
            {'count': 1, 'servers': dict(zip(servers, (2, 0), strict=True))},
        )

    def _ends(self) -> None:
        second = self.create_profile('second')
        self._show('DELETE', f'{_PROFILES}/{second["uuid"]}')
        self.create_profile('third')
        self._show('DELETE', f'{_PROFILES}?value=third')


def _newest() -> str:
    *_, newest = microversion.VERSIONS
    return str(newest)


def _who(roles: Sequence[str], has_service_token: bool) -> str:
    return f'{roles[0]}, by Nova' if has_service_token else roles[0]
